"""Pictures of a beam: its gain over the angle with the clients of the first round in it, or over the clients alone."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from wirelessfl.assembly.first_slot import FirstSlot
from wirelessfl.errors import precondition
from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import ACTIVITIES, BLUE, GREY, OUTCOMES

FLOOR_DB = -30.0
"""Lowest gain that is shown; nulls go deeper."""
_ANGLES = np.deg2rad(np.linspace(-90.0, 90.0, 721))


def draw_beam(slot: FirstSlot, name: str, path: Path, width_in: float) -> None:
    """Array pattern in the first group of subcarriers, with the gain of each client's estimate at its direction.

    Args:
        slot: the first slot.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).

    Raises:
        ValueError: its antennas have no geometry.
    """
    geometry = slot.geometry
    precondition(geometry is not None, "a beam needs the places of the antennas")
    assert geometry is not None
    title = f"{name}: beam of {geometry.antennas} antennas in round 1"
    with drawing(path, title, (width_in, 0.62 * width_in)) as figure:
        axes = figure.subplots()
        pattern = _decibels(geometry.pattern(slot.weights[0], _ANGLES))
        axes.plot(np.rad2deg(_ANGLES), pattern, color=BLUE, label="plane wave, |fᴴa(φ)|²/‖f‖²")
        _draw_points(axes, slot, np.rad2deg(_folded(slot.azimuth)))
        if np.isfinite(slot.jammer_azimuth):
            angle = np.rad2deg(_folded(np.array([slot.jammer_azimuth]))[0])
            axes.axvline(angle, color=ACTIVITIES["jam"], linestyle="--", label="direction of the jammer")
        top = 10 * np.log10(geometry.antennas)
        highest = max(top, float(_decibels(slot.gain[:, 0]).max()))
        axes.axhline(top, color=GREY, linewidth=0.6, linestyle=":", label="largest of a plane wave, A")
        axes.set(xlim=(-90, 90), ylim=(FLOOR_DB, highest + 3), xlabel="azimuth from broadside (°)", ylabel="gain (dB)")
        axes.set_xticks(range(-90, 91, 30))
        figure.legend(loc="outside lower center", ncols=2)


def draw_gains(slot: FirstSlot, name: str, path: Path, width_in: float) -> None:
    """Gain behind the combiner of each client in the first group of subcarriers, where antennas have no geometry.

    Args:
        slot: the first slot.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    antennas = slot.weights.shape[1]
    title = f"{name}: {len(slot.clients)} clients behind {antennas} antennas in round 1"
    with drawing(path, title, (width_in, 0.55 * width_in)) as figure:
        axes = figure.subplots()
        _draw_points(axes, slot, slot.clients)
        axes.set(xlabel="client", ylabel="gain (dB)")
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        figure.legend(loc="outside lower center", ncols=2)


def _draw_points(axes: Axes, slot: FirstSlot, places: NDArray[Any]) -> None:
    sends, gains = slot.sends[:, 0], np.maximum(_decibels(slot.gain[:, 0]), FLOOR_DB)
    for mask, colour, words in (
        (sends, OUTCOMES["participated"], "client that sends, |fᴴĥ|²/(‖f‖² E|ĥ|²)"),
        (~sends, OUTCOMES["crashed"], "client that stays silent"),
    ):
        if mask.any():
            filled = colour if mask is sends else "none"
            axes.scatter(places[mask], gains[mask], s=14, edgecolors=colour, facecolors=filled, label=words, zorder=3)


def _folded(azimuth: NDArray[np.float64]) -> NDArray[np.float64]:
    # A linear array cannot tell front from back: sin φ is all it sees
    return np.asarray(np.arcsin(np.sin(azimuth)))


def _decibels(gain: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(10 * np.log10(np.maximum(gain, 1e-12)))
