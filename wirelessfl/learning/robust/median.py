"""The median of each coordinate (Yin et al., ICML 2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.robust.base import Combined, RobustRule, column_blocks

# Relative error of sums of weights: half of them is reached exactly where only rounding tells otherwise
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Median(RobustRule):
    """The median of each coordinate, of an even number of values the mean of the two in the middle.

    Attributes:
        weighted: whether half of the weight p_i decides in place of half of the clients: the mean of the smallest value
            up to which Σ p_i ≥ 1/2 and the largest from which on it is.
    """

    weighted: bool = False

    @override
    def least(self) -> int:
        return 1

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        count, counts = len(rows), np.zeros(len(rows))
        share = weights / weights.sum() if self.weighted else np.full(count, 1.0 / count)
        value = np.zeros(rows.shape[1])
        for columns, block in column_blocks(rows):
            order = np.argsort(block, axis=1, kind="stable")
            below = np.cumsum(share[order], axis=1)
            # The first rank with half of the weight up to it, and that after half of the weight is passed
            lower = (below >= 0.5 - _ROUNDING).argmax(axis=1)
            upper = (below > 0.5 + _ROUNDING).argmax(axis=1)
            middle = np.take_along_axis(order, np.stack([lower, upper], axis=1), axis=1)
            value[columns] = np.take_along_axis(block, middle, axis=1).mean(axis=1)
            counts += np.bincount(middle[:, 0], minlength=count)
            counts += np.bincount(middle[lower != upper, 1], minlength=count)
        return Combined(value, counts / rows.shape[1])
