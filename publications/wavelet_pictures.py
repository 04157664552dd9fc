"""The pictures of the wavelet paper's page: learning curves, accuracies and gains by noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from publications.effects import MissingRuns
from publications.figures import (
    COLOURS,
    MARKERS,
    accuracy_axis,
    draw_curves,
    draw_paper,
    draw_reference,
    legend_below,
    new_figure,
)
from publications.levels import (
    DATASET,
    SHORT,
    Level,
    Method,
    common_levels,
    draw_levels,
    level_words,
    levels_of,
    levels_of_any,
)
from publications.paper import PaperFigure
from publications.tables import Tables
from publications.wavelet_methods import (
    DP_SGD,
    DYNAMIC,
    FEDAVG,
    FEDAVG_DYNAMIC,
    FEDAVG_WAV,
    FEDAVG_WEIGHTED,
    KEYS,
    PLAIN,
    PLAIN_WAV,
    PLAIN_WEIGHTED,
    ROWS,
    SIGMA,
    WAV,
    WEIGHTED,
)
from publications.wavelet_numbers import GAINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = ("plain", "dynamic", "wavelets, as published", "wavelets at equal accounted ε")
COLUMNS = 3


class Unit(NamedTuple):
    """The methods of Fig. 7-9 or of Fig. 10-12, in the order of `LABELS`, and training without privacy."""

    methods: tuple[Method, ...]
    baseline: str
    symbol: str


SAMPLE = Unit((DP_SGD, DYNAMIC, WAV, WEIGHTED), "baseline", "σ")
CLIENT = Unit((FEDAVG, FEDAVG_DYNAMIC, FEDAVG_WAV, FEDAVG_WEIGHTED), "client-baseline", "z")


def draw_learning(unit: Unit, tables: Tables) -> Figure:
    """Learning curves, a panel for each data set and noise."""
    levels = levels_of(tables, unit.methods[0], KEYS)
    if not levels:
        raise MissingRuns(f"{unit.methods[0].study} has no finished point")
    columns = min(COLUMNS, len(levels))
    figure, panels = new_figure(columns, -(-len(levels) // columns))
    places = [axes for row in panels for axes in row]
    for axes, level in zip(places, levels, strict=False):
        _curves(axes, unit, tables, level)
    for axes in places[len(levels) :]:
        axes.set_axis_off()
    for row in panels:
        accuracy_axis(row[0])
    legend_below(figure, panels[0][0], columns=3)
    return figure


def _curves(axes: Axes, unit: Unit, tables: Tables, level: Level) -> None:
    from matplotlib.ticker import MaxNLocator

    for at, (label, method) in enumerate(zip(LABELS, unit.methods, strict=True)):
        with suppress(MissingRuns):
            study, where = method.at(level)
            draw_curves(axes, tables.study(study), [(label, where)], first_colour=at)
    with suppress(MissingRuns):
        draw_reference(axes, tables.study(unit.baseline), "no privacy", {DATASET: level[DATASET]})
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(level_words(level, unit.symbol), fontsize=8)


def draw_sample_curves(tables: Tables) -> Figure:
    """After Fig. 7-9."""
    return draw_learning(SAMPLE, tables)


def draw_client_curves(tables: Tables) -> Figure:
    """After Fig. 10-12."""
    return draw_learning(CLIENT, tables)


def draw_accuracy(tables: Tables) -> Figure:
    """Accuracy after the last round by optimizer, data set and noise."""
    figure, panels = new_figure(2, 2)
    panes = (
        ("SGD, a sample's privacy", (DP_SGD, DYNAMIC, WAV, WEIGHTED)),
        ("Adam, a sample's privacy", (PLAIN["adam"], None, PLAIN_WAV["adam"], PLAIN_WEIGHTED["adam"])),
        ("AdaGrad, a sample's privacy", (PLAIN["adagrad"], None, PLAIN_WAV["adagrad"], PLAIN_WEIGHTED["adagrad"])),
        ("FedAvg, a client's privacy", (FEDAVG, FEDAVG_DYNAMIC, FEDAVG_WAV, FEDAVG_WEIGHTED)),
    )
    levels = levels_of_any(tables, [method for _, methods in panes for method in methods if method is not None], KEYS)
    for axes, (title, methods) in zip((*panels[0], *panels[1]), panes, strict=True):
        lines = [(label, method or Method("")) for label, method in zip(LABELS, methods, strict=True)]
        draw_levels(axes, tables, lines, levels)
        axes.set_ylim(0, 100)
        axes.set_title(title, fontsize=8)
    for axes in panels[:, 0]:
        accuracy_axis(axes)
    for axes in panels[1]:
        axes.set_xlabel("noise multiplier σ", fontsize=8)
    legend_below(figure, _fullest((*panels[0], *panels[1])), columns=2)
    return figure


def draw_gains(tables: Tables) -> Figure:
    """What wavelets gain over each method, with the paper's own numbers (sections 6.3 and 6.4, Table 3)."""
    figure, panels = new_figure(3, 2)
    levels = levels_of_any(tables, [method for _, *methods in ROWS for method in methods if method is not None], KEYS)
    for axes, (name, plain, wavelet, weighted) in zip((*panels[0], *panels[1]), ROWS, strict=True):
        for at, (label, method) in enumerate((("here at equal σ", wavelet), ("here at equal accounted ε", weighted))):
            if method is not None:
                _gains(axes, tables, method, plain, levels, label, at)
        stated = [GAINS[name][level[DATASET]][level[SIGMA]] for level in levels]
        draw_paper(axes, [float(place) for place in range(len(levels))], stated)
        axes.axhline(0, linewidth=0.8, color=COLOURS[0], alpha=0.4)
        labels = [f"{level[SIGMA]}\n{SHORT[level[DATASET]]}" for level in levels]
        axes.set_xticks(np.arange(len(levels)), labels, fontsize=6)
        axes.set_xlim(-0.6, len(levels) - 0.4)
        axes.set_title(f"over {name}", fontsize=8)
    for row in panels:
        row[0].set_ylabel("gain in points", fontsize=8)
    legend_below(figure, _fullest((*panels[0], *panels[1])), columns=3)
    return figure


