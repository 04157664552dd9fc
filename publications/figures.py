"""Pictures of a paper's page: what most of them need, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from publications.effects import MissingRuns
from publications.paper import PaperFigure
from publications.studies import Point
from publications.tables import StudyTable, Tables
from wirelessfl.study import Band
from wirelessfl.summary.style import CYCLE, LINES, ROLES, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PANEL_IN = (2.6, 2.2)
COLOURS = CYCLE
GREY = ROLES["recorded"]
MARKERS = "osD^vP"
_LOGARITHMIC_FROM = 1e3  # times the least norm

INKS: Mapping[str, Mapping[str, str]] = {
    "light": {"ink": "#000000", "faint": "#B0B0B0"},
    "dark": {"ink": "#D5D8E0", "faint": "#6B7080"},
}
"""Colours of text and axes, and of grids, on the page of each theme."""

AXES_OF: Mapping[str, tuple[str, float]] = {
    "test_accuracy": ("test accuracy (%)", 100.0),
    "test_loss": ("test loss", 1.0),
    "train_loss": ("training loss", 1.0),
    "squared_gradient_norm": ("squared gradient norm", 1.0),
    "gradient_norm": ("gradient norm", 1.0),
    "clipping_norm": ("clipping norm C", 1.0),
}
"""What a followed number is called, and its factor; another one goes by its own name."""


def new_figure(
    columns: int, rows: int = 1, *, share_y: bool = True, stretch: float = 1.0
) -> tuple[Figure, NDArray[np.object_]]:
    """An empty figure and its panels (rows, columns), each ``stretch`` times as wide as usual."""
    # The object interface needs no display and leaves no global figure behind.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (max(4.0, stretch * PANEL_IN[0] * columns + 0.4), PANEL_IN[1] * rows + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, sharey="row" if share_y else False)
    for axes in panels.flat:
        axes.tick_params(labelsize=7, which="both")
        axes.grid(alpha=0.25, linewidth=0.5)
    return figure, panels


def draw_curves(
    axes: Axes,
    table: StudyTable,
    lines: Sequence[tuple[str, Point]],
    metric: str = "test_accuracy",
    *,
    first_colour: int = 0,
    dashed: bool = False,
) -> None:
    """A number over the rounds with its 95 % band, a line for each (label, point).

    Args:
        axes: Where.
        table: Of which study.
        lines: (label, point).
        metric: What is followed: one of `publications.tables.FOLLOWED`, or of the study's own.
        first_colour: Which of `COLOURS` the first line has.
        dashed: Whether they are references, such as training without privacy: dashed, in grey.

    Raises:
        MissingRuns: no point of ``lines`` has it.
    """
    factor = AXES_OF.get(metric, (metric, 1.0))[1]
    rows_of = {label: table.curve(where, metric) for label, where in lines}
    if not any(rows_of.values()):
        raise MissingRuns(f"{table.name}: {metric} was not followed")
    for at, (label, rows) in enumerate(rows_of.items(), start=first_colour):
        if not rows:  # of a study that is not done: no entry of the legend without a line
            continue
        rounds = np.array([row.round for row in rows])
        mean, half = (factor * np.array([getattr(row, name) for row in rows]) for name in ("mean", "half_width"))
        colour = GREY if dashed else COLOURS[at % len(COLOURS)]
        axes.plot(
            rounds,
            mean,
            label=label,
            linewidth=1.2 + 0.4 * min(len(lines) - 1 - at + first_colour, 4),  # a covered curve shows as a rim
            linestyle="--" if dashed else LINES[at // len(COLOURS) % len(LINES)],
            color=colour,
        )
        known = np.isfinite(half)
        axes.fill_between(
            rounds[known], (mean - half)[known], (mean + half)[known], alpha=0.2, linewidth=0, color=colour
        )
    axes.set_xlabel("round", fontsize=8)


def draw_reference(axes: Axes, study: StudyTable, label: str, where: Point, metric: str = "test_accuracy") -> None:
    """A dashed grey line of another study, such as training without privacy; nothing where that has not run."""
    with suppress(MissingRuns):
        draw_curves(axes, study, [(label, where)], metric, dashed=True)


def draw_paper(axes: Axes, places: Sequence[float], values: Sequence[float], label: str = "paper") -> None:
    """The paper's own numbers inside our picture: open diamonds in the colour of the text.

    Args:
        axes: Where.
        places: On the horizontal axis, e.g. the last round or the tick of a level.
        values: In the unit of the axis.
        label: In the legend.
    """
    from matplotlib import rcParams

    axes.plot(
        places,
        values,
        label=label,
        linestyle="none",
        marker="D",
        markersize=5,
        markerfacecolor="none",
        markeredgecolor=rcParams["text.color"],
        markeredgewidth=0.9,
        zorder=5,
    )


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


def cut_errors(means: Sequence[float], halves: Sequence[float]) -> NDArray[np.float64]:
    """(2, n) ends of intervals of accuracies, as distances from their means in percent, cut at 0 and 100 %."""
    middle, half = np.asarray(means, dtype=np.float64), np.nan_to_num(np.asarray(halves, dtype=np.float64))
    return np.stack([np.minimum(half, middle), np.minimum(half, 100 - middle)])


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
        means, halves = ([100 * float(getattr(one, name)[0]) for _, one in known] for name in ("mean", "half_width"))
        axes.errorbar(
            [place + beside for place, _ in known],
            means,
            yerr=cut_errors(means, halves),
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
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))


def accuracy_axis(axes: Axes, metric: str = "test_accuracy") -> None:
    """Names the vertical axis."""
    axes.set_ylabel(AXES_OF.get(metric, (metric.replace("_", " "), 1.0))[0], fontsize=8)


def norm_axis(axes: Axes) -> None:
    """Vertical axis of norms: from zero, and logarithmic where that of a model that is lost would hide the others."""
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    least, largest = np.min(drawn[drawn > 0]), np.max(drawn[drawn > 0])
    if largest < _LOGARITHMIC_FROM * least:
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        axes.set_ylim(bottom=least / 2)


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
    """Write a picture in both themes, see `write_both`; nothing where runs are missing."""
    try:
        write_both(lambda: figure.draw(tables), folder, figure.name, str(tables.about["paper"]))
    except MissingRuns:
        remove_picture(folder, figure.name)


def remove_picture(folder: Path, name: str) -> None:
    """Remove the files of a picture that no longer follows from the runs."""
    for end in (".svg", "-dark.svg", ".png"):
        (folder / f"{name}{end}").unlink(missing_ok=True)


def write_both(draw: Callable[[], Figure], folder: Path, name: str, paper: str) -> None:
    """Write ``<name>.svg``, ``<name>-dark.svg`` and ``<name>.png``, the same bytes for the same numbers.

    Args:
        draw: Draws the picture; called once for each theme.
        folder: Where it is written.
        name: Of the files.
        paper: Whose it is: names in the files are told apart by it.

    Raises:
        MissingRuns: a number is missing; nothing is written.
    """
    import matplotlib as mpl
    from matplotlib.rcsetup import cycler

    for theme, colours in INKS.items():
        inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        look: Any = {**STYLE, **dict.fromkeys(inked, colours["ink"]), "grid.color": colours["faint"]}
        look |= {"axes.prop_cycle": cycler(color=COLOURS), "text.parse_math": True}  # powers of ten on logarithmic axes
        with mpl.rc_context({**look, "svg.hashsalt": f"{paper}-{name}", "legend.facecolor": "none"}):
            drawn = draw()
            if theme == "light":
                drawn.savefig(folder / f"{name}.svg", transparent=True, metadata={"Date": None})
                drawn.savefig(folder / f"{name}.png", dpi=200, metadata={"Software": None})
            else:
                drawn.savefig(folder / f"{name}-dark.svg", transparent=True, metadata={"Date": None})


def note(axes: Axes, words: str) -> None:
    """Small grey words in the lower right corner of a panel, below curves that rise."""
    axes.text(0.98, 0.03, words, transform=axes.transAxes, ha="right", fontsize=7, color=GREY)
