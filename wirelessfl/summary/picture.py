"""The figure ``summary``: learning, privacy, channels and resources of a run, in panels at reading size."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from wirelessfl.summary.drawing import drawing, legend_inside, log_scale, show_rounds, whole_numbers
from wirelessfl.summary.gains import gain_label, in_decibels, magnitudes
from wirelessfl.summary.style import GREY, PAGE_IN, ROLES
from wirelessfl.trace import AnyRoot, axis_label, axis_scale, run_name

_TWO_COLUMNS_IN = 5.0
_PANEL_IN = {1: 1.1, 2: 1.4}
_TITLE_IN = 0.4
_WIDE = 30.0

Rounds = NDArray[np.int64]
Values = NDArray[np.float64]


def draw_summary(trace: AnyRoot, path: Path, width_in: float = PAGE_IN) -> None:
    """Figure of accuracy, loss, both ε, gains, back-off, clients heard, energy and airtime over the rounds.

    What a run does not have has no panel, such as back-off where nobody backs off. Two columns of panels stand side by
    side from 5 inches on.

    Args:
        trace: the opened trace.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    panels = [draw for known, draw in _PANELS if known(trace)]
    columns = 2 if width_in >= _TWO_COLUMNS_IN else 1
    rows = -(-len(panels) // columns)
    with drawing(path, run_title(trace), (width_in, _TITLE_IN + _PANEL_IN[columns] * rows)) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
        for axes, draw in zip(grid.flat, panels, strict=False):
            draw(axes, trace, trace["round"].values)
            show_rounds(axes, trace["round"].values)
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for axes in grid.flat[max(len(panels) - columns, 0) : len(panels)]:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(axis_label("round"))
        figure.align_ylabels()


def run_title(trace: AnyRoot) -> str:
    """Name and seed of a run, and its status unless it is complete."""
    ended = "" if trace.attrs["status"] == "complete" else f" ({trace.attrs['status']})"
    return f"{run_name(trace.attrs)}, seed {trace.attrs['seed']}{ended}"


def epsilon_curves(trace: AnyRoot, published: str, accounted: str) -> Iterator[tuple[Values, str, str]]:
    """Both ε over the rounds (M,), NaN where not positive, each with its colour and label; ∞ marks an infinite last."""
    for name, role, label in (
        ("epsilon_published", "published", published),
        ("epsilon_accounted", "accounted", accounted),
    ):
        values = np.where(trace[name].values > 0, trace[name].values, np.nan)
        yield values, ROLES[role], f"{label}: ∞" if len(values) and np.isinf(values[-1]) else label


def _plot(axes: Axes, rounds: Rounds, values: Values, role: str, label: str) -> None:
    known = np.isfinite(values)
    marker = "o" if known.sum() < 3 else ""
    axes.plot(rounds[known], values[known], color=ROLES[role], label=label, marker=marker)


def _range_from(axes: Axes, low: float, values: Values) -> None:
    high = float(np.max(values, where=np.isfinite(values), initial=low))
    # A line on the lowest value stands clear of the frame
    axes.set_ylim(*((low, low + 1.08 * (high - low)) if high > low else (low - 0.05, low + 1)))


def _accuracy(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    _plot(axes, rounds, axis_scale("test_accuracy") * trace["test_accuracy"].values, "accuracy", "test accuracy")
    axes.set(ylabel=axis_label("test_accuracy"), ylim=(0, 100))


def _loss(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    found = trace["test_loss"].values, trace["train_loss"].values
    for values, role, label in zip(found, ("loss", "train_loss"), ("test", "training"), strict=True):
        if np.isfinite(values).any() or role == "loss":
            _plot(axes, rounds, values, role, label)
    axes.set_ylabel("loss (nat)")
    _range_from(axes, 0.0, np.concatenate(found))
    legend_inside(axes)


def _privacy(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    curves = list(epsilon_curves(trace, "published", "accounted"))
    for (values, _, label), role in zip(curves, ("published", "accounted"), strict=True):
        _plot(axes, rounds, values, role, label)
    axes.set_ylabel(f"ε at δ = {trace.attrs['delta']:g}")
    if any(np.isfinite(values).any() for values, _, _ in curves):
        log_scale(axes.yaxis)
    else:
        axes.set_yticks([])
        spent = np.stack([trace[f"epsilon_{column}"].values for column in ("published", "accounted")])
        words = "no finite ε" if np.any(spent != 0) else "ε = 0: nothing was sent"
        axes.text(0.5, 0.3, words, transform=axes.transAxes, ha="center", va="center", color=GREY)
    legend_inside(axes)


def _gains(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    found, decibels = magnitudes(trace), in_decibels(trace)
    heard = np.any(np.isfinite(found.clients), axis=1)
    low, middle, high = np.nanpercentile(found.clients[heard], (10, 50, 90), axis=1)
    colour = ROLES["clients"]
    if heard.sum() > 1:
        axes.fill_between(rounds[heard], low, high, color=colour, alpha=0.2, linewidth=0, label="10–90 % of clients")
    _plot(axes, rounds[heard], middle, "clients", "median")
    if np.isfinite(found.jammer).any():
        _plot(axes, rounds, found.jammer, "jam", "jammer")
    axes.set_ylabel(gain_label(decibels))
    if not decibels:
        _range_from(axes, 0.0, np.concatenate([high, found.jammer]))
    legend_inside(axes)


def _backoff(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    backoff = trace["backoff"].values
    sent = np.any(np.isfinite(backoff), axis=1)
    largest = np.nanmax(backoff[sent], axis=1)
    _plot(axes, rounds[sent], largest, "backoff", "largest")
    axes.set_ylabel(f"largest {axis_label('backoff')}")
    if largest.max() > _WIDE:
        log_scale(axes.yaxis)
    else:
        _range_from(axes, 1.0, largest)


def _heard(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    heard = trace["participants"].values.astype(np.float64)
    _plot(axes, rounds, heard, "participated", "clients heard")
    axes.set_ylabel(axis_label("participants"))
    _range_from(axes, 0.0, heard)
    whole_numbers(axes.yaxis)


def _energy(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    joules = trace["energy"].values
    if np.isfinite(joules).any():
        _plot(axes, rounds, joules, "clients", "energy")
        axes.set_ylabel(f"{axis_label('energy')}")
        _range_from(axes, 0.0, joules)
        return
    clients, jammer = np.nansum(trace["tx_energy"].values, axis=1), trace["jammer_energy"].values
    for values, role, label in ((clients, "clients", "all clients"), (jammer, "jam", "jammer")):
        if np.any(values > 0):
            _plot(axes, rounds, np.where(values > 0, values, np.nan), role, label)
    axes.set_ylabel("energy (noise = 1)")
    log_scale(axes.yaxis)
    legend_inside(axes)


def _airtime(axes: Axes, trace: AnyRoot, rounds: Rounds) -> None:
    airtime = np.cumsum(trace["airtime"].values)
    _plot(axes, rounds, airtime, "airtime", "airtime")
    axes.set_ylabel("airtime so far (s)")
    _range_from(axes, 0.0, airtime)


def _always(_: AnyRoot) -> bool:
    return True


def _has_gains(trace: AnyRoot) -> bool:
    return bool(np.isfinite(magnitudes(trace).clients).any())


def _has_backoff(trace: AnyRoot) -> bool:
    return bool(np.any(trace["backoff"].values > 1))


def _has_energy(trace: AnyRoot) -> bool:
    return bool(np.isfinite(trace["energy"].values).any() or np.nansum(trace["tx_energy"].values) > 0)


def _has_airtime(trace: AnyRoot) -> bool:
    return bool(np.nansum(trace["airtime"].values) > 0)


_PANELS: tuple[tuple[Callable[[AnyRoot], bool], Callable[[Axes, AnyRoot, Rounds], None]], ...] = (
    (_always, _accuracy),
    (_always, _loss),
    (_always, _privacy),
    (_always, _heard),
    (_has_gains, _gains),
    (_has_backoff, _backoff),
    (_has_energy, _energy),
    (_has_airtime, _airtime),
)
"""Whether a run has what a panel shows, and the panel, in the order of reading."""
