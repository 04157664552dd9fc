"""``study.png``: metrics over the rounds with their confidence bands, and after the last round.

A row for each metric and each axis (and for each combination of the factors in the middle), a column for each level of
the first factor, colours for the levels of the last one; the rightmost panel shows the last round against the first
factor. With one factor the axes stand side by side instead.
"""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from wirelessfl.study.curves import StudyCurves
from wirelessfl.study.factors import MOST_COLUMNS, Layout, Levels, lay_out, spread
from wirelessfl.study.panels import draw_curve, draw_last, scale_vertically, slant_in
from wirelessfl.study.result import Study
from wirelessfl.study.words import factor_words, level_words, setting_words
from wirelessfl.summary.axes import XAxis, is_wide, x_label
from wirelessfl.summary.curves import STEPS_SENTENCE, Curve
from wirelessfl.summary.drawing import broken, drawing, log_scale, whole_numbers
from wirelessfl.summary.intervals import is_logarithmic, lowest_of
from wirelessfl.summary.legend import Legend, legend_of
from wirelessfl.summary.style import GREY, PAGE_IN, STYLE
from wirelessfl.trace import axis_label

_PANEL_IN = (1.5, 1.6)
_AROUND_IN, _TITLE_IN, _AXIS_IN = 0.5, 0.35, 0.16


