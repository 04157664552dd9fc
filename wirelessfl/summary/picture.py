"""``summary.png``: learning, privacy, channels and resources of a run, of the width of a paper's column."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import GREY, PAGE_IN, ROLES
from wirelessfl.trace import at_slot_start


def draw_summary(trace: xr.Dataset, path: Path, width_in: float = PAGE_IN) -> None:
    """Figure of accuracy and loss, both ε, channels and back-off, energy and airtime over the rounds.

    Args:
        trace: the opened trace.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    with drawing(path, run_title(trace), (width_in, 8.0)) as figure:
        panels = figure.subplots(4, 1, sharex=True)
        for axes, draw in zip(panels, (_learning, _privacy, _channels, _resources), strict=True):
            draw(axes, trace, trace["round"].values)
        panels[-1].xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))  # there is no round 2.5
        panels[-1].set_xlabel("round")


def run_title(trace: xr.Dataset) -> str:
    """Name and seed of a run, and its status unless it is complete."""
    ended = "" if trace.attrs["status"] == "complete" else f" ({trace.attrs['status']})"
    return f"{trace.attrs['name']}, seed {trace.attrs['seed']}{ended}"


def _plot(axes: Axes, rounds: NDArray[np.int64], values: NDArray[np.float64], colour: str, label: str) -> None:
    known = np.isfinite(values)
    axes.plot(
        rounds[known], values[known], color=colour, label=label, linewidth=1.2, marker="." if known.sum() < 3 else ""
    )


def _legend(axes: Axes, *others: Axes) -> None:
    handles = [handle for each in (axes, *others) for handle in each.get_legend_handles_labels()[0]]
    if handles:
        axes.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.98),
            ncols=2,
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.4,
        )


def _range_from(axes: Axes, low: float, values: NDArray[np.float64]) -> None:
    high = float(np.max(values, where=np.isfinite(values), initial=low))
    axes.set_ylim(low, low + 1.08 * (high - low) if high > low else low + 1)


def _plot_right(
    axes: Axes,
    rounds: NDArray[np.int64],
    values: NDArray[np.float64],
    colour: str,
    label: str,
    unit: str,
    low: float = 0.0,
) -> Axes:
    twin = axes.twinx()
    twin.grid(visible=False)
    twin.set_ylabel(unit)
    _plot(twin, rounds, values, colour, f"{label} (right)")
    _range_from(twin, low, values)
    return twin


def _say(axes: Axes, words: str) -> None:
    axes.set_yticks([])
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", fontsize=8, color=GREY)


def _learning(axes: Axes, trace: xr.Dataset, rounds: NDArray[np.int64]) -> None:
    _plot(axes, rounds, 100 * trace["test_accuracy"].values, ROLES["accuracy"], "test accuracy")
    axes.set(ylabel="accuracy (%)", ylim=(0, 100))
    _legend(axes, _plot_right(axes, rounds, trace["test_loss"].values, ROLES["loss"], "test loss", "loss (nat)"))


def epsilon_curves(trace: xr.Dataset, published: str, accounted: str) -> Iterator[tuple[NDArray[np.float64], str, str]]:
    """Both ε over the rounds (M,), NaN where not positive, each with its colour and label; ∞ marks an infinite last."""
    curves = ("epsilon_published", ROLES["published"], published), ("epsilon_accounted", ROLES["accounted"], accounted)
    for name, colour, label in curves:
        values = np.where(trace[name].values > 0, trace[name].values, np.nan)
        yield values, colour, f"{label}: ∞" if len(values) and np.isinf(values[-1]) else label


def _privacy(axes: Axes, trace: xr.Dataset, rounds: NDArray[np.int64]) -> None:
    curves = list(epsilon_curves(trace, "published (theorem)", "accounted (what holds)"))
    for values, colour, label in curves:
        _plot(axes, rounds, values, colour, label)
    axes.set_ylabel(f"ε at δ = {trace.attrs['delta']:g}")
    if any(np.isfinite(values).any() for values, _, _ in curves):
        axes.set_yscale("log")
    else:
        _say(axes, "no finite ε")
    _legend(axes)


def _channels(axes: Axes, trace: xr.Dataset, rounds: NDArray[np.int64]) -> None:
    magnitude = np.hypot(at_slot_start(trace["channel_re"]), at_slot_start(trace["channel_im"]))
    heard = np.any(np.isfinite(magnitude), axis=1)
    axes.set_ylabel("channel gain")
    if not heard.any():
        _say(axes, "no radio channel was used")
        return
    low, middle, high = np.nanpercentile(magnitude[heard], (10, 50, 90), axis=1)
    axes.fill_between(
        rounds[heard], low, high, color=ROLES["clients"], alpha=0.2, linewidth=0, label="|h|, 10–90 % of clients"
    )
    axes.plot(rounds[heard], middle, color=ROLES["clients"], linewidth=1.2, label="|h|, median")
    jammer = np.hypot(at_slot_start(trace["jammer_channel_re"]), at_slot_start(trace["jammer_channel_im"]))
    if np.isfinite(jammer).any():
        _plot(axes, rounds, jammer, ROLES["jam"], "|h| of the jammer")
    _range_from(axes, 0.0, np.concatenate([high, jammer]))
    axes.yaxis.set_major_formatter("{x:g}")  # with a path loss gains are tiny, and a common exponent hides the legend
    backoff = trace["backoff"].values
    sent = np.any(np.isfinite(backoff), axis=1)
    others = []
    if sent.any():  # none is on a digital uplink
        largest = np.nanmax(backoff[sent], axis=1)
        others.append(
            _plot_right(axes, rounds[sent], largest, ROLES["backoff"], "largest back-off", "back-off", low=1.0)
        )
    _legend(axes, *others)


def _resources(axes: Axes, trace: xr.Dataset, rounds: NDArray[np.int64]) -> None:
    joules, sent, jammed = (trace[name].values for name in ("energy", "tx_energy", "jammer_energy"))
    known = np.isfinite(joules).any()
    axes.set_ylabel("energy (J)" if known else "energy (noise = 1)")
    if known:
        _plot(axes, rounds, joules, ROLES["clients"], "energy of the round")
        _range_from(axes, 0.0, joules)
    elif np.any(np.nansum(sent, axis=1) > 0):
        for values, colour, label in (
            (np.nansum(sent, axis=1), ROLES["clients"], "all clients"),
            (jammed, ROLES["jam"], "jammer"),
        ):
            if np.any(values > 0):
                _plot(axes, rounds, np.where(values > 0, values, np.nan), colour, label)
        axes.set_yscale("log")
    else:
        axes.set_yticks([])
    airtime = np.cumsum(trace["airtime"].values)
    _legend(axes, _plot_right(axes, rounds, airtime, ROLES["airtime"], "airtime so far", "airtime (s)"))
