"""``study.png``: metrics over the rounds with their confidence bands, and after the last round.

A row for each metric (and for each combination of the factors in the middle), a column for each level of the first
factor, colours for the levels of the last one; the rightmost panel shows the last round against the first factor.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation, Transform

from wirelessfl.study.factors import MOST_COLUMNS, Factor, Layout, Levels, lay_out, spread
from wirelessfl.study.result import Band, Study, band
from wirelessfl.summary.numbers import last_finite
from wirelessfl.summary.style import CYCLE, GREY
from wirelessfl.trace import ROOT

LINES = ("-", "--", ":", "-.")
MARKERS = "osD^vP"
PANEL_IN = (2.2, 1.9)

_WIDE_RANGE = 10.0
_BESIDE_PT = 2.5
_MARGIN = 0.12
_UNITS = {variable.name: variable.units for variable in ROOT.variables}


def draw_study(study: Study, path: Path) -> None:
    """Picture of every metric of a study, over the rounds and after the last one: means over the seeds, 95 % bands.

    Args:
        study: The study; its table is written.
        path: The PNG.
    """
    layout = lay_out(study.factors)
    columns = spread(len(layout.factor(layout.columns).levels), MOST_COLUMNS)
    rows = list(itertools.product(study.metrics, layout.row_combinations()))
    last = layout.colours is not None
    width = max(3.5, PANEL_IN[0] * (len(columns) + last))
    figure = Figure(figsize=(width, PANEL_IN[1] * len(rows) + 1.0), layout="constrained")
    if study.complete:
        panels = figure.subplots(len(rows), len(columns) + last, squeeze=False, sharey="row")
        curves = _curves(study)
        for (metric, row), axes in zip(rows, panels, strict=True):
            _draw_row(axes, layout, metric, row, columns, curves[metric])
        _name_columns(panels[0], panels[-1], layout, columns)
        _legend(figure, panels[0][0], layout)
    else:
        figure.text(0.5, 0.4, "no run has ended well", ha="center", fontsize=9, color=GREY)
    figure.suptitle(_heading(study), fontsize=9, parse_math=False)
    figure.savefig(path, dpi=200)


@dataclass(frozen=True)
class _Curve:
    # Metric at one point: by round, and at the end of each run, which may differ in length

    rounds: Band
    last: Band


def _curves(study: Study) -> dict[str, dict[Levels, _Curve]]:
    runs = dict(list(study.to_dataframe().groupby("run", sort=False)))
    curves: dict[str, dict[Levels, _Curve]] = {metric: {} for metric in study.metrics}
    for metric, (levels, records) in itertools.product(study.metrics, study.points().items()):
        scale = 100.0 if metric == "test_accuracy" else 1.0
        series = [scale * runs[record.run][metric].to_numpy() for record in records]
        curves[metric][levels] = _Curve(band(series), band([[last_finite(one)] for one in series]))
    return curves


def _axis_text(metric: str) -> str:
    unit = "%" if metric == "test_accuracy" else _UNITS[metric]
    words = metric.replace("epsilon", "ε").replace("_", " ")
    return words if unit == "1" else f"{words} ({unit})"


def _heading(study: Study) -> str:
    seeds = len({record.seed for record in study.records})
    missing = len(study.records) - len(study.complete)
    words = f"{study.name}: mean and 95 % confidence over {seeds} seeds" if seeds > 1 else f"{study.name}: one seed"
    return f"{words}; {missing} of {len(study.records)} runs missing" if missing else words


def _draw_row(
    panels: Sequence[Axes],
    layout: Layout,
    metric: str,
    row: Levels,
    columns: Sequence[int],
    curves: Mapping[Levels, _Curve],
) -> None:
    for axes, column in zip(panels, columns, strict=False):
        for colour in range(len(layout.factor(layout.colours).levels)):
            _draw_curve(axes, curves[layout.point(row, column, colour)].rounds, layout, colour)
    if len(panels) > len(columns):
        _draw_last(panels[-1], layout, row, curves)
    for axes in panels:
        axes.tick_params(labelsize=7, which="both")
        axes.grid(alpha=0.25, linewidth=0.5)
    for axes in panels[: len(columns)]:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    _scale_vertically(panels[0], metric, [one.rounds for one in curves.values()])
    panels[0].set_ylabel(
        "\n".join(filter(None, (_axis_text(metric), layout.row_text(row)))), fontsize=8, parse_math=False
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


def _draw_curve(axes: Axes, curve: Band, layout: Layout, colour: int) -> None:
    rounds = np.arange(1, len(curve.mean) + 1)
    known = np.isfinite(curve.mean)
    style: dict[str, Any] = {"color": CYCLE[colour % len(CYCLE)]}
    below = len(layout.factor(layout.colours).levels) - 1 - colour
    axes.plot(
        rounds[known],
        curve.mean[known],
        linestyle=LINES[colour // len(CYCLE) % len(LINES)],
        linewidth=1.2 + 0.4 * min(below, 4),  # a curve that a later one covers shows as its rim
        marker="." if known.sum() < 3 else "",
        label=str(colour),
        **style,
    )
    banded = known & np.isfinite(curve.half_width)
    low, high = curve.mean - curve.half_width, curve.mean + curve.half_width
    axes.fill_between(rounds[banded], low[banded], high[banded], alpha=0.2, linewidth=0, **style)


def _draw_last(axes: Axes, layout: Layout, row: Levels, curves: Mapping[Levels, _Curve]) -> None:
    alone = layout.columns is None
    along = layout.factor(layout.colours if alone else layout.columns)
    places = _place(axes, along)
    colours = 1 if alone else len(layout.factor(layout.colours).levels)
    for colour in range(colours):
        points = [layout.point(row, level, level if alone else colour) for level in range(len(along.levels))]
        last = [curves[point].last for point in points]
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


def _name_columns(top: Sequence[Axes], bottom: Sequence[Axes], layout: Layout, columns: Sequence[int]) -> None:
    factor = layout.factor(layout.columns)
    for column, first, last in zip(columns, top, bottom, strict=False):
        if layout.columns is not None:
            first.set_title(f"{factor.name} = {factor.label(column)}", fontsize=8, parse_math=False)
        last.set_xlabel("round", fontsize=8)
    if layout.colours is not None:
        top[-1].set_title("after the last round", fontsize=8)
        along = layout.factor(layout.colours) if layout.columns is None else factor
        bottom[-1].set_xlabel(along.name, fontsize=8)


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
