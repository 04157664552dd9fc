"""Curves as means over runs with confidence intervals: by round, or as steps over seconds, energy or ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from wirelessfl.summary.axes import AxisValues, XAxis, common_grid, step_onto

CONFIDENCE = 0.95

STEPS_SENTENCE = (
    "Over seconds, energy and ε a curve is the mean of each seed's latest evaluation and ends where the first seed "
    "ends."
)
"""Caption of means over axes on which each seed has places of its own."""


@dataclass(frozen=True)
class Band:
    """A mean over seeds with its confidence interval, one of each a round.

    Attributes:
        mean: (rounds,) over the seeds; NaN where a seed has no value.
        half_width: (rounds,) of the confidence interval; NaN with fewer than two seeds.
        seeds: How many there are.
    """

    mean: NDArray[np.float64]
    half_width: NDArray[np.float64]
    seeds: int

    def text(self, index: int, *, percent: bool = False) -> str:
        """Text of one mean with its interval."""
        scale, unit = (100.0, " %") if percent else (1.0, "")
        mean, half = scale * float(self.mean[index]), scale * float(self.half_width[index])
        if math.isnan(mean):
            return "–"
        digits = f"{mean:.1f}" if percent else f"{mean:.4g}"
        margin = f"{half:.1f}" if percent else f"{half:.2g}"
        return f"{digits}{unit}" if math.isnan(half) else f"{digits} ± {margin}{unit}"


def band(runs: Sequence[ArrayLike]) -> Band:
    """Mean and two-sided 95 % confidence interval over seeds, by Student's t: half width t(n−1) s/√n.

    It supposes that the seeds' values are independent and about normal. Where values are infinite, so is the mean.

    Args:
        runs: One series (rounds,) a seed. Shorter ones end the band: beyond them the mean would be one over the
            slowest runs alone.
    """
    series = [np.asarray(run, dtype=np.float64) for run in runs]
    length = min((len(one) for one in series), default=0)
    if not series:
        return Band(np.full(1, math.nan), np.full(1, math.nan), 0)
    values = np.stack([one[:length] for one in series])
    count = len(values)
    mean = values.mean(axis=0)
    if count < 2:
        return Band(mean, np.full(length, math.nan), count)
    finite = np.isfinite(values).all(axis=0)
    spread = np.std(np.where(finite, values, 0.0), axis=0, ddof=1)
    quantile = float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return Band(mean, np.where(finite, quantile * spread / math.sqrt(count), math.nan), count)


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean of a metric over several runs, the seeds of one point.

    Attributes:
        x: (g,) places on the axis; none where a seed has no place on it.
        mean: at those places, with its confidence interval.
        missing: what is drawn of it, and why not all; "" where all rounds have a place.
    """

    x: NDArray[np.float64]
    mean: Band
    missing: str = ""


def mean_curve(x: XAxis, axes: Sequence[AxisValues], series: Sequence[NDArray[np.float64]]) -> Curve:
    """Mean of several runs over an axis.

    Rounds are the same in all runs. Of the other axes each run has places of its own: there it counts with what it
    has at that place, the value of its last evaluation, and the mean ends with the run that ends first.

    Args:
        x: the axis.
        axes: (m,) places of the rounds of each run, which may differ in length.
        series: (m,) values of each run, NaN where there is none.
    """
    if x == "round":
        mean = band(series)
        return Curve(np.arange(1.0, len(mean.mean) + 1), mean)
    places = [np.where(np.isnan(values), np.nan, axis.values) for axis, values in zip(axes, series, strict=True)]
    grid = common_grid(places)
    steps = [step_onto(grid, axis.values, values) for axis, values in zip(axes, series, strict=True)]
    missing = [axis.missing for axis in axes if axis.missing]
    words = "" if not missing else _among(missing, len(axes))
    return Curve(grid, band(steps) if len(grid) else Band(np.zeros(0), np.zeros(0), len(series)), words)


def _among(missing: Sequence[str], runs: int) -> str:
    # The reason, and at how many seeds it holds unless at all of them
    return missing[0] if len(missing) == runs else f"{missing[0]} at {len(missing)} of {runs} seeds"
