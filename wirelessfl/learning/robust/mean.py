"""The mean, which is not robust."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.robust.base import Combined, RowRule, weighted_sum


@dataclass(frozen=True)
class Mean(RowRule):
    """Σ p_i Δ_i/Σ p_i: one client alone can move it anywhere."""

    @override
    def least(self) -> int:
        return 1

    @override
    def factors(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones(len(norms))

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        return Combined(weighted_sum(rows, weights / weights.sum()), np.ones(len(rows)))
