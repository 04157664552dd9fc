"""Partitions of N training samples among K clients."""

import heapq
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset


@dataclass(frozen=True, eq=False)
class Partition:
    """Disjoint, non-empty shares of the training samples, held as two arrays rather than K lists.

    Attributes:
        offsets: (K+1,) int64; client k holds ``order[offsets[k]:offsets[k+1]]``.
        order: (N,) int64 rows of the training set, each at most once.
    """

    offsets: NDArray[np.int64]
    order: NDArray[np.int64]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(K,) samples n_i of each client."""
        return np.diff(self.offsets)

    def rows(self, client: int) -> NDArray[np.int64]:
        """(n_i,) the rows of one client."""
        return self.order[self.offsets[client] : self.offsets[client + 1]]

    def padded_rows(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n, max n_i) the rows of several clients, padded with 0."""
        position = padded_positions(self.offsets[clients], self.sizes[clients])
        return np.where(position >= 0, self.order[position], 0)


@runtime_checkable
class PartitionRule(Protocol):
    """Division of the training samples among clients by code from outside."""

    def divide(self, dataset: Dataset, num_clients: int, generator: np.random.Generator) -> Partition:
        """Disjoint, non-empty shares of the training samples of ``dataset``, random by ``generator`` alone."""


def check_shares(partition: Partition, num_samples: int, num_clients: int) -> None:
    """Checks that shares are disjoint and not empty.

    Raises:
        TypeError: it is no partition.
        ValueError: there are other clients, a client has nothing, or a row is unknown or in two shares.
    """
    if not isinstance(partition, Partition):
        raise TypeError(f"divided into a {type(partition).__name__}; allowed: a learning.Partition")
    offsets, order = partition.offsets, partition.order
    for what, array in (("offsets", offsets), ("rows", order)):
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise TypeError(f"{what} are a {type(array).__name__}; allowed: a NumPy array of one dimension")
    precondition(
        len(offsets) == num_clients + 1
        and offsets.dtype == np.int64
        and offsets[0] == 0
        and offsets[-1] == len(order)
        and not (np.diff(offsets) < 1).any(),
        f"offsets {offsets} ({offsets.dtype}) do not cut {len(order)} rows into a share for each of {num_clients}",
    )
    precondition(
        order.dtype == np.int64
        and order.min() >= 0
        and order.max() < num_samples
        and not (np.bincount(order, minlength=num_samples) > 1).any(),
        f"rows must be different numbers from 0 to {num_samples - 1}",
    )


