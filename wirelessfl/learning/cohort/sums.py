"""Sums over the clients of a round whose parts are formed where their blocks are trained."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.training import CohortBlock


class BlockSum(Protocol):
    """A sum over the clients of a round for a server that needs no single updates; pickled once for all blocks."""

    def part(self, block: CohortBlock) -> Any:
        """The part of a block, in values and NumPy arrays that can be pickled; a pure function of the block."""


@dataclass(frozen=True, eq=False)
class SummedBlock:
    """The finished local training of k clients, of whose updates the part of a sum is left.

    Attributes:
        positions: (k,) int64, which of the clients asked for these are.
        part: of the sum, from ``BlockSum.part``.
        transform_state: Rows (k, ...) of the gradient transform's state after the last step, those that last.
    """

    positions: NDArray[np.int64]
    part: Any
    transform_state: Mapping[str, Tensor]

    @classmethod
    def of(cls, total: BlockSum, lasting: Collection[str], block: CohortBlock) -> Self:
        """The same of a block with its updates, and of the names of the rows that last."""
        return cls(block.positions, total.part(block), {name: block.transform_state[name] for name in lasting})
