"""Means with their confidence intervals as they are drawn: in the numbers of an axis and within its range."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.summary.curves import Band
from wirelessfl.trace import axis_scale

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Interval:
    """Means and the ends of their confidence intervals, in the numbers of an axis and within its range.

    Attributes:
        mean: (m,) over the seeds; the geometric one of what has a logarithmic axis.
        low: (m,) lower end; NaN where there is no interval, as with one seed.
        high: (m,) upper end.
    """

    mean: Values
    low: Values
    high: Values


def is_logarithmic(metric: str) -> bool:
    """Whether the axis of a metric is logarithmic, and its means and intervals are those of the logarithms."""
    return metric.startswith("epsilon")


def on_scale(metric: str, values: Values) -> Values:
    """Values of a metric of which means are taken: shares in percent, log10 of what has a logarithmic axis."""
    return np.log10(np.where(values > 0, values, np.nan)) if is_logarithmic(metric) else axis_scale(metric) * values


def lowest_of(metric: str, means: Sequence[Values]) -> float:
    """Lower end of the range of a metric: 0 where no mean is below it, else none."""
    bounded = not is_logarithmic(metric) and not any(np.any(one < 0) for one in means)
    return 0.0 if bounded else -np.inf


def highest_of(metric: str) -> float:
    """Upper end of the range of a metric: 100 of a share in percent, else none."""
    return 100.0 if axis_scale(metric) != 1 else np.inf


def interval_of(metric: str, band: Band, lowest: float) -> Interval:
    """Interval in the numbers of the axis of a metric.

    Args:
        metric: the metric.
        band: of its values by `on_scale`: the interval is taken where it is drawn.
        lowest: lower end of its range, by `lowest_of`.
    """
    low, high = band.mean - band.half_width, band.mean + band.half_width
    if is_logarithmic(metric):
        with np.errstate(over="ignore"):
            return Interval(10.0**band.mean, 10.0**low, 10.0**high)
    return Interval(band.mean, np.maximum(low, lowest), np.minimum(high, highest_of(metric)))


def vertical_range(metric: str, drawn: Sequence[Interval]) -> tuple[float, float] | None:
    """Ends of an axis over all means, and over the intervals up to half the range of the means beyond them.

    The interval of two seeds is thirteen times as wide as they are apart: an axis over all of it would show flat lines.

    Args:
        metric: the metric.
        drawn: what the axis shows.

    Returns:
        None where no mean is finite, or on a logarithmic axis positive.
    """
    logarithmic = is_logarithmic(metric)
    means, lows, highs = (
        np.concatenate([getattr(one, name) for one in drawn] or [np.zeros(0)]) for name in ("mean", "low", "high")
    )
    known = np.isfinite(means) & ((means > 0) | (not logarithmic))
    if not known.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [np.log10(each) if logarithmic else each for each in (means[known], lows, highs)]
    low, high = float(found[0].min()), float(found[0].max())
    room = 0.5 * (high - low) or (0.1 if logarithmic else 0.1 * abs(high) or 1.0)
    bottom = max(float(np.min(found[1], where=np.isfinite(found[1]), initial=low)), low - room) - 0.1 * room
    top = min(float(np.max(found[2], where=np.isfinite(found[2]), initial=high)), high + room) + 0.1 * room
    if logarithmic:
        return 10.0**bottom, 10.0**top
    return max(bottom, lowest_of(metric, [one.mean for one in drawn])), min(top, highest_of(metric))
