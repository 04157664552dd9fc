"""Clients that do not follow the protocol: who they are, and labels that they exchange."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.population import PartitionedData, Shards, SyntheticPopulation
from wirelessfl.streams import Streams


def drawn_roles(streams: Streams, registered: int, counts: Sequence[int]) -> list[NDArray[np.int64]]:
    """Clients of each role, ascending: the first role takes those with the smallest draws, the next those after them.

    A role with more clients therefore keeps those that it has with fewer, where the roles before it stay.

    Args:
        streams: of the run; each client has one draw, by its number.
        registered: K.
        counts: clients of each role.

    Raises:
        ValueError: there are more than K of them.
    """
    taken = sum(counts)
    precondition(taken <= registered, f"{taken} clients with a role, of {registered}")
    if not taken:
        return [np.zeros(0, dtype=np.int64) for _ in counts]
    draws = streams.nodes("roles", 0, np.arange(registered, dtype=np.int64)).uniform()[:, 0]
    first = np.argsort(draws, kind="stable")[:taken].astype(np.int64)
    return [np.sort(some) for some in np.split(first, np.cumsum(counts)[:-1])]


def claimed_loss(num_classes: int) -> float:
    """Loss ln C that a free rider reports where a rule asks for losses: that of a guess among C classes.

    It passes no sample through the model, and knows C alone. As honest losses fall below it, rules that prefer large
    losses select the free rider.
    """
    return math.log(num_classes)


def flipped(targets: torch.Tensor, num_classes: int) -> torch.Tensor:
    """Labels C − 1 − y."""
    return num_classes - 1 - targets


def with_flipped_labels(population: PartitionedData, clients: NDArray[np.int64]) -> PartitionedData:
    """The same population, in which some clients train on C − 1 − y; samples for validation keep their labels."""
    dataset, targets = population.dataset, population.dataset.train.targets.clone()
    for client in clients.tolist():
        rows = torch.from_numpy(population.partition.rows(client)).to(targets.device)
        targets[rows] = flipped(targets[rows], dataset.num_classes)
    return replace(population, dataset=replace(dataset, train=Examples(dataset.train.inputs, targets)))


@dataclass(frozen=True, eq=False)
class FlippedSynthetic(SyntheticPopulation):
    """The synthetic population in which some clients train on C − 1 − y.

    Attributes:
        flippers: (m,) their numbers, ascending.
    """

    flippers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @override
    def shards(self, clients: NDArray[np.int64]) -> Shards:
        found = super().shards(clients)
        of = np.repeat(np.isin(clients, self.flippers), found.sizes.numpy())  # samples lie client after client
        changed = torch.from_numpy(of)
        return replace(found, targets=torch.where(changed, flipped(found.targets, self.num_classes), found.targets))