def _fullest(panels: Iterable[Axes]) -> Axes:
    # The panel with the most entries for a legend, as some have not run in every size
    return max(panels, key=lambda axes: len(axes.get_legend_handles_labels()[1]))


def _gains(
    axes: Axes, tables: Tables, method: Method, plain: Method, levels: Sequence[Level], label: str, at: int
) -> None:
    with suppress(MissingRuns):
        both = common_levels(tables, plain, method, KEYS)
        known = [(levels.index(level), tables.difference(method.at(level), plain.at(level))) for level in both]
        axes.errorbar(
            [place + 0.3 * (at - 0.5) for place, _ in known],
            [100 * one.mean for _, one in known],
            yerr=[100 * one.half_width for _, one in known],
            label=label,
            color=COLOURS[at + 1],
            marker=MARKERS[at],
            markersize=4,
            linestyle="none",
            capsize=2,
            linewidth=1.0,
        )


PICTURES = (
    PaperFigure(
        "curves-sample",
        "Test accuracy over the rounds with a sample's privacy, 95 % intervals over seeds, after Fig. 7-9.",
        draw_sample_curves,
    ),
    PaperFigure(
        "curves-client",
        "Test accuracy over the rounds with a client's privacy, 95 % intervals over seeds, after Fig. 10-12.",
        draw_client_curves,
    ),
    PaperFigure(
        "gains",
        "What wavelets gain by noise multiplier and data set, 95 % intervals over seeds; diamonds are the paper's own "
        "numbers (sections 6.3 and 6.4, Table 3).",
        draw_gains,
    ),
    PaperFigure(
        "accuracy",
        "Test accuracy after the last round, 95 % intervals over seeds, by noise multiplier and data set.",
        draw_accuracy,
    ),
)
