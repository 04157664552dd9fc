"""Panels of the figure of a study: curves with their bands, values after the last round, and their scales."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import NDArray

from wirelessfl.study.curves import is_logarithmic
from wirelessfl.study.factors import MOST_COLUMNS, Factor, Layout, Levels
from wirelessfl.summary.curves import Band, Curve
from wirelessfl.summary.drawing import log_scale, plain_number
from wirelessfl.summary.style import CYCLE, GREY
from wirelessfl.trace import axis_scale

LINES = ("-", "--", ":", "-.")
MARKERS = "osD^vP"

_WIDE_RANGE = 10.0
_BESIDE_PT = 3.0
_MARGIN = 0.12
_LETTER_IN = 0.06


@dataclass(frozen=True, eq=False)
class _Interval:
    # Means (m,) and the ends of their confidence intervals, in the numbers of the axis and within its range

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def _on_axis(metric: str, band: Band, lowest: float) -> _Interval:
    # The interval was taken where it is drawn: in logarithms on a logarithmic axis
    low, high = band.mean - band.half_width, band.mean + band.half_width
    if is_logarithmic(metric):
        with np.errstate(over="ignore"):
            return _Interval(10.0**band.mean, 10.0**low, 10.0**high)
    highest = 100.0 if axis_scale(metric) != 1 else np.inf
    return _Interval(band.mean, np.maximum(low, lowest), np.minimum(high, highest))


def lowest_of(metric: str, bands: Sequence[Band]) -> float:
    """Lower end of the range of a metric: 0 where no mean is below it, else none."""
    means = np.concatenate([band.mean for band in bands] or [np.zeros(0)])
    bounded = not is_logarithmic(metric) and not np.any(means < 0)
    return 0.0 if bounded else -np.inf


def draw_curve(axes: Axes, metric: str, drawn: Curve, layout: Layout, colour: int, lowest: float) -> None:
    """Mean of a metric over an axis with its band, in the colour of a level."""
    curve = _on_axis(metric, drawn.mean, lowest)
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
    places = _place(axes, along)
    colours = 1 if alone else len(layout.factor(layout.colours).levels)
    for colour in range(colours):
        points = [layout.point(row, level, level if alone else colour) for level in range(len(along.levels))]
        last = [_on_axis(metric, bands[point], lowest) for point in points]
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
    """Vertical axis over all means, and over the bands up to half the range of the means beyond them."""
    drawn = [_on_axis(metric, band, lowest) for band in bands]
    logarithmic = is_logarithmic(metric)
    means, lows, highs = (
        np.concatenate([getattr(one, name) for one in drawn] or [np.zeros(0)]) for name in ("mean", "low", "high")
    )
    known = np.isfinite(means) & ((means > 0) | (not logarithmic))
    if not known.any():
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [np.log10(each) if logarithmic else each for each in (means[known], lows, highs)]
    low, high = float(found[0].min()), float(found[0].max())
    room = 0.5 * (high - low) or (0.1 if logarithmic else 0.1 * abs(high) or 1.0)
    bottom = max(float(np.min(found[1], where=np.isfinite(found[1]), initial=low)), low - room)
    top = min(float(np.max(found[2], where=np.isfinite(found[2]), initial=high)), high + room)
    bottom, top = bottom - 0.1 * room, top + 0.1 * room
    if logarithmic:
        log_scale(axes.yaxis, (10.0**bottom, 10.0**top))
        axes.set_ylim(10.0**bottom, 10.0**top)
    else:
        axes.set_ylim(max(bottom, lowest), min(top, 100.0) if axis_scale(metric) != 1 else top)


def _beside(axes: Axes, position: int, count: int) -> Transform:
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = _BESIDE_PT * (position - (count - 1) / 2)
    return axes.transData + ScaledTranslation(points / 72, 0, figure.dpi_scale_trans)


def _room_in(axes: Axes) -> float:
    # Width of a panel (inches) beside its like, about
    figure, place = axes.get_figure(root=True), axes.get_subplotspec()
    assert figure is not None and place is not None
    return 0.85 * float(figure.get_figwidth()) / place.get_gridspec().ncols


def _place(axes: Axes, factor: Factor) -> list[float]:
    labels = [factor.label(level) for level in range(len(factor.levels))]
    if not factor.is_numeric:
        crowded = sum(len(label) + 2 for label in labels) * _LETTER_IN > _room_in(axes)
        places = [float(position) for position in range(len(labels))]
        axes.set_xticks(
            places, labels, rotation=30 if crowded else 0, ha="right" if crowded else "center", parse_math=False
        )
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
