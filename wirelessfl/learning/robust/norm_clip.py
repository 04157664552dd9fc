"""A bound on the norm of every update."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.robust.base import Combined, RowRule, weighted_sum


@dataclass(frozen=True)
class NormClip(RowRule):
    """Σ p_i Δ_i min(1, M/‖Δ_i‖)/Σ p_i.

    Sun, Kairouz, Suresh, McMahan: "Can you really backdoor federated learning?", 2019.

    Attributes:
        norm: M.

    Raises:
        ValueError: if it is not positive and finite.
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        precondition(0 < self.norm < np.inf, f"norm must be positive and finite, not {self.norm}")

    @override
    def least(self) -> int:
        return 1

    @override
    def factors(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(1.0, self.norm / norms))

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        norms = np.linalg.norm(rows.astype(np.float64), axis=1)
        kept = self.factors(norms)
        return Combined(weighted_sum(rows, weights * kept / weights.sum()), kept)
