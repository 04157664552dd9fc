"""Local training of the clients of a round, with what clipping rules and algorithms keep from round to round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import (
    Algorithm,
    CohortBlock,
    ExecutionPlan,
    FlatModel,
    LocalTraining,
    Population,
    ServerState,
    train_cohort,
)
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.client_side import ClientSide
from wirelessfl.learning.cohort import BlockMap, BlockSum, TrainingElsewhere
from wirelessfl.learning.cohort.engine import Block
from wirelessfl.learning.cohort.run import clip_rows
from wirelessfl.learning.cohort.sums import SummedBlock
from wirelessfl.learning.drift import ClientDrift
from wirelessfl.learning.local_gradients import local_gradients
from wirelessfl.simulation.local_privacy import LocalPrivacy
from wirelessfl.simulation.state import SimulationState
from wirelessfl.streams import Streams
from wirelessfl.transfers import aligned, download

_SUMMED = 8
"""Clients of a block from which on threads form its part of a sum."""


@dataclass(frozen=True, kw_only=True)
class LocalLearner:
    """Model, data and local training of the clients.

    Attributes:
        model: The network as a function of one flat parameter vector.
        population: The clients' data and the test set.
        training: The clients' local training, at the learning rate before any schedule.
        lr_schedule: First round of each factor on the learning rate, from round 1 on.
        algorithm: The clients' objective and uploads, and how the server turns an aggregate into the next model.
        private: Clipping and noise of per-sample gradients, or None.
        plan: Device, threads, chunk and precision; recorded, so that a run can be repeated bit for bit.
        streams: Randomness of the run.
        measures_drift: Whether the spread of updates is measured.
        pause: Called between blocks of clients; may raise to give up the round in flight.
        elsewhere: Trains blocks in other processes; None for this one.
    """

    model: FlatModel
    population: Population
    training: LocalTraining
    lr_schedule: Mapping[int, float]
    algorithm: Algorithm
    private: LocalPrivacy | None
    plan: ExecutionPlan
    streams: Streams
    measures_drift: bool
    pause: Callable[[], None]
    elsewhere: TrainingElsewhere | None = None

    def planned_steps(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) local steps of clients that finish their training."""
        training = self.training
        return local_steps(self.population.sizes[clients], training.batch_size, training.epochs, training.steps)

    def learning_rate(self, round_index: int) -> float:
        """η of a round."""
        begun = [first for first in self.lr_schedule if first <= round_index]
        return self.training.learning_rate * (self.lr_schedule[max(begun)] if begun else 1.0)

    def calibrate(self, state: SimulationState, round_index: int) -> None:
        """Calibration of the clipping norm on public data, where that is due in the round."""
        if self.private is not None:
            self.private.calibrate(self.model, state, round_index, self.plan)

    def train(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None = None,
        drift: ClientDrift | None = None,
    ) -> Iterator[CohortBlock]:
        """Local training of ``clients`` from the model ``start`` (d,), in fixed blocks; on a CPU it begins at once.

        What a clipping rule or the algorithm keeps of each client from round to round is read from the state and
        written back. ``steps`` are (n,) local steps, None for all that are planned. The spread of what is trained is
        added to ``drift``, if it is measured.
        """
        measured = drift if self.measures_drift else None
        return self._blocks(start, state, clients, round_index, steps, self.elsewhere, measured)

    @property
    def sums_blocks(self) -> bool:
        """Whether those who train form parts of a sum, since nothing else reads the updates.

        Threads of this process do so for blocks of many clients: of few, a part takes as much memory as the updates.
        """
        plan, is_read = self.plan, self.measures_drift or self.algorithm.facts().client_side
        by_threads = plan.threads > 1 and plan.chunk >= _SUMMED and torch.device(plan.device).type == "cpu"
        return (by_threads or self.elsewhere is not None) and not is_read

    def train_sums(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None,
        total: BlockSum,
    ) -> Iterator[SummedBlock]:
        """As ``train``, with parts of a sum in place of updates, where ``sums_blocks``."""
        elsewhere = None if self.elsewhere is None else self.elsewhere.summing(total)
        here = total if elsewhere is None else None
        blocks = self._blocks(start, state, clients, round_index, steps, elsewhere, summed=here)
        return cast("Iterator[SummedBlock]", blocks)

    def _blocks(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None,
        elsewhere: BlockMap[Block] | None,
        drift: ClientDrift | None = None,
        summed: BlockSum | None = None,
    ) -> Iterator[CohortBlock | Block]:
        model = aligned(start)
        side = ClientSide(
            self.algorithm,
            ServerState(model, as_tensors(state.server_memory)),
            clients,
            self.planned_steps(clients) if steps is None else steps,
            self.learning_rate(round_index),
            self.training.clip,
            state.client_rows,
            torch.device(self.plan.device),
            lambda at, own: local_gradients(self.model, at, self.population, own),
        )
        facts = self.algorithm.facts()
        clip = None if facts.client_side else self.training.clip
        clip_there = clip if drift is None else None  # updates are clipped once they were measured
        training = replace(self.training, learning_rate=side.learning_rate, clip=clip_there)
        transform = rows = None
        if self.private is not None:
            transform = self.private.transform(self.model, model, state, round_index, self.plan)
            rows = self.private.rows(transform, state, clients)
        # By the threads that train, unless something else comes before, or the samples are read once more
        beside = elsewhere is None and drift is None and not facts.reads_gradients
        lasting = () if transform is None else transform.lasting
        finish: Callable[[CohortBlock], Any] | None = None
        if facts.client_side and beside:
            finish = side.finished
        elif summed is not None:
            finish = partial(SummedBlock.of, summed, lasting)
        blocks = train_cohort(
            *(self.model, model, self.population, clients, training, self.streams, round_index, self.plan),
            *(transform, rows, side.objective, steps),
            elsewhere=elsewhere,
            finish=finish,
        )
        if drift is not None:
            blocks = _measured(cast("Iterator[CohortBlock]", blocks), drift, clip)
        if facts.client_side and not beside:  # sums are formed of updates as they are
            # Not by ``map``, which would end with a StopIteration of the algorithm as if there were no more blocks
            blocks = (side.finished(block) for block in cast("Iterator[CohortBlock]", blocks))
        return self._taken(blocks, state, clients, lasting)

    def _taken(
        self,
        blocks: Iterator[CohortBlock | Block],
        state: SimulationState,
        clients: NDArray[np.int64],
        lasting: tuple[str, ...],
    ) -> Iterator[CohortBlock | Block]:
        # The blocks one by one; rows named ``lasting`` go back to the state. A chunk that a GPU does not hold is not
        # halved on the way: it is part of the recorded plan, by which a run repeats bit for bit.
        try:
            for block in blocks:
                self.pause()
                assert isinstance(block, CohortBlock | SummedBlock)
                for name in lasting:
                    state.clipping[name][clients[block.positions]] = block.transform_state[name].cpu().numpy()
                yield block
        except (torch.OutOfMemoryError, MemoryError) as error:
            chunk = min(self.plan.chunk, len(clients))
            advice = f"set compute.chunk to {chunk // 2} or less" if chunk > 1 else "one client alone is too much"
            raise InfeasibleError(f"device: its memory does not hold {chunk} clients at a time; {advice}") from error


def _measured(blocks: Iterator[CohortBlock], drift: ClientDrift, clip: float | None) -> Iterator[CohortBlock]:
    # Blocks counted for the drift, and clipped after that
    for block in blocks:
        drift.add(block.updates)
        if clip is None:
            yield block
            continue
        norm = clip_rows(block.updates, torch.linalg.vector_norm(block.updates, dim=1), clip)
        yield replace(block, norm=download({"norm": norm.double()})["norm"])


def as_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The arrays as tensors, by name, in the same memory."""
    return {name: torch.from_numpy(value) for name, value in arrays.items()}
