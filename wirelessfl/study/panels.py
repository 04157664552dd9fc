"""Panels of the figure of a study: curves with their bands, values after the last round, and their scales."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation, Transform

from wirelessfl.study.factors import MOST_COLUMNS, Factor, Layout, Levels
from wirelessfl.study.words import level_words
from wirelessfl.summary.curves import Band, Curve
from wirelessfl.summary.drawing import log_scale, panel_width_in, plain_number, show_range
from wirelessfl.summary.intervals import interval_of, is_logarithmic, vertical_range
from wirelessfl.summary.style import CYCLE, GREY, LINES

MARKERS = "osD^vP"

_WIDE_RANGE = 10.0
_BESIDE_PT, _ALL_BESIDE_PT = 3.0, 15.0
_MARGIN = 0.12
_LETTER_IN, _SLANT = 0.06, 30


def draw_curve(axes: Axes, metric: str, drawn: Curve, layout: Layout, colour: int, lowest: float) -> None:
    """Mean of a metric over an axis with its band, in the colour of a level."""
    curve = interval_of(metric, drawn.mean, lowest)
    known = np.isfinite(curve.mean)
    style: dict[str, Any] = {"color": CYCLE[colour % len(CYCLE)]}
    below = len(layout.factor(layout.colours).levels) - 1 - colour
    axes.plot(
        drawn.x[known],
        curve.mean[known],
        linestyle=LINES[colour // len(CYCLE) % len(LINES)],
        linewidth=1.2 + 0.4 * min(below, 4),  # a curve that a later one covers shows as its rim
        marker="o" if known.sum() < 3 else "",
        label=str(colour),
        **style,
    )
    banded = known & np.isfinite(curve.low) & np.isfinite(curve.high)
    axes.fill_between(drawn.x[banded], curve.low[banded], curve.high[banded], alpha=0.2, linewidth=0, **style)


def draw_last(
    axes: Axes, metric: str, layout: Layout, row: Levels, bands: Mapping[Levels, Band], lowest: float
) -> None:
    """Metric after the last round against the first factor; categories are points, which no line joins."""
    alone = layout.columns is None
    along = layout.factor(layout.colours if alone else layout.columns)
    places = _place(axes, along, coloured=alone)
    colours = 1 if alone else len(layout.factor(layout.colours).levels)
    for colour in range(colours):
        points = [layout.point(row, level, level if alone else colour) for level in range(len(along.levels))]
        last = [interval_of(metric, bands[point], lowest) for point in points]
        mean, low, high = (np.array([float(getattr(one, name)[0]) for one in last]) for name in ("mean", "low", "high"))
        errors = np.nan_to_num(np.maximum([mean - low, high - mean], 0.0), posinf=0.0)
        # Categories of the only factor have the colours of their curves, one by one.
        each = alone and not along.is_numeric
        for chosen in [[level] for level in range(len(places))] if each else [list(range(len(places)))]:
            axes.errorbar(
                np.array(places)[chosen],
                mean[chosen],
                yerr=errors[:, chosen] if errors.any() else None,
                transform=_beside(axes, colour, colours),
                color=CYCLE[chosen[0] % len(CYCLE)] if each else GREY if alone else CYCLE[colour % len(CYCLE)],
                linestyle=LINES[colour // len(CYCLE) % len(LINES)] if along.is_numeric else "none",
                linewidth=1.0,
                elinewidth=0.8,
                marker=MARKERS[colour % len(MARKERS)],
                markersize=3.5,
                capsize=2,
            )


def scale_vertically(axes: Axes, metric: str, bands: Sequence[Band], lowest: float) -> None:
    """Vertical axis over all means and, as far as they leave these readable, over the bands."""
    limits = vertical_range(metric, [interval_of(metric, band, lowest) for band in bands])
    if limits is not None:
        show_range(axes, limits, logarithmic=is_logarithmic(metric))


def _beside(axes: Axes, position: int, count: int) -> Transform:
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = min(_BESIDE_PT, _ALL_BESIDE_PT / count) * (position - (count - 1) / 2)
    return axes.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def slant_in(factor: Factor, width_in: float) -> float:
    """Height (inches) that labels of categories need more than a line, as they do not fit side by side into a panel."""
    labels = () if factor.is_numeric else level_words(factor)
    return math.sin(math.radians(_SLANT)) * max(map(len, labels)) * _LETTER_IN if _crowded(labels, width_in) else 0.0


def _crowded(labels: Sequence[str], width_in: float) -> bool:
    return sum(len(label) + 2 for label in labels) * _LETTER_IN > width_in


def _place(axes: Axes, factor: Factor, *, coloured: bool) -> list[float]:
    labels = level_words(factor)
    if not factor.is_numeric:
        crowded = _crowded(labels, panel_width_in(axes))
        places = [float(position) for position in range(len(labels))]
        if crowded and coloured:  # the legend has their colours
            axes.set_xticks(places)
            axes.tick_params(labelbottom=False)
        else:
            axes.set_xticks(places, labels, parse_math=False)
            axes.tick_params(axis="x", rotation=_SLANT if crowded else 0)
            for text in axes.get_xticklabels():
                text.set_horizontalalignment("right" if crowded else "center")
        axes.set_xlim(-0.5, len(labels) - 0.5)
        return places
    places = [float(level[0]) for level in factor.levels]
    low, high = min(places), max(places)
    if low > 0 and high >= _WIDE_RANGE * low:
        log_scale(axes.xaxis, (low, high))
        if len(places) <= MOST_COLUMNS:
            axes.set_xticks(places, [plain_number(place) for place in places])
        axes.set_xlim(low * (low / high) ** _MARGIN, high * (high / low) ** _MARGIN)
    else:
        if len(places) <= MOST_COLUMNS:
            axes.set_xticks(places, labels)
        axes.set_xlim(low - _MARGIN * (high - low), high + _MARGIN * (high - low))
    return places
