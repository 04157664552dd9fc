"""The server's step of a round: what the algorithm takes from an aggregate, its optimizer, the next model."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.conformance import KEYS, given, method_at, pair
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.algorithms import Algorithm, RoundFacts, ServerState
from wirelessfl.learning.cohort.execution import map_in_order
from wirelessfl.learning.server_optimizers import ServerOptimizer

_BLOCK = 1 << 18  # numbers of a model: 2 MiB in double precision


def server_step(
    algorithm: Algorithm,
    optimizer: ServerOptimizer,
    before: ServerState,
    kept: Mapping[str, Tensor],
    aggregate: Tensor,
    facts: RoundFacts,
    unheard: Tensor | None = None,
) -> tuple[ServerState, Mapping[str, Tensor]]:
    """The server's state after a round, and what its optimizer remembers.

    Args:
        algorithm: The algorithm.
        optimizer: Applied to the pseudo-gradient.
        before: The state before the round.
        kept: What the optimizer remembers.
        aggregate: (P, d) the received g.
        facts: Of the round.
        unheard: (P, d) of which coordinates of g nobody sent anything; None where everything was heard.

    Raises:
        ScenarioError: an algorithm or a server optimizer from outside gives something else than a model, or
            remembers other tensors than before, which no checkpoint could go on from.
    """
    taken = pair("algorithm", algorithm, "received", algorithm.received(before, aggregate, facts))
    between = given("algorithm", algorithm, "received", taken[0], ServerState)
    pseudo = given("algorithm", algorithm, "received", taken[1], Tensor)
    found, wanted = ({**one.memory, "aggregate": rows} for one, rows in ((between, pseudo), (before, aggregate)))
    require_like("algorithm", algorithm, "received", found, wanted)
    change, memory = pair("server_optimizer", optimizer, "step", optimizer.step(pseudo[0].clone(), kept))
    wanted = {**kept, "model": before.parameters}
    require_like("server_optimizer", optimizer, "step", {**memory, "model": change}, wanted)
    rows = torch.cat([change[None], pseudo[1:]]) if len(pseudo) > 1 else change[None]
    after = given("algorithm", algorithm, "step", algorithm.step(between, rows, facts), ServerState)
    found, wanted = ({**one.memory, "model": one.parameters} for one in (after, before))
    require_like("algorithm", algorithm, "step", found, wanted)
    return (after, memory) if unheard is None else _as_before(unheard, before, kept, after, memory)


def step_norm(before: NDArray[np.float32], after: NDArray[np.float32], threads: int = 1) -> float:
    """Euclidean norm of the difference of two models (d,), in double precision; the same for any number of threads."""

    def squared(first: int) -> float:
        block = slice(first, first + _BLOCK)
        step = np.subtract(after[block], before[block], dtype=np.float64)
        return float(np.square(step, out=step).sum())

    # In blocks that a cache holds, and not by BLAS, whose threads would spin on where the next clients begin to train
    blocks = range(0, len(after), _BLOCK)
    return math.sqrt(math.fsum(map_in_order(squared, blocks, threads) if len(blocks) > 1 else map(squared, blocks)))


def _as_before(
    unheard: Tensor, before: ServerState, kept: Mapping[str, Tensor], after: ServerState, memory: Mapping[str, Tensor]
) -> tuple[ServerState, Mapping[str, Tensor]]:
    # A round without an update is no step; neither is it one on the coordinates on which nobody was heard. Of what an
    # algorithm remembers beside several vectors of an upload, each follows from its own vector, which is 0 there.
    update = unheard[0]

    def back(new: Tensor, old: Tensor) -> Tensor:
        return torch.where(update, old, new) if new.shape == update.shape else new

    state = replace(after, parameters=back(after.parameters, before.parameters))
    if len(unheard) == 1:
        state = replace(state, memory={name: back(one, before.memory[name]) for name, one in after.memory.items()})
    return state, {name: back(one, kept[name]) for name, one in memory.items()}


def require_like(
    family: str, part: object, method: str, found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> None:
    """Requirement that tensors have the shapes and types of others, by name.

    Raises:
        ScenarioError: they have not, with the method of the part of a family that gave them.
    """
    ours, theirs = ({name: (tuple(one.shape), one.dtype) for name, one in some.items()} for some in (found, wanted))
    if ours != theirs:
        raise ScenarioError(
            f"{KEYS[family]}: {type(part).__name__} gives {ours}; allowed: {theirs}, the shapes and types that it was "
            f"given; `learning.conformance` tests it{method_at(part, method)}"
        )