def padded_positions(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, max size) ``starts[i] + 0, 1, …, sizes[i] − 1`` in row i, then −1."""
    step = np.arange(sizes.max(initial=0))
    return np.where(step < sizes[:, None], starts[:, None] + step, -1)


def iid_partition(num_samples: int, num_clients: int, generator: np.random.Generator) -> Partition:
    """Random partition into shares whose sizes differ by at most one."""
    _require_enough(num_samples, num_clients)
    return Partition(np.arange(num_clients + 1) * num_samples // num_clients, generator.permutation(num_samples))


def power_law_partition(
    num_samples: int, num_clients: int, exponent: float, generator: np.random.Generator
) -> Partition:
    """Random partition into shares that fall off as a power of the rank (Zipf's law).

    Every client gets one sample; of the rest, the client of rank r = 1 … K gets a share ∝ r^−exponent, rounded.
    Ranks are assigned to the clients at random. Exponent 0 makes all equal, 1 is Zipf's own.
    """
    _require_enough(num_samples, num_clients)
    precondition(np.isfinite(exponent) and exponent >= 0, f"exponent must be a finite number ≥ 0, found {exponent}")
    share = np.cumsum(np.arange(1.0, num_clients + 1) ** -exponent)
    cuts = np.rint((num_samples - num_clients) * (share / share[-1])).astype(np.int64)
    sizes = generator.permutation(1 + np.diff(cuts, prepend=0))
    return Partition(_offsets(sizes), generator.permutation(num_samples))


def dirichlet_partition(
    targets: NDArray[np.int64], num_clients: int, alpha: float, generator: np.random.Generator
) -> Partition:
    """Partition of every class in proportions drawn from Dir(alpha·1_K).

    This is the label skew of Yurochkin et al. (ICML 2019); small alpha, few clients a class. Clients left without any
    sample then get one each, a random one of whoever holds most at that moment.

    Args:
        targets: (N,) class labels.
        num_clients: K.
        alpha: Concentration, > 0.
        generator: The only source of randomness.
    """
    _require_enough(len(targets), num_clients)
    precondition(np.isfinite(alpha) and alpha > 0, f"alpha must be a finite number > 0, found {alpha}")
    shuffled = generator.permutation(len(targets))
    by_class = shuffled[np.argsort(targets[shuffled], kind="stable")]
    counts = np.unique(targets, return_counts=True)[1]
    shares = np.cumsum(generator.dirichlet(np.full(num_clients, alpha), len(counts)), axis=1)
    cuts = np.rint(counts[:, None] * (shares / shares[:, -1:])).astype(np.int64)
    owner_in_order = np.tile(np.arange(num_clients), len(counts)).repeat(np.diff(cuts, axis=1, prepend=0).ravel())
    owner = np.empty(len(targets), dtype=np.int64)
    owner[by_class] = owner_in_order
    return _from_owner(_with_nobody_empty(owner, num_clients, generator), num_clients)


def classes_partition(
    targets: NDArray[np.int64], num_clients: int, classes_per_client: int, generator: np.random.Generator
) -> Partition:
    """Partition in which every client holds exactly ``classes_per_client`` classes.

    A class is held by a number of clients proportional to its samples (at least one, where there are enough clients
    for all classes) and divided evenly among them, so that the shares come out as even as the classes allow. Every
    sample is used unless K·classes_per_client is less than the number of classes.

    Args:
        targets: (N,) class labels; only classes that occur count.
        num_clients: K.
        classes_per_client: Between 1 and the number of classes.
        generator: The only source of randomness.

    Raises:
        DataError: more clients than samples, more classes a client than there are, or samples too few or too unevenly
            spread for every client to hold that many classes.
    """
    _require_enough(len(targets), num_clients)
    labels, counts = np.unique(targets, return_counts=True)
    precondition(
        1 <= classes_per_client <= len(labels),
        f"data.partition.classes_per_client: found {classes_per_client}; allowed: 1 to {len(labels)}, the classes that "
        "the training samples hold",
        DataError,
    )
    holders_of = _apportion(counts, num_clients * classes_per_client, np.minimum(counts, num_clients))
    owner = np.full(len(targets), -1)
    room = np.full(num_clients, classes_per_client)
    load = np.zeros(num_clients, dtype=np.int64)
    for c in generator.permutation(len(labels)):
        # Filling those with most room first never leads into a dead end (Gale and Ryser, 1957).
        holders = np.lexsort((generator.random(num_clients), -room))[: holders_of[c]]
        if len(holders) == 0:
            continue
        room[holders] -= 1
        holders = holders[np.argsort(load[holders], kind="stable")]  # the lightest get the odd samples
        rows = generator.permutation(np.flatnonzero(targets == labels[c]))
        owner[rows] = holders[np.arange(len(rows)) % len(holders)]
        load += np.bincount(owner[rows], minlength=num_clients)
    return _from_owner(owner, num_clients)


def natural_partition(owners: NDArray[np.int64] | None, num_clients: int) -> Partition:
    """Natural partition: client k holds the samples of the k-th owner (ascending); further owners are left out.

    Args:
        owners: (N,) the owner of each sample, e.g. its writer; None where the dataset knows none.
        num_clients: K, at most the number of owners.

    Raises:
        DataError: no owners are known, or fewer than ``num_clients``.
    """
    if owners is None:
        raise DataError(
            "data.partition.scheme: found natural with a dataset that does not say who its samples belong to "
            "(Dataset.owners); allowed here are iid, classes, dirichlet, sizes"
        )
    ids, owner = np.unique(owners, return_inverse=True)
    precondition(
        num_clients <= len(ids),
        f"clients.count: found {num_clients} clients; allowed: at most {len(ids)}, the natural owners of the dataset",
        DataError,
    )
    return _from_owner(np.where(owner < num_clients, owner, -1), num_clients)


def _require_enough(num_samples: int, num_clients: int) -> None:
    precondition(num_clients >= 1, f"num_clients must be ≥ 1, found {num_clients}")
    precondition(
        num_clients <= num_samples,
        f"clients.count: {num_clients} clients cannot share {num_samples} training samples; allowed: at most one "
        "client for each sample",
        DataError,
    )


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


def _from_owner(owner: NDArray[np.int64], num_clients: int) -> Partition:
    # The partition in which sample j belongs to ``owner[j]``, or to nobody where that is −1.
    order = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
    return Partition(_offsets(np.bincount(owner[order], minlength=num_clients)), order)


def _with_nobody_empty(owner: NDArray[np.int64], num_clients: int, generator: np.random.Generator) -> NDArray[np.int64]:
    # Moves one random sample from the largest client of the moment to each client that has none.
    sizes = np.bincount(owner, minlength=num_clients)
    shuffled = generator.permutation(len(owner))
    order = shuffled[np.argsort(owner[shuffled], kind="stable")]
    last = np.cumsum(sizes)  # one past the last sample a client still holds
    largest_first = [(-int(size), client) for client, size in enumerate(sizes)]
    heapq.heapify(largest_first)
    owner = owner.copy()
    for empty in np.flatnonzero(sizes == 0):
        _, donor = heapq.heapreplace(largest_first, (largest_first[0][0] + 1, largest_first[0][1]))
        last[donor] -= 1
        owner[order[last[donor]]] = empty
    return owner


def _apportion(counts: NDArray[np.int64], seats: int, most: NDArray[np.int64]) -> NDArray[np.int64]:
    # Apportionment of ``seats`` in proportion to ``counts``, at least one (while they last), at most ``most`` each.
    #
    # Divisor method of Adams: the next seat goes to the class with most samples per seat that it holds, a class
    # without a seat first. What it minimises is the largest share n_c/m_c of a seat.
    precondition(
        most.sum() >= seats,
        f"data.partition.classes_per_client: found {seats} shares of classes in all, and some classes have too few "
        f"samples for that; allowed: {int(most.sum())}",
        DataError,
    )
    held = np.zeros_like(counts)
    by_need = [(-np.inf, -int(count), c) for c, count in enumerate(counts)]
    heapq.heapify(by_need)
    for _ in range(seats):
        _, negative_count, c = heapq.heappop(by_need)
        held[c] += 1
        if held[c] < most[c]:
            heapq.heappush(by_need, (negative_count / held[c], negative_count, c))
    return held
