"""The pictures of the wavelet paper's page: learning curves, accuracies and gains by noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from publications.effects import MissingRuns
from publications.figures import (
    COLOURS,
    GREY,
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
    DATASETS,
    Level,
    Method,
    common_levels,
    draw_levels,
    level_words,
    levels_of_any,
    tick_labels,
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
    PAPER_LEVELS,
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
    from numpy.typing import NDArray

LABELS = ("plain", "dynamic", "wavelets, as published", "wavelets at equal accounted ε")
COLUMNS = 3


class Unit(NamedTuple):
    """The methods of Fig. 7-9 or of Fig. 10-12, in the order of `LABELS`, and training without privacy."""

    methods: tuple[Method, ...]
    baseline: str
    symbol: str


PANES = tuple(
    (title, tuple(zip(LABELS, methods, strict=True)))
    for title, methods in (
        ("SGD, a sample's privacy", (DP_SGD, DYNAMIC, WAV, WEIGHTED)),
        ("Adam, a sample's privacy", (PLAIN["adam"], None, PLAIN_WAV["adam"], PLAIN_WEIGHTED["adam"])),
        ("AdaGrad, a sample's privacy", (PLAIN["adagrad"], None, PLAIN_WAV["adagrad"], PLAIN_WEIGHTED["adagrad"])),
        ("FedAvg, a client's privacy", (FEDAVG, FEDAVG_DYNAMIC, FEDAVG_WAV, FEDAVG_WEIGHTED)),
    )
)
"""The panels of the accuracies: title, and by label the method, None where there is none."""

SAMPLE = Unit((DP_SGD, DYNAMIC, WAV, WEIGHTED), "baseline", "σ")
CLIENT = Unit((FEDAVG, FEDAVG_DYNAMIC, FEDAVG_WAV, FEDAVG_WEIGHTED), "client-baseline", "z")


def draw_learning(unit: Unit, tables: Tables) -> Figure:
    """Learning curves, a panel for each data set and noise at which some method has run."""
    levels = levels_of_any(tables, unit.methods, KEYS)
    columns = min(COLUMNS, len(levels))
    figure, panels = new_figure(columns, -(-len(levels) // columns), share_y=False)
    places = [axes for row in panels for axes in row]
    for axes, level in zip(places, levels, strict=False):
        _curves(axes, unit, tables, level)
    for axes in places[len(levels) :]:
        axes.set_axis_off()
    for data in DATASETS:
        _share_limits([axes for axes, level in zip(places, levels, strict=False) if level[DATASET] == data])
    for row in panels:
        accuracy_axis(row[0])
    legend_below(figure, _fullest(places[: len(levels)]), columns=3)
    return figure


def _curves(axes: Axes, unit: Unit, tables: Tables, level: Level) -> None:
    from matplotlib.ticker import MaxNLocator

    for at, (label, method) in enumerate(zip(LABELS, unit.methods, strict=True)):
        with suppress(MissingRuns):
            study, where = method.at(level)
            draw_curves(axes, tables.study(study), [(label, where)], first_colour=at)
    with suppress(MissingRuns):
        draw_reference(axes, tables.study(unit.baseline), "no privacy", {DATASET: level[DATASET]})
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(level_words(level, unit.symbol), fontsize=8)


def _share_limits(panels: Sequence[Axes]) -> None:
    """The same vertical axis for all panels of a data set, from the lowest curve after a quarter of the rounds up.

    From 0 to 100 %, gains of a point could not be told from none.
    """
    lines = [np.asarray(line.get_xydata(), dtype=float) for axes in panels for line in axes.lines]
    if not lines:
        return
    late = np.concatenate([line[line[:, 0] >= line[-1, 0] / 4, 1] for line in lines])
    for axes in panels:
        axes.set_ylim(*_limits(late))


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of an axis of accuracies in percent, with a margin; all of it where no accuracy is known."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 100.0
    margin = 0.5 + 0.06 * (known.max() - known.min())
    return max(0.0, known.min() - margin), min(100.0, known.max() + margin)


def draw_sample_curves(tables: Tables) -> Figure:
    """After Fig. 7-9."""
    return draw_learning(SAMPLE, tables)


def draw_client_curves(tables: Tables) -> Figure:
    """After Fig. 10-12."""
    return draw_learning(CLIENT, tables)


def draw_accuracy(tables: Tables) -> Figure:
    """Accuracy after the last round by optimizer, data set and noise; optimizers of which nothing has run are left out.

    Raises:
        MissingRuns: nothing has run.
    """
    panes = [(title, lines, levels) for title, lines in PANES if (levels := _levels_run(tables, lines))]
    if not panes:
        raise MissingRuns("no method has a finished point")
    columns = min(2, len(panes))
    figure, panels = new_figure(columns, -(-len(panes) // columns), share_y=False)
    places = [axes for row in panels for axes in row]
    for axes, (title, lines, levels) in zip(places, panes, strict=False):
        draw_levels(axes, tables, [(label, method or Method("")) for label, method in lines], levels)
        axes.set_ylim(*_limits(_drawn(axes)))
        axes.set_title(title, fontsize=8)
        axes.set_xlabel("noise multiplier σ", fontsize=8)
    for axes in places[len(panes) :]:
        axes.set_axis_off()
    for row in panels:
        accuracy_axis(row[0])
    legend_below(figure, _fullest(places[: len(panes)]), columns=2)
    return figure


def _levels_run(tables: Tables, lines: Sequence[tuple[str, Method | None]]) -> list[Level]:
    try:
        return levels_of_any(tables, [method for _, method in lines if method is not None], KEYS)
    except MissingRuns:
        return []


def _drawn(axes: Axes) -> NDArray[np.float64]:
    # The ends of all intervals
    ends = [path.vertices for one in axes.collections for path in one.get_paths()]
    return np.concatenate([np.asarray(one, dtype=float)[:, 1] for one in ends])


def draw_gains(tables: Tables) -> Figure:
    """What wavelets gain over each method, at every level at which the paper states its own gain.

    Raises:
        MissingRuns: nothing has run.
    """
    levels_of_any(tables, [method for _, *methods in ROWS for method in methods if method is not None], KEYS)
    figure, panels = new_figure(3, 2)
    for axes, (name, plain, wavelet, weighted) in zip((*panels[0], *panels[1]), ROWS, strict=True):
        for at, (label, method) in enumerate((("here at equal σ", wavelet), ("here at equal accounted ε", weighted))):
            if method is not None:
                _gains(axes, tables, method, plain, label, at)
        if not axes.containers:
            axes.text(0.03, 0.93, "not run in this size", transform=axes.transAxes, fontsize=7, color=GREY)
        stated = [GAINS[name][level[DATASET]][level[SIGMA]] for level in PAPER_LEVELS]
        draw_paper(axes, [float(place) for place in range(len(PAPER_LEVELS))], stated)
        axes.axhline(0, linewidth=0.8, color=COLOURS[0], alpha=0.4)
        axes.set_xticks(np.arange(len(PAPER_LEVELS)), tick_labels(PAPER_LEVELS), fontsize=6)
        axes.set_xlim(-0.6, len(PAPER_LEVELS) - 0.4)
        axes.set_title(f"over {name}", fontsize=8)
    for row in panels:
        row[0].set_ylabel("gain in points", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("noise multiplier σ", fontsize=8)
    legend_below(figure, _fullest((*panels[0], *panels[1])), columns=3)
    return figure


def _fullest(panels: Iterable[Axes]) -> Axes:
    # The panel with the most entries for a legend, as some have not run in every size
    return max(panels, key=lambda axes: len(axes.get_legend_handles_labels()[1]))


def _gains(axes: Axes, tables: Tables, method: Method, plain: Method, label: str, at: int) -> None:
    with suppress(MissingRuns):
        both = common_levels(tables, plain, method, KEYS)
        known = [(PAPER_LEVELS.index(level), tables.difference(method.at(level), plain.at(level))) for level in both]
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


_CUT = (
    "Each data set has a vertical axis of its own, which begins at the lowest curve after a quarter of the rounds. "
    "What has not run in this size is left out."
)

PICTURES = (
    PaperFigure(
        "curves-sample",
        f"Test accuracy over the rounds with a sample's privacy, 95 % intervals over seeds, after Fig. 7-9. {_CUT}",
        draw_sample_curves,
    ),
    PaperFigure(
        "curves-client",
        f"Test accuracy over the rounds with a client's privacy, 95 % intervals over seeds, after Fig. 10-12. {_CUT}",
        draw_client_curves,
    ),
    PaperFigure(
        "gains",
        "What wavelets gain by noise multiplier and data set, 95 % intervals over seeds; diamonds are the paper's own "
        "numbers (sections 6.3 and 6.4, Table 3). Where a diamond stands alone, nothing has run in this size.",
        draw_gains,
    ),
    PaperFigure(
        "accuracy",
        "Test accuracy after the last round, 95 % intervals over seeds, by noise multiplier and data set. What has not "
        "run in this size is left out, and each panel has a vertical axis of its own.",
        draw_accuracy,
    ),
)
