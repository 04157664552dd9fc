"""Picture of a spectrum: gains, energy sent, senders and jamming over the groups of subcarriers in the first round."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from wirelessfl.assembly.first_slot import FirstSlot
from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import ACTIVITIES, CYCLE, GREY, OUTCOMES

MOST_CLIENTS = 6
"""Curves that can be told apart."""


def draw_spectrum(slot: FirstSlot, name: str, path: Path, width_in: float) -> None:
    """Gains of some clients behind the combiner and what they send, the share of all that send, and the jamming.

    The energy sent is that of an update at the clip over the client's budget, the jamming is over the receiver noise;
    without a jammer its panel is left out.

    Args:
        slot: the first slot.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    count, groups = slot.sends.shape
    shown = np.unique(np.linspace(0, count - 1, min(count, MOST_CLIENTS)).round().astype(np.int64))
    title = f"{name}: {groups} groups of subcarriers, {len(shown)} of {count} clients in round 1"
    jammed = bool(np.isfinite(slot.jamming).all())
    heights = (2.0, 1.4, 0.8) + (0.8,) * jammed
    with drawing(path, title, (width_in, 0.25 * sum(heights) * width_in)) as figure:
        gains, energy, senders, *rest = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
        for place, colour in zip(shown.tolist(), CYCLE, strict=False):
            _draw_client(gains, slot, place, colour)
            sent = np.where(slot.sent[place] > 0, slot.sent[place], np.nan)
            energy.plot(np.arange(groups), _decibels(sent), color=colour, linewidth=0.9, marker=".", markersize=3)
        if slot.fade_threshold > 0:
            level = 10 * np.log10(slot.fade_threshold)
            gains.axhline(level, color=GREY, linestyle="--", linewidth=0.8, label="deep fade")
        gains.scatter([], [], s=12, edgecolors=GREY, facecolors="none", label="does not send")
        gains.set_ylabel("gain (dB)")
        energy.set_ylabel("energy sent\nof budget (dB)")
        senders.bar(np.arange(groups), slot.sends.mean(axis=0), width=1.0, color=OUTCOMES["participated"])
        senders.set(ylabel="share\nthat sends", ylim=(0, 1), xlim=(-0.5, groups - 0.5))
        for axes in rest:
            axes.plot(np.arange(groups), _decibels(slot.jamming), color=ACTIVITIES["jam"])
            axes.set_ylabel("jamming\nof noise (dB)")
        (rest or [senders])[-1].set_xlabel("group of subcarriers")
        senders.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        figure.align_ylabels()
        figure.legend(loc="outside lower center", ncols=4)


def _draw_client(axes: Axes, slot: FirstSlot, place: int, colour: str) -> None:
    # A group in which a client is silent has a hollow marker
    decibels = _decibels(slot.gain[place])
    places, sends = np.arange(len(decibels)), slot.sends[place]
    axes.plot(places, decibels, color=colour, linewidth=0.9, label=f"client {slot.clients[place]}")
    axes.scatter(places[~sends], decibels[~sends], s=12, edgecolors=colour, facecolors="none", zorder=3)


def _decibels(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(10 * np.log10(np.maximum(values, 1e-12)))
