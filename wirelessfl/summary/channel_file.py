"""Picture of a channel file: gains over places and time, delays, and Doppler shifts."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from wirelessfl.channels import ChannelFigures, ChannelRecord
from wirelessfl.channels.statistics import sizes_in_words
from wirelessfl.summary.drawing import drawing, legend_inside
from wirelessfl.summary.style import BLUE, CYCLE, GREY, VERMILION

_LOWEST_DB, _TWO_COLUMNS_IN = -60.0, 6.5
_COLOURS = "viridis"
_MOST_POINTS, _FEW = 4000, 64


def draw_channels(record: ChannelRecord, figures: ChannelFigures, name: str, path: Path, width_in: float) -> None:
    """Drawing of a map of gains, gains over time, the power delay profile and the Doppler spectrum.

    Args:
        record: the channels.
        figures: their statistics.
        name: of the file, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    columns = 1 if width_in < _TWO_COLUMNS_IN else 2
    with drawing(
        path, f"{name}: {sizes_in_words(record)}", (width_in, 0.72 * width_in if columns == 2 else 2.6 * width_in)
    ) as figure:
        panels = figure.subplots(4 // columns, columns).ravel()
        _map(figure, panels[0], record, figures.mean_gain_db)
        _over_time(panels[1], record, figures.mean_gain_db)
        _profile(panels[2], figures)
        _spectrum(panels[3], figures)


def _map(figure: Figure, axes: Axes, record: ChannelRecord, gains_db: NDArray[np.float64]) -> None:
    if record.position_m is None:
        ordered = np.sort(gains_db[np.isfinite(gains_db)])[::-1]
        axes.plot(np.arange(1, len(ordered) + 1), ordered, color=BLUE, marker=".")
        axes.set(title="Mean gains (no places in the file)", xlabel="clients, strongest first", ylabel="mean gain (dB)")
        return
    place = np.asarray(record.position_m)[0]
    shown = np.arange(0, len(place), max(1, -(-len(place) // _MOST_POINTS)))
    reached = shown[np.isfinite(gains_db[shown])]
    never = np.setdiff1d(shown, reached)
    size = float(np.clip(3000 / max(len(shown), 1), 4, 40))
    x, y = place[:, 0], place[:, 1]
    dots = axes.scatter(x[reached], y[reached], c=gains_db[reached], s=size, cmap=_COLOURS)
    figure.colorbar(dots, ax=axes, label="mean gain (dB)")
    if len(never):
        axes.scatter(x[never], y[never], s=size, marker="x", color=GREY, label="no path")
    if record.receiver_m is not None:
        axes.scatter(record.receiver_m[:1], record.receiver_m[1:2], marker="^", s=45, color=VERMILION, label="receiver")
    if len(never) or record.receiver_m is not None:
        axes.legend()
    axes.set(title="Places at the beginning", xlabel="x (m)", ylabel="y (m)")
    axes.set_aspect("equal", adjustable="datalim")


def _over_time(axes: Axes, record: ChannelRecord, gains_db: NDArray[np.float64]) -> None:
    axes.set(title="Gains over time", xlabel="time (s)", ylabel="gain (dB)")
    reached = np.flatnonzero(np.isfinite(gains_db))
    if len(record.time_s) == 1 or not len(reached):
        _without(axes, "one snapshot: a channel at rest" if len(reached) else "no client is reached")
        return
    ordered = reached[np.argsort(gains_db[reached])[::-1]]
    rank = {"strongest": ordered[0], "median": ordered[len(ordered) // 2], "weakest": ordered[-1]}
    chosen = {client: f"{client}: {words}" for words, client in reversed(rank.items())}
    for (client, label), colour in zip(sorted(chosen.items()), CYCLE, strict=False):
        power = np.abs(record.gains[:, client, 0, record.gains.shape[3] // 2].astype(np.complex128)) ** 2
        level = 10 * np.log10(np.where(power > 0, power, np.nan))
        axes.step(np.asarray(record.time_s), level, where="post", color=colour, label=label, linewidth=0.8)
    axes.set_title("Gains of clients over time")
    legend_inside(axes)


def _profile(axes: Axes, figures: ChannelFigures) -> None:
    axes.set(title="Power delay profile", xlabel="delay (µs)", ylabel="power (dB)")
    if figures.delay_s is None or figures.delay_power is None:
        _without(axes, "one subcarrier, or frequencies\nthat are not known")
        return
    axes.plot(figures.delay_s * 1e6, _decibels(figures.delay_power), color=BLUE, marker=_dots(figures.delay_s))
    heard = figures.delay_s[figures.delay_power > figures.delay_power.max() * 10 ** (_LOWEST_DB / 10)] * 1e6
    room = 0.03 * float(np.ptp(heard)) or 1.0
    axes.set_xlim(heard[0] - room, heard[-1] + room)
    axes.set_title(f"Power delay profile, delay spread {figures.delay_spread_s * 1e9:.3g} ns")


def _spectrum(axes: Axes, figures: ChannelFigures) -> None:
    axes.set(title="Doppler spectrum", xlabel="Doppler shift (Hz)", ylabel="power (dB)")
    if figures.doppler_hz is None or figures.doppler_power is None:
        _without(axes, "fewer than three snapshots,\nor uneven times")
        return
    axes.plot(figures.doppler_hz, _decibels(figures.doppler_power), color=BLUE, marker=_dots(figures.doppler_hz))
    axes.set_title(f"Doppler spectrum, spread {figures.doppler_spread_hz:.3g} Hz")


def _dots(values: NDArray[np.float64]) -> str:
    return "." if len(values) <= _FEW else ""


def _decibels(power: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(10 * np.log10(np.maximum(power / power.max(), 10 ** (_LOWEST_DB / 10))))


def _without(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, ha="center", va="center", color=GREY, transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])
