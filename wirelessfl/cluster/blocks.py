"""Blocks of clients trained by workers, in their fixed order, whatever the workers are.

The global model travels once a round. Of the blocks so many are on their way that every worker has another one to go
on with, so that neither this process nor a worker ever holds a whole round. A worker that dies loses nothing: its
blocks, and the model with them, are sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.cluster.worker import RoundOnWorkers, RunOnWorkers, TrainedBlock, prepare, sum_part, train_part
from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import BlockMap, Cohort, CohortPart, SummedBlock

AHEAD = 2
"""Blocks on their way for each thread of a worker."""
Result = TypeVar("Result", TrainedBlock, SummedBlock, None)


class Parts(Protocol):
    """Clients of a round, of which a part travels with each block."""

    def part(self, positions: NDArray[np.int64]) -> CohortPart | None:
        """The part of the clients at some positions."""


class _Nobody:
    # Before the first round no client travels
    def part(self, positions: NDArray[np.int64]) -> None:
        return None


@dataclass(frozen=True)
class RoundOfBlocks(Generic[Result]):
    """The blocks of a round and what is to be done with each.

    Attributes:
        shared: What all blocks share.
        task: What a worker calls with it and the part of a block.
        cohort: The clients of the round.
        blocks: Positions (k,) in the cohort for each block.
    """

    shared: RoundOnWorkers
    task: Callable[[RoundOnWorkers, Any], Result]
    cohort: Parts
    blocks: Sequence[NDArray[np.int64]]

    def part(self, at: int) -> CohortPart | None:
        """The part of block ``at`` of the cohort."""
        return self.cohort.part(self.blocks[at])


class Workers(Protocol):
    """Processes that train blocks."""

    def results(self, this: RoundOfBlocks[Result]) -> Generator[Result, None, None]:
        """The results of the blocks of a round, in their order; the workers begin at once.

        Raises:
            InfeasibleError: too many workers are lost, or none comes.
        """


class BlocksElsewhere:
    """Blocks trained by workers: a `TrainingElsewhere`.

    Args:
        workers: The workers.
        run: Which run it is.
    """

    def __init__(self, workers: Workers, run: RunOnWorkers) -> None:
        self._workers, self._run = workers, run

    def prepare(self, count: int) -> None:
        """Model and data in ``count`` workers: what they refuse is refused before anything is written.

        Raises:
            InfeasibleError: a worker has other versions, or none comes.
            ScenarioError: it has another text of the user's own code.
            DataError: it has other data, or none.
        """
        shared = RoundOnWorkers(self._run, np.zeros(0), b"")
        nothing = [np.zeros(0, dtype=np.int64)] * count
        deque(self._workers.results(RoundOfBlocks(shared, prepare, _Nobody(), nothing)), maxlen=0)

    def __call__(self, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Generator[CohortBlock, None, None]:
        """The finished blocks in order; the workers begin at once."""
        shared, device = RoundOnWorkers.of(self._run, cohort), cohort.start.device
        found = self._workers.results(RoundOfBlocks(shared, train_part, cohort, blocks))
        return (block.block(positions, device) for block, positions in zip(found, blocks, strict=True))

    def summing(self, total: BlockSum) -> BlockMap[SummedBlock]:
        """Training of blocks of which the parts of a sum come back."""
        return partial(self._summed, total)

    def _summed(
        self, total: BlockSum, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]
    ) -> Generator[SummedBlock, None, None]:
        shared = RoundOnWorkers.of(self._run, cohort, total)
        return self._workers.results(RoundOfBlocks(shared, sum_part, cohort, blocks))
