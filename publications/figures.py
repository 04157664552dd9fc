"""Pictures of a paper's page: what most of them need, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from publications.effects import MissingRuns
from publications.paper import PaperFigure
from publications.studies import Point
from publications.tables import StudyTable, Tables
from wirelessfl.study import Band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PANEL_IN = (2.6, 2.2)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#000000")
"""Okabe and Ito's colours, which colour-blind readers tell apart."""
GREY = "#7F7F7F"
LINES = ("-", "--", ":", "-.")
MARKERS = "osD^vP"


def new_figure(columns: int, rows: int = 1, *, share_y: bool = True) -> tuple[Figure, NDArray[np.object_]]:
    """An empty figure and its panels (rows, columns)."""
    # The object interface needs no display and leaves no global figure behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (max(4.0, PANEL_IN[0] * columns + 0.4), PANEL_IN[1] * rows + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else False)
    for axes in panels.flat:
        axes.tick_params(labelsize=7, which="both")
        axes.grid(alpha=0.25, linewidth=0.5)
    return figure, panels


def draw_curves(axes: Axes, table: StudyTable, lines: Sequence[tuple[str, Point]]) -> None:
    """Test accuracy over the rounds with its 95 % band, a line for each (label, point)."""
    for at, (label, where) in enumerate(lines):
        rows = table.curve(where)
        rounds = np.array([row.round for row in rows])
        mean, half = (100 * np.array([getattr(row, name) for row in rows]) for name in ("mean", "half_width"))
        colour = COLOURS[at % len(COLOURS)]
        axes.plot(
            rounds,
            mean,
            label=label,
            linewidth=1.2 + 0.4 * min(len(lines) - 1 - at, 4),  # a curve that a later one covers shows as its rim
            linestyle=LINES[at // len(COLOURS) % len(LINES)],
            color=colour,
        )
        known = np.isfinite(half)
        axes.fill_between(
            rounds[known], (mean - half)[known], (mean + half)[known], alpha=0.2, linewidth=0, color=colour
        )
    axes.set_xlabel("round", fontsize=8)


def draw_final(
    axes: Axes, tables: Tables, study: str, lines: Sequence[tuple[str, Sequence[Point]]], ticks: Sequence[str]
) -> None:
    """Test accuracy after the last round with its 95 % interval, points side by side at each tick.

    Args:
        axes: Where.
        tables: The paper's.
        study: Which study.
        lines: (label, one point a tick).
        ticks: What stands below.
    """
    draw_bands(axes, [(label, [tables.band(study, where) for where in points]) for label, points in lines], ticks)


def draw_bands(axes: Axes, lines: Sequence[tuple[str, Sequence[Band | None]]], ticks: Sequence[str]) -> None:
    """Accuracies with their intervals, side by side at each tick; None where there is none.

    Args:
        axes: Where.
        lines: (label, one band a tick).
        ticks: What stands below.
    """
    spread = min(0.5, 0.12 * len(lines))
    for at, (label, bands) in enumerate(lines):
        beside = spread * (at - (len(lines) - 1) / 2) / max(1, len(lines) - 1)
        known = [(place, one) for place, one in enumerate(bands) if one is not None]
        axes.errorbar(
            [place + beside for place, _ in known],
            [100 * float(one.mean[0]) for _, one in known],
            yerr=[100 * float(np.nan_to_num(one.half_width[0])) for _, one in known],
            label=label,
            color=COLOURS[at % len(COLOURS)],
            marker=MARKERS[at % len(MARKERS)],
            markersize=4,
            linestyle="none",
            capsize=2,
            linewidth=1.0,
        )
    axes.set_xticks(np.arange(len(ticks)), list(ticks))
    axes.set_xlim(-0.5, len(ticks) - 0.5)


def accuracy_axis(axes: Axes) -> None:
    """Names the vertical axis."""
    axes.set_ylabel("test accuracy (%)", fontsize=8)


def legend_below(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """The legend below all panels, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        fontsize=7,
        loc="outside lower center",
        ncols=min(len(labels), columns),
        frameon=False,
    )


def write_figure(figure: PaperFigure, tables: Tables, folder: Path) -> None:
    """Write ``<name>.svg`` and ``<name>.png``, the same bytes for the same numbers; nothing where runs are missing."""
    import matplotlib as mpl

    files: Mapping[str, Path] = {suffix: folder / f"{figure.name}.{suffix}" for suffix in ("svg", "png")}
    try:
        drawn = figure.draw(tables)
    except MissingRuns:
        for file in files.values():
            file.unlink(missing_ok=True)
        return
    with mpl.rc_context({"svg.hashsalt": f"{tables.about['paper']}-{figure.name}"}):
        drawn.savefig(files["svg"], metadata={"Date": None})
    drawn.savefig(files["png"], dpi=200, metadata={"Software": None})


def note(axes: Axes, words: str) -> None:
    """Small grey words in the lower right corner of a panel, below curves that rise."""
    axes.text(0.98, 0.03, words, transform=axes.transAxes, ha="right", fontsize=7, color=GREY)
