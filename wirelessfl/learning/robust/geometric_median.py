"""The geometric median (RFA).

Pillutla, Kakade, Harchaoui: "Robust Aggregation for Federated Learning", IEEE TSP 2022.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.robust.base import Combined, RobustRule, column_blocks, weighted_sum
from wirelessfl.learning.robust.median import Median


@dataclass(frozen=True)
class GeometricMedian(RobustRule):
    """The point v with the least Σ p_i ‖v − Δ_i‖, by the smoothed Weiszfeld algorithm.

    v ← Σ c_i Δ_i/Σ c_i with c_i = p_i/max(ν, ‖v − Δ_i‖), from the median of each coordinate on.

    Attributes:
        iterations: the most steps.
        tolerance: ends them once a step is this small against ‖v‖.
        smoothing: ν.

    Raises:
        ValueError: if one of them is out of range.
    """

    iterations: int = 100
    tolerance: float = 1e-6
    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        holds = self.iterations >= 1 and self.tolerance >= 0 and 0 < self.smoothing < np.inf
        precondition(holds, "needs an iteration, a tolerance of at least 0 and a positive smoothing")

    @override
    def least(self) -> int:
        return 1

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        point, share = Median().combine(rows, weights).value, weights / weights.sum()
        pull = share
        for _ in range(self.iterations):
            pull = share / np.maximum(self.smoothing, _distances_to(point, rows))
            before, point = point, weighted_sum(rows, pull / pull.sum())
            step = float(np.linalg.norm(point - before))
            if step <= self.tolerance * max(float(np.linalg.norm(point)), self.smoothing):
                break
        return Combined(point, pull / pull.max())


def _distances_to(point: NDArray[np.float64], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    # (n,) distances of (n, d) rows to a point (d,)
    squares = np.zeros(len(rows))
    for columns, block in column_blocks(rows):
        squares += ((block - point[columns, None]) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares))
