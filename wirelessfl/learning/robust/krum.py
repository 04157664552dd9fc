"""Krum and Multi-Krum: the updates that are closest to their neighbours.

Blanchard, El Mhamdi, Guerraoui, Stainer: "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
NeurIPS 2017.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.robust.base import Combined, RobustRule, squared_distances, weighted_sum


def krum_scores(distances: NDArray[np.float64], faulty: int) -> NDArray[np.float64]:
    """(n,) sums of the squared distances to the n − f − 2 nearest others, to one at least.

    Args:
        distances: (n, n) squared.
        faulty: f.
    """
    count = len(distances)
    if count == 1:
        return np.zeros(1)
    neighbours = min(max(1, count - faulty - 2), count - 1)
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    nearest = np.partition(others, neighbours - 1, axis=1)[:, :neighbours]
    # In one order, so that equal distances have equal sums to the last bit, whoever they belong to
    return np.asarray(np.sort(nearest, axis=1).sum(axis=1))


def require_count(faulty: int) -> None:
    """Precondition on f: zero or more, else ValueError."""
    precondition(faulty >= 0, f"f must be at least 0, not {faulty}")


@dataclass(frozen=True)
class Krum(RobustRule):
    """The update with the lowest score, of equal ones that of the client with the lowest number; weights do not count.

    Attributes:
        f: malicious clients among those who arrived; n ≥ 2f + 3 must arrive.

    Raises:
        ValueError: if it is negative.
    """

    f: int = 1

    def __post_init__(self) -> None:
        require_count(self.f)

    @override
    def least(self) -> int:
        return 2 * self.f + 3

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        return _mean_of_best(rows, self.f, 1)


@dataclass(frozen=True)
class MultiKrum(RobustRule):
    """The plain mean of the m updates with the lowest scores; weights do not count.

    Attributes:
        f: malicious clients among those who arrived; n ≥ 2f + 3 must arrive.
        m: how many are averaged, n at most; None for n − f − 2.

    Raises:
        ValueError: if one of them is out of range.
    """

    f: int = 1
    m: int | None = None

    def __post_init__(self) -> None:
        require_count(self.f)
        precondition(self.m is None or self.m >= 1, f"m must be at least 1, not {self.m}")

    @override
    def least(self) -> int:
        return 2 * self.f + 3

    @override
    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        wanted = len(rows) - self.f - 2 if self.m is None else self.m
        return _mean_of_best(rows, self.f, min(max(1, wanted), len(rows)))


def _mean_of_best(rows: NDArray[np.float32], faulty: int, wanted: int) -> Combined:
    scores = krum_scores(squared_distances(rows), faulty)
    kept = np.zeros(len(rows))
    kept[np.argsort(scores, kind="stable")[:wanted]] = 1.0
    return Combined(weighted_sum(rows, kept / wanted), kept)
