"""``study.png``: metrics over the rounds with their confidence bands, and after the last round.

A row for each metric and each axis (and for each combination of the factors in the middle), a column for each level of
the first factor, colours for the levels of the last one; the rightmost panel shows the last round against the first
factor. With one factor the axes stand side by side instead.
"""

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import NDArray

from wirelessfl.study.curves import StudyCurves
from wirelessfl.study.factors import MOST_COLUMNS, Factor, Layout, Levels, lay_out, spread
from wirelessfl.study.result import Study
from wirelessfl.summary.axes import XAxis, is_wide, x_label
from wirelessfl.summary.curves import STEPS, Band, Curve
from wirelessfl.summary.drawing import log_scale, save
from wirelessfl.summary.style import CYCLE, GREY, PAGE_IN
from wirelessfl.trace import ROOT

LINES = ("-", "--", ":", "-.")
MARKERS = "osD^vP"
PANEL_IN = (2.2, 1.9)

_AXES_IN = 1.75
_WIDE_RANGE = 10.0
_BESIDE_PT = 2.5
_MARGIN = 0.12
_UNITS = {variable.name: variable.units for variable in ROOT.variables}


def draw_study(study: Study, path: Path, width_in: float = PAGE_IN) -> None:
    """Picture of every metric of a study, over its axes and after the last round: means over the seeds, 95 % bands.

    Args:
        study: The study; its table is written.
        path: Where the figure goes; its suffix is the format.
        width_in: Width (inches).
    """
    layout = lay_out(study.factors)
    rows = _rows(study, layout, max(1, int(width_in / _AXES_IN)))
    across = max(len(row.panels) + row.last for row in rows)
    figure = Figure(figsize=(width_in, PANEL_IN[1] * len(rows) + 1.0), layout="constrained")
    if study.complete:
        panels = figure.subplots(len(rows), across, squeeze=False, sharey="row")
        curves = StudyCurves(study)
        for row, axes in zip(rows, panels, strict=True):
            _draw_row(axes, layout, row, curves)
        _name_columns(panels[0], layout, rows[0])
        _name_axes(panels, layout, rows, curves)
        _legend(figure, panels[0][0], layout)
    else:
        figure.text(0.5, 0.4, "no run has ended well", ha="center", fontsize=9, color=GREY)
    figure.suptitle(_heading(study), fontsize=9, parse_math=False)
    save(figure, path)


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


def _axis_text(metric: str) -> str:
    unit = "%" if metric == "test_accuracy" else _UNITS[metric]
    words = metric.replace("epsilon", "ε").replace("_", " ")
    return words if unit == "1" else f"{words} ({unit})"


def _heading(study: Study) -> str:
    seeds = len({record.seed for record in study.records})
    missing = len(study.records) - len(study.complete)
    words = f"{study.name}: mean and 95 % confidence over {seeds} seeds" if seeds > 1 else f"{study.name}: one seed"
    words += f"; {missing} of {len(study.records)} runs missing" if missing else ""
    stepped = seeds > 1 and set(study.x) != {"round"}
    return f"{words}\n{STEPS}" if stepped else words


def _draw_row(panels: Sequence[Axes], layout: Layout, row: _Row, curves: StudyCurves) -> None:
    points = curves.study.points()
    shown = {x: {levels: curves.curve(row.metric, levels, x) for levels in points} for x, _ in row.panels}
    for axes, (x, column) in zip(panels, row.panels, strict=False):
        for colour in range(len(layout.factor(layout.colours).levels)):
            _draw_curve(axes, shown[x][layout.point(row.levels, column, colour)], layout, colour)
        _scale_horizontally(axes, x, [curve.x for curve in shown[x].values()])
        _say_missing(axes, layout, row, column, shown[x])
    used = len(row.panels)
    if row.last:
        _draw_last(panels[used], layout, row.levels, {levels: curves.last(row.metric, levels) for levels in points})
    for axes in panels[used + row.last :]:
        axes.remove()
    for axes in panels[: used + row.last]:
        axes.tick_params(labelsize=7, which="both")
        axes.grid(alpha=0.25, linewidth=0.5)
    _scale_vertically(panels[0], row.metric, [curve.mean for each in shown.values() for curve in each.values()])
    panels[0].set_ylabel(
        "\n".join(filter(None, (_axis_text(row.metric), layout.row_text(row.levels)))), fontsize=8, parse_math=False
    )


def _scale_horizontally(axes: Axes, x: XAxis, curves: Sequence[NDArray[np.float64]]) -> None:
    if x == "round":
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    elif is_wide(curves):
        log_scale(axes.xaxis)


def _say_missing(axes: Axes, layout: Layout, row: _Row, column: int, curves: Mapping[Levels, Curve]) -> None:
    # Names of the curves that are not in the panel, or not with all rounds, as an axis says no more of them
    factor = layout.factor(layout.colours)
    levels = [layout.point(row.levels, column, colour) for colour in range(len(factor.levels))]
    found = [(factor.label(at), curves[point].missing) for at, point in enumerate(levels) if curves[point].missing]
    if not found:
        return
    reasons = dict.fromkeys(reason for _, reason in found)
    alone = layout.colours is None
    names = {reason: ", ".join(name for name, its in found if its == reason) for reason in reasons}
    texts = [reason if alone else f"{names[reason]}: {reason}" for reason in reasons]
    axes.text(
        0.5,
        0.03,
        "\n".join(textwrap.fill(text, 36) for text in texts),
        transform=axes.transAxes,
        ha="center",
        va="bottom",
        fontsize=6,
        color=GREY,
        parse_math=False,
    )


