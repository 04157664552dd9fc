"""Protocols of robust rules: the aggregate of the single updates of a round, some of which may be anything."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Combined:
    """The aggregate of n updates.

    Attributes:
        value: (d,) float64.
        kept: (n,) in [0, 1], the part of each update that is in it.
    """

    value: NDArray[np.float64]
    kept: NDArray[np.float64]


@runtime_checkable
class RobustRule(Protocol):
    """Rule by which the server combines the updates of those who arrived."""

    def least(self) -> int:
        """The fewest updates for which the rule is defined; with fewer the round is given up."""

    def combine(self, rows: NDArray[np.float32], weights: NDArray[np.float64]) -> Combined:
        """The aggregate of at least ``least`` finite updates.

        Args:
            rows: (n, d) the updates; left as they are.
            weights: (n,) p_i > 0, as the clients state them; a rule may do without.
        """


@runtime_checkable
class RowRule(RobustRule, Protocol):
    """Rule that scales every update by itself, so that they need not be held together: Σ p_i c_i Δ_i/Σ p_i."""

    def factors(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) c_i in [0, 1] for updates of norms (n,)."""


# Numbers of a block of coordinates; its copies in double precision fit into a processor's cache
_BLOCK = 2**18


def column_blocks(rows: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Blocks of coordinates of (n, d) rows in double precision, each (c, n): one coordinate after the other."""
    count, dimension = rows.shape
    width = max(1, _BLOCK // max(1, count))
    for first in range(0, dimension, width):
        columns = slice(first, min(first + width, dimension))
        yield columns, np.ascontiguousarray(rows[:, columns].T, dtype=np.float64)


def weighted_sum(rows: NDArray[np.float32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(d,) Σ weights_i rows_i of (n, d) rows, in double precision; rows of weight 0 are not read."""
    used = np.flatnonzero(weights)
    total = np.zeros(rows.shape[1])
    for columns, block in column_blocks(rows[used] if len(used) < len(rows) else rows):
        total[columns] = block @ weights[used]
    return total


def squared_distances(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n, n) ‖Δ_i − Δ_j‖² of (n, d) rows, from their inner products; 0 on the diagonal."""
    products = np.zeros((len(rows), len(rows)))
    for _, block in column_blocks(rows):
        products += block.T @ block
    squares = np.diag(products)
    distances = np.maximum(squares[:, None] + squares - 2.0 * products, 0.0)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)