def draw_study(study: Study, path: Path, width_in: float = PAGE_IN) -> None:
    """Picture of every metric of a study, over its axes and after the last round: means over the seeds, 95 % bands.

    Args:
        study: The study; its table is written.
        path: Where the figure goes; its suffix is the format.
        width_in: Width (inches).
    """
    layout = lay_out(study.factors)
    most = max(1, int((width_in - _AROUND_IN) / _PANEL_IN[0]))
    rows = _rows(study, layout, most)
    across = max(len(row.panels) + row.last for row in rows)
    a_line = min(across, most)
    lines = -(-across // a_line)
    legend = _legend(layout, width_in)
    height = _TITLE_IN + _PANEL_IN[1] * len(rows) * lines + legend.height_in + _AXIS_IN
    if layout.columns is not None:  # levels of a single factor have their names in the legend
        slanted = len(rows) if lines > 1 else 1
        height += slanted * slant_in(layout.factor(layout.columns), (width_in - _AROUND_IN) / a_line)
    style = {**STYLE, "legend.frameon": False}
    with drawing(path, _heading(study), (width_in, height), style, _note(study)) as figure:
        if not study.complete:
            figure.text(0.5, 0.4, "no run has ended well", ha="center", color=GREY)
            return
        panels = _grid(figure, rows, a_line, lines)
        curves = StudyCurves(study)
        for row, axes in zip(rows, panels, strict=True):
            _draw_row(axes, layout, row, curves)
            _name_vertically(axes[::a_line], layout, row, study)
        room = (width_in - _AROUND_IN) / a_line
        for row, axes in zip(rows if lines > 1 else rows[:1], panels, strict=False):
            _name_columns(axes, layout, row, room)
        _name_axes(panels, layout, rows, curves, lines > 1)
        legend.draw(figure, panels[0][0])


def _grid(figure: Figure, rows: Sequence["_Row"], a_line: int, lines: int) -> list[list[Axes]]:
    # Panels of each row, on as many lines as its width needs, over one vertical axis
    cells = figure.subplots(len(rows) * lines, a_line, squeeze=False).reshape(len(rows), lines * a_line)
    panels = []
    for row, found in zip(rows, cells, strict=True):
        used = len(row.panels) + row.last
        for axes in found[used:]:
            axes.remove()
        for place, axes in enumerate(found[1:used], 1):
            axes.sharey(found[0])
            axes.tick_params(labelleft=place % a_line == 0)
        panels.append(list(found[:used]))
    return panels


@dataclass(frozen=True)
class _Row:
    # Panels of a row: a metric at the levels of the factors over the rows, each over an axis and at a level of the
    # factor over the columns; and whether a panel with the values after the last round follows

    metric: str
    levels: Levels
    panels: tuple[tuple[XAxis, int], ...]
    last: bool


def _rows(study: Study, layout: Layout, most_axes: int) -> list[_Row]:
    last = layout.colours is not None
    if layout.columns is None and len(study.x) > 1:  # axes side by side, whose ends show the last round
        chunks = [study.x[at : at + most_axes] for at in range(0, len(study.x), most_axes)]
        return [
            _Row(metric, (), tuple((x, 0) for x in chunk), last=False)
            for metric, chunk in itertools.product(study.metrics, chunks)
        ]
    columns = spread(len(layout.factor(layout.columns).levels), MOST_COLUMNS)
    return [
        _Row(metric, levels, tuple((x, column) for column in columns), last=last and x == study.x[0])
        for metric, x, levels in itertools.product(study.metrics, study.x, layout.row_combinations())
    ]


def _heading(study: Study) -> str:
    seeds = len({record.seed for record in study.records})
    missing = len(study.records) - len(study.complete)
    words = f"{study.name}: mean and 95 % confidence over {seeds} seeds" if seeds > 1 else f"{study.name}: one seed"
    words += f"; {missing} of {len(study.records)} runs missing" if missing else ""
    return words


def _note(study: Study) -> str:
    several = len({record.seed for record in study.records}) > 1
    return STEPS_SENTENCE if several and set(study.x) != {"round"} else ""


def _draw_row(panels: Sequence[Axes], layout: Layout, row: _Row, curves: StudyCurves) -> None:
    points, metric = curves.study.points(), row.metric
    shown = {x: {levels: curves.curve(metric, levels, x) for levels in points} for x, _ in row.panels}
    bands = [curve.mean for each in shown.values() for curve in each.values()]
    lowest = lowest_of(metric, [band.mean for band in bands])
    for axes, (x, column) in zip(panels, row.panels, strict=False):
        for colour in range(len(layout.factor(layout.colours).levels)):
            draw_curve(axes, metric, shown[x][layout.point(row.levels, column, colour)], layout, colour, lowest)
        _scale_horizontally(axes, x, [curve.x for curve in shown[x].values()])
        _say_missing(axes, layout, row, column, shown[x])
    if row.last:
        last = {levels: curves.last(metric, levels) for levels in points}
        draw_last(panels[-1], metric, layout, row.levels, last, lowest)
    scale_vertically(panels[0], metric, bands, lowest)


def _name_vertically(first: Sequence[Axes], layout: Layout, row: _Row, study: Study) -> None:
    # Metric and levels of a row, at the first panel of each of its lines
    seeds = len({record.seed for record in study.records})
    kind = "geometric mean" if is_logarithmic(row.metric) and seeds > 1 else ""
    levels = [setting_words(layout.factors[at], level) for at, level in zip(layout.rows, row.levels, strict=True)]
    words = [axis_label(row.metric), kind, *levels]
    for axes in first:
        text = "\n".join(broken(one, _PANEL_IN[1], STYLE["axes.labelsize"]) for one in words if one)
        axes.set_ylabel(text, parse_math=False)


def _scale_horizontally(axes: Axes, x: XAxis, curves: Sequence[NDArray[np.float64]]) -> None:
    if x == "round":
        whole_numbers(axes.xaxis, 5)
    elif is_wide(curves):
        log_scale(axes.xaxis)


def _say_missing(axes: Axes, layout: Layout, row: _Row, column: int, curves: Mapping[Levels, Curve]) -> None:
    # Names of the curves that are not in the panel, or not with all rounds, as an axis says no more of them
    factor = layout.factor(layout.colours)
    levels = [layout.point(row.levels, column, colour) for colour in range(len(factor.levels))]
    names = level_words(factor)
    found = [(names[at], curves[point].missing) for at, point in enumerate(levels) if curves[point].missing]
    if not found:
        return
    reasons = dict.fromkeys(reason for _, reason in found)
    alone = layout.colours is None
    whose = {reason: ", ".join(name for name, its in found if its == reason) for reason in reasons}
    texts = [reason if alone else f"{whose[reason]}: {reason}" for reason in reasons]
    axes.text(
        0.5,
        0.03,
        "\n".join(textwrap.fill(text, 28) for text in texts),
        transform=axes.transAxes,
        ha="center",
        va="bottom",
        fontsize=6,
        color=GREY,
        parse_math=False,
    )


def _name_columns(panels: Sequence[Axes], layout: Layout, row: _Row, room_in: float) -> None:
    factor = layout.factor(layout.columns)
    titles = [setting_words(factor, column) if layout.columns is not None else "" for _, column in row.panels]
    for axes, title in zip(panels, [*titles, "after the last round"], strict=False):
        axes.set_title(broken(title, room_in, STYLE["axes.titlesize"]), parse_math=False)


def _name_axes(
    panels: Sequence[Sequence[Axes]], layout: Layout, rows: Sequence[_Row], curves: StudyCurves, every: bool
) -> None:
    # Below the last row of each axis, and of the panels with the last round; or below every panel
    along = layout.factor(layout.colours if layout.columns is None else layout.columns)
    for at, (row, axes) in enumerate(zip(rows, panels, strict=True)):
        below = rows[at + 1] if at + 1 < len(rows) else None
        if every or below is None or below.panels != row.panels:
            for (x, _), each in zip(row.panels, axes, strict=False):
                each.set_xlabel(x_label(x, curves.energy_unit if x == "energy" else None))
        if row.last and (every or below is None or not below.last):
            axes[-1].set_xlabel(broken(factor_words(along), _PANEL_IN[0], STYLE["axes.labelsize"]))


def _legend(layout: Layout, width_in: float) -> Legend:
    if layout.colours is None:
        return legend_of((), width_in)
    factor = layout.factor(layout.colours)
    return legend_of(level_words(factor), width_in, factor_words(factor))
