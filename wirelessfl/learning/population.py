"""The clients' data as local training sees it: sizes of all, samples of those asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.learning.data.synthetic import FEATURES, NUM_CLASSES, LogNormalSizes, SyntheticLaw, draw_examples
from wirelessfl.learning.partition import Partition, padded_positions
from wirelessfl.streams import Streams


@dataclass(frozen=True, eq=False)
class Shards:
    """The samples of n clients: where they lie, in the memory of the host, and themselves, on any one device.

    Client i of those asked holds ``inputs[index[i, j]]`` and ``targets[index[i, j]]`` for j < ``sizes[i]``.

    Attributes:
        inputs: (N, *feature) float32, shared by all clients; it may hold samples of others too.
        targets: (N,) int64.
        index: (n, n_max) int64 rows into ``inputs`` and ``targets``, padded with 0; in the memory of the host.
        sizes: (n,) int64 samples of each client, n_max = max sizes; in the memory of the host.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    index: torch.Tensor
    sizes: torch.Tensor


class Population(Protocol):
    """The data of K registered clients and the test set of the server."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(K,) samples n_i of every registered client, each ≥ 1."""

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of one input."""

    @property
    def num_classes(self) -> int:
        """The number of classes."""

    @property
    def test(self) -> Examples:
        """Test set of the server."""

    @property
    def vocabulary(self) -> tuple[str, ...] | None:
        """Words or letters whose numbers the inputs are; by default None: inputs are quantities."""
        return None

    @property
    def test_owners(self) -> NDArray[np.int64] | None:
        """(N,) client out of whose share each test sample is; by default None: they belong to nobody."""
        return None

    @property
    def validation(self) -> Examples | None:
        """Samples held out of the clients' shares; by default none."""
        return None

    @property
    def lasting_bytes(self) -> int:
        """Bytes of samples that lie in memory from round to round; by default 0: they are made when asked for."""
        return 0

    def shards(self, clients: NDArray[np.int64]) -> Shards:
        """The samples of ``clients`` (n,); always the same ones, whoever else is asked for."""


@dataclass(frozen=True, eq=False)
class PartitionedData(Population):
    """A dataset in memory, shared among the clients. ``shards`` copies no samples, only indices.

    Samples lie where the dataset lies: ``PartitionedData(dataset.to("cuda"), partition)`` trains from GPU memory.

    Attributes:
        dataset: The samples.
        partition: Whose they are.
        fingerprint: `Dataset.fingerprint` of the whole set, of which public samples may have been taken out.
        held_out: Samples of the clients for validation, on which nobody trains.
        owners_of_test: (N,) client out of whose share each test sample is; None where they belong to nobody.
    """

    dataset: Dataset
    partition: Partition
    fingerprint: str | None = None
    held_out: Examples | None = None
    owners_of_test: NDArray[np.int64] | None = None

    @property
    @override
    def sizes(self) -> NDArray[np.int64]:
        return self.partition.sizes

    @property
    @override
    def feature_shape(self) -> tuple[int, ...]:
        return self.dataset.feature_shape

    @property
    @override
    def num_classes(self) -> int:
        return self.dataset.num_classes

    @property
    @override
    def test(self) -> Examples:
        return self.dataset.test

    @property
    @override
    def vocabulary(self) -> tuple[str, ...] | None:
        return self.dataset.vocabulary

    @property
    @override
    def test_owners(self) -> NDArray[np.int64] | None:
        return self.owners_of_test

    @property
    @override
    def validation(self) -> Examples | None:
        return self.held_out

    @property
    @override
    def lasting_bytes(self) -> int:
        parts = self.dataset.train, self.dataset.test, *([] if self.held_out is None else [self.held_out])
        return sum(part.inputs.nbytes + part.targets.nbytes for part in parts)

    def to(self, device: torch.device | str) -> PartitionedData:
        """The same population with its samples on ``device``."""
        held_out = None if self.held_out is None else self.held_out.to(device)
        return replace(self, dataset=self.dataset.to(device), held_out=held_out)

    def side_by_side(self) -> PartitionedData:
        """The same population, the samples of a client next to each other in memory and client after client.

        Blocks of clients of one size are then views of the training set, where otherwise each sample is copied
        in every round.
        """
        order = self.partition.order
        owners = None if self.dataset.owners is None else self.dataset.owners[order]
        dataset = replace(self.dataset, train=self.dataset.train.take(order), owners=owners)
        return replace(self, dataset=dataset, partition=Partition(self.partition.offsets, np.arange(len(order))))

    def shards(self, clients: NDArray[np.int64]) -> Shards:
        """The samples of ``clients`` (n,): rows of the whole training set."""
        train = self.dataset.train
        index = torch.from_numpy(self.partition.padded_rows(clients))
        return Shards(train.inputs, train.targets, index, torch.from_numpy(self.sizes[clients]))


@dataclass(frozen=True, eq=False)
class SyntheticPopulation(Population):
    """FedProx's synthetic data for any number of registered clients, made when a client is asked for.

    Only the sizes of all clients are held (8 bytes a client). A client's samples come from random streams of its own,
    so they are the same at every request and need no cache: making them takes a fraction of training on them.

    The test set are held-out samples of the first min(K, `TEST_CLIENTS`) clients, equally many of each, together at
    most `TEST_SAMPLES`. Clients are exchangeable, so the first stand for all.

    Attributes:
        streams: Source of all randomness; its seed fixes the data.
        num_clients: K.
        law: How a client's model and inputs are drawn.
        size_law: How many samples a client has.
    """

    TEST_CLIENTS: ClassVar[int] = 100
    TEST_SAMPLES: ClassVar[int] = 2_000

    streams: Streams
    num_clients: int
    law: SyntheticLaw
    size_law: LogNormalSizes = field(default_factory=LogNormalSizes)

    def __post_init__(self) -> None:
        precondition(self.num_clients >= 1, f"num_clients must be ≥ 1, found {self.num_clients}")

    @cached_property
    @override
    def sizes(self) -> NDArray[np.int64]:
        return self.size_law.draw(self.streams, self.num_clients)

    @property
    @override
    def feature_shape(self) -> tuple[int, ...]:
        return (FEATURES,)

    @property
    @override
    def num_classes(self) -> int:
        return NUM_CLASSES

    @cached_property
    def test(self) -> Examples:
        """Held-out samples of the first clients."""
        tested, per_client = self._tested
        return draw_examples(self.law, self.streams, "test", tested, per_client)

    @property
    @override
    def test_owners(self) -> NDArray[np.int64]:
        return np.repeat(*self._tested)

    @property
    def _tested(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        # The clients with test samples, and how many of each
        tested = np.arange(min(self.num_clients, self.TEST_CLIENTS))
        return tested, np.full(len(tested), self.TEST_SAMPLES // len(tested))

    def shards(self, clients: NDArray[np.int64]) -> Shards:
        """The samples of ``clients`` (n,) and of nobody else, one client after the other."""
        sizes = self.sizes[clients]
        examples = draw_examples(self.law, self.streams, "train", clients, sizes)
        index = np.maximum(padded_positions(np.cumsum(sizes) - sizes, sizes), 0)
        return Shards(examples.inputs, examples.targets, torch.from_numpy(index), torch.from_numpy(sizes))
