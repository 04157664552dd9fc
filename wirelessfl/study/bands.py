"""Means over seeds with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

CONFIDENCE = 0.95


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