def _scale_vertically(axes: Axes, metric: str, bands: Sequence[Band]) -> None:
    # Vertical axis over all means, and over the bands up to half the range of the means beyond them
    means = np.concatenate([one.mean for one in bands])
    means = means[np.isfinite(means)]
    if metric.startswith("epsilon") and np.any(means > 0):
        axes.set_yscale("log")
        return
    if not len(means):
        return
    low, high = float(means.min()), float(means.max())
    room = 0.5 * (high - low) or 0.1 * abs(high) or 1.0
    edges = np.concatenate([one.mean + sign * one.half_width for one in bands for sign in (-1, 1)])
    edges = edges[np.isfinite(edges)]
    bottom, top = (max(edges.min(), low - room), min(edges.max(), high + room)) if len(edges) else (low, high)
    bottom = max(bottom, 0.0) if low >= 0 else bottom
    top = min(top, 100.0) if metric == "test_accuracy" else top
    axes.set_ylim(bottom - 0.1 * room, top + 0.1 * room)


def _draw_curve(axes: Axes, drawn: Curve, layout: Layout, colour: int) -> None:
    places, curve = drawn.x, drawn.mean
    known = np.isfinite(curve.mean)
    style: dict[str, Any] = {"color": CYCLE[colour % len(CYCLE)]}
    below = len(layout.factor(layout.colours).levels) - 1 - colour
    axes.plot(
        places[known],
        curve.mean[known],
        linestyle=LINES[colour // len(CYCLE) % len(LINES)],
        linewidth=1.2 + 0.4 * min(below, 4),  # a curve that a later one covers shows as its rim
        marker="." if known.sum() < 3 else "",
        label=str(colour),
        **style,
    )
    banded = known & np.isfinite(curve.half_width)
    low, high = curve.mean - curve.half_width, curve.mean + curve.half_width
    axes.fill_between(places[banded], low[banded], high[banded], alpha=0.2, linewidth=0, **style)


def _draw_last(axes: Axes, layout: Layout, row: Levels, bands: Mapping[Levels, Band]) -> None:
    alone = layout.columns is None
    along = layout.factor(layout.colours if alone else layout.columns)
    places = _place(axes, along)
    colours = 1 if alone else len(layout.factor(layout.colours).levels)
    for colour in range(colours):
        points = [layout.point(row, level, level if alone else colour) for level in range(len(along.levels))]
        last = [bands[point] for point in points]
        half_widths = [float(one.half_width[0]) for one in last]
        axes.errorbar(
            places,
            [float(one.mean[0]) for one in last],
            yerr=half_widths if np.isfinite(half_widths).any() else None,
            transform=_beside(axes, colour, colours),
            color=GREY if alone else CYCLE[colour % len(CYCLE)],
            linestyle=LINES[colour // len(CYCLE) % len(LINES)],
            linewidth=1.0,
            marker=MARKERS[colour % len(MARKERS)],
            markersize=3,
            capsize=2,
        )


def _beside(axes: Axes, position: int, count: int) -> Transform:
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = _BESIDE_PT * (position - (count - 1) / 2)
    return axes.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def _place(axes: Axes, factor: Factor) -> list[float]:
    labels = [factor.label(level) for level in range(len(factor.levels))]
    if not factor.is_numeric:
        crowded = sum(map(len, labels)) > 24
        places = [float(position) for position in range(len(labels))]
        axes.set_xticks(
            places, labels, rotation=30 if crowded else 0, ha="right" if crowded else "center", parse_math=False
        )
        axes.set_xlim(-0.5, len(labels) - 0.5)
        return places
    places = [float(level[0]) for level in factor.levels]
    low, high = min(places), max(places)
    if low > 0 and high >= _WIDE_RANGE * low:
        axes.set_xscale("log")
        axes.set_xticks(places, labels)
        axes.minorticks_off()
        axes.set_xlim(low * (low / high) ** _MARGIN, high * (high / low) ** _MARGIN)
    else:
        if len(places) <= MOST_COLUMNS:
            axes.set_xticks(places, labels)
        axes.set_xlim(low - _MARGIN * (high - low), high + _MARGIN * (high - low))
    return places


def _name_columns(top: Sequence[Axes], layout: Layout, row: _Row) -> None:
    factor = layout.factor(layout.columns)
    for (_, column), axes in zip(row.panels, top, strict=False):
        if layout.columns is not None:
            axes.set_title(f"{factor.name} = {factor.label(column)}", fontsize=8, parse_math=False)
    if row.last:
        top[len(row.panels)].set_title("after the last round", fontsize=8)


def _name_axes(panels: Iterable[Sequence[Axes]], layout: Layout, rows: Sequence[_Row], curves: StudyCurves) -> None:
    # Below the last row of each axis, and of the panels with the last round
    along = layout.factor(layout.colours if layout.columns is None else layout.columns)
    for at, (row, axes) in enumerate(zip(rows, panels, strict=True)):
        below = rows[at + 1] if at + 1 < len(rows) else None
        if below is None or below.panels != row.panels:
            for (x, _), each in zip(row.panels, axes, strict=False):
                each.set_xlabel(x_label(x, curves.energy_unit if x == "energy" else None), fontsize=8)
        if row.last and (below is None or not below.last):
            axes[len(row.panels)].set_xlabel(along.name, fontsize=8)


def _legend(figure: Figure, axes: Axes, layout: Layout) -> None:
    # Legend of the colours below all panels.
    #
    # Matplotlib takes what lies between two dollars for mathematics and hides a label that begins with an underscore:
    # the texts are set afterwards, as they are.
    if layout.colours is None:
        return
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(
        handles,
        labels,
        title=layout.factor(layout.colours).name,
        fontsize=7,
        title_fontsize=7,
        loc="outside lower center",
        ncols=min(len(labels), 6),
        frameon=False,
    )
    for text, colour in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(layout.factor(layout.colours).label(int(colour)))
