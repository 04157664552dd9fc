"""The trimmed mean of each coordinate.

Yin, Chen, Ramchandran, Bartlett: "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.robust.base import Combined, RobustRule, column_blocks


@dataclass(frozen=True)
class TrimmedMean(RobustRule):
    """The plain mean of each coordinate without its ⌊βn⌋ smallest and its ⌊βn⌋ largest values; weights do not count.

    Attributes:
        trim: β in [0, 1/2).

    Raises:
        ValueError: if it is out of range.
    """

    trim: float = 0.1

    def __post_init__(self) -> None:
        precondition(0 <= self.trim < 0.5, f"trim must lie in [0, 1/2), not {self.trim}")

    @override
    def least(self) -> int:
        return 1

    def cut(self, count: int) -> int:
        """⌊βn⌋; the tolerance keeps 0.1 of 30 at 3, where 30 · 0.1 is a hair off."""
        return min(int(self.trim * count + 1e-9), (count - 1) // 2)

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        count, cut = len(rows), self.cut(len(rows))
        value, counts = np.zeros(rows.shape[1]), np.zeros(count, dtype=np.int64)
        for columns, block in column_blocks(rows):
            inner = np.argsort(block, axis=1, kind="stable")[:, cut : count - cut]
            value[columns] = np.take_along_axis(block, inner, axis=1).mean(axis=1)
            counts += np.bincount(inner.ravel(), minlength=count)
        return Combined(value, counts / rows.shape[1])
