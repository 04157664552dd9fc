"""Bulyan: a selection by Krum, and of each coordinate what is closest to the median.

El Mhamdi, Guerraoui, Rouault: "The Hidden Vulnerability of Distributed Learning in Byzantium", ICML 2018.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.robust.base import Combined, RobustRule, column_blocks, squared_distances
from wirelessfl.learning.robust.krum import krum_scores, require_count


@dataclass(frozen=True)
class Bulyan(RobustRule):
    """The mean of each coordinate's θ − 2f values closest to the median, of θ = n − 2f selected updates.

    Each of these is the choice of Krum among those that are left. Weights do not count.

    Attributes:
        f: malicious clients among those who arrived; n ≥ 4f + 3 must arrive.

    Raises:
        ValueError: if it is negative.
    """

    f: int = 1

    def __post_init__(self) -> None:
        require_count(self.f)

    @override
    def least(self) -> int:
        return 4 * self.f + 3

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        chosen = self._selected(squared_distances(rows))
        selection, middle = rows[chosen], len(chosen) - 2 * self.f
        value, counts = np.zeros(rows.shape[1]), np.zeros(len(chosen), dtype=np.int64)
        for columns, block in column_blocks(selection):
            away = np.abs(block - np.median(block, axis=1, keepdims=True))
            closest = np.argsort(away, axis=1, kind="stable")[:, :middle]
            value[columns] = np.take_along_axis(block, closest, axis=1).mean(axis=1)
            counts += np.bincount(closest.ravel(), minlength=len(chosen))
        kept = np.zeros(len(rows))
        kept[chosen] = counts / rows.shape[1]
        return Combined(value, kept)

    def _selected(self, distances: NDArray[np.float64]) -> NDArray[np.int64]:
        # θ rows, ascending
        left = np.arange(len(distances))
        for _ in range(len(distances) - 2 * self.f):
            best = int(np.argmin(krum_scores(distances[np.ix_(left, left)], self.f)))
            left = np.delete(left, best)
        return np.setdiff1d(np.arange(len(distances)), left)
