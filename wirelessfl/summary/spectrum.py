"""Picture of a spectrum: gains over the groups of subcarriers in the first round, and who sends in each group."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from wirelessfl.assembly.first_slot import FirstSlot
from wirelessfl.summary.drawing import drawing
from wirelessfl.summary.style import CYCLE, GREY, OUTCOMES

MOST_CLIENTS = 6
"""Curves that can be told apart."""


def draw_spectrum(slot: FirstSlot, name: str, path: Path, width_in: float) -> None:
    """Gains of some clients behind the combiner over the groups, and the share of all clients that send in each.

    Args:
        slot: the first slot.
        name: of the scenario, for the title.
        path: where the figure goes; its suffix is the format.
        width_in: width (inches).
    """
    count, groups = slot.sends.shape
    shown = np.unique(np.linspace(0, count - 1, min(count, MOST_CLIENTS)).round().astype(np.int64))
    title = f"{name}: {groups} groups of subcarriers, {len(shown)} of {count} clients in round 1"
    with drawing(path, title, (width_in, 0.8 * width_in)) as figure:
        gains, senders = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        for place, colour in zip(shown.tolist(), CYCLE, strict=False):
            _draw_client(gains, slot, place, colour)
        if slot.fade_threshold > 0:
            level = 10 * np.log10(slot.fade_threshold)
            gains.axhline(level, color=GREY, linestyle="--", linewidth=0.8, label="deep fade")
        gains.scatter([], [], s=12, edgecolors=GREY, facecolors="none", label="does not send")
        gains.set_ylabel("gain (dB)")
        senders.bar(np.arange(groups), slot.sends.mean(axis=0), width=1.0, color=OUTCOMES["participated"])
        senders.set(xlabel="group of subcarriers", ylabel="share that sends", ylim=(0, 1), xlim=(-0.5, groups - 0.5))
        senders.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        figure.legend(loc="outside lower center", ncols=4)


def _draw_client(axes: Axes, slot: FirstSlot, place: int, colour: str) -> None:
    # A group in which a client is silent has a hollow marker
    decibels = 10 * np.log10(np.maximum(slot.gain[place], 1e-12))
    places, sends = np.arange(len(decibels)), slot.sends[place]
    axes.plot(places, decibels, color=colour, linewidth=0.9, label=f"client {slot.clients[place]}")
    axes.scatter(places[~sends], decibels[~sends], s=12, edgecolors=colour, facecolors="none", zorder=3)
