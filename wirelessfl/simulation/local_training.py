"""Local training of the clients of a round, with what clipping rules and algorithms keep from round to round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import CohortBlock, ServerState, train_cohort
from wirelessfl.learning.client_side import ClientSide
from wirelessfl.learning.cohort import BlockMap
from wirelessfl.learning.cohort.engine import Block
from wirelessfl.learning.cohort.sums import SummedBlock
from wirelessfl.learning.local_gradients import local_gradients
from wirelessfl.simulation.state import SimulationState

if TYPE_CHECKING:
    from wirelessfl.simulation.learner import Learner


def local_training(
    learner: Learner,
    start: NDArray[np.float32],
    state: SimulationState,
    clients: NDArray[np.int64],
    round_index: int,
    steps: NDArray[np.int64] | None,
    elsewhere: BlockMap[Block] | None,
) -> Iterator[CohortBlock | Block]:
    """Blocks of trained clients, in their order; on a CPU and elsewhere the training begins at once.

    Args:
        learner: Model, data and training.
        start: (d,) the model that they start from.
        state: Of the simulation; rows of clients are read and written back.
        clients: (n,) who trains.
        round_index: From 1.
        steps: (n,) local steps, None for all that are planned.
        elsewhere: Trains the blocks in other processes; None for this one.
    """
    model = torch.from_numpy(start)
    side = ClientSide(
        learner.algorithm,
        ServerState(model, as_tensors(state.server_memory)),
        clients,
        learner.planned_steps(clients) if steps is None else steps,
        learner.learning_rate(round_index),
        learner.training.clip,
        state.client_rows,
        torch.device(learner.plan.device),
        lambda at, own: local_gradients(learner.model, at, learner.population, own),
    )
    sends_updates = not learner.algorithm.facts().client_side
    clip = learner.training.clip if sends_updates else None
    training = replace(learner.training, learning_rate=side.learning_rate, clip=clip)
    transform = rows = None
    if learner.private is not None:
        transform = learner.private.transform(learner.model, model, state, round_index, learner.plan)
        rows = learner.private.rows(transform, state, clients)
    blocks = train_cohort(
        learner.model,
        model,
        learner.population,
        clients,
        training,
        learner.streams,
        round_index,
        learner.plan,
        transform,
        rows,
        side.objective,
        steps,
        elsewhere=elsewhere,
    )
    if not sends_updates:  # sums are formed of updates as they are
        blocks = map(side.finished, cast("Iterator[CohortBlock]", blocks))
    return _taken(learner, blocks, state, clients, () if transform is None else transform.lasting)


def _taken(
    learner: Learner,
    blocks: Iterator[CohortBlock | Block],
    state: SimulationState,
    clients: NDArray[np.int64],
    lasting: tuple[str, ...],
) -> Iterator[CohortBlock | Block]:
    # The blocks one by one; rows named ``lasting`` go back to the state. A chunk that a GPU does not hold is not halved
    # on the way: it is part of the recorded plan, by which a run repeats bit for bit.
    try:
        for block in blocks:
            learner.pause()
            assert isinstance(block, CohortBlock | SummedBlock)
            for name in lasting:
                state.clipping[name][clients[block.positions]] = block.transform_state[name].cpu().numpy()
            yield block
    except (torch.OutOfMemoryError, MemoryError) as error:
        chunk = min(learner.plan.chunk, len(clients))
        advice = f"set compute.chunk to {chunk // 2} or less" if chunk > 1 else "one client alone is too much"
        raise InfeasibleError(f"device: its memory does not hold {chunk} clients at a time; {advice}") from error


def as_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The arrays as tensors, by name, in the same memory."""
    return {name: torch.from_numpy(value) for name, value in arrays.items()}
