"""Samples that are held out of every client's share, for validation or testing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError
from wirelessfl.learning.partition import Partition


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Samples held out of the clients' shares, client by client.

    Attributes:
        rows: (N,) of the training set.
        owners: (N,) ascending numbers of the clients out of whose shares they are.
    """

    rows: NDArray[np.int64]
    owners: NDArray[np.int64]


def hold_out(
    partition: Partition, fractions: Sequence[float], generator: np.random.Generator
) -> tuple[Partition, list[HeldOutRows]]:
    """The shares without the samples held out, and the rows held out of all of them.

    Of a client with n samples, round(n·fraction) go to each part, drawn at random; what is left keeps its order.

    Args:
        partition: Shares of K clients.
        fractions: Of each of P parts, together less than 1.
        generator: The only source of randomness.

    Returns:
        Shares, and P parts.

    Raises:
        DataError: a client has nothing left to train on, or a part has no sample at all.
    """
    sizes, order = partition.sizes, partition.order
    client = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.empty(len(order), dtype=np.int64)
    rank[np.lexsort((generator.random(len(order)), client))] = np.arange(len(order)) - partition.offsets[client]
    counts = np.rint(np.outer(fractions, sizes)).astype(np.int64)
    ends = np.cumsum(counts, axis=0)
    left = sizes - ends[-1]
    if not left.all():
        one = int(np.argmin(left))
        raise DataError(
            f"data.validation, data.test: found that client {one} has {sizes[one]} samples and none is left to train on"
            "; allowed: smaller fractions, or fewer clients"
        )
    for count in counts:
        if not count.any():
            raise DataError(
                f"data.validation, data.test: found that no client has enough samples for one of them to be held out "
                f"(the largest has {sizes.max()}); allowed: larger fractions, or fewer clients"
            )
    taken = [
        (rank >= end[client] - count[client]) & (rank < end[client]) for count, end in zip(counts, ends, strict=True)
    ]
    parts = [HeldOutRows(order[mask], client[mask]) for mask in taken]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(left)])
    return Partition(offsets, order[rank >= ends[-1][client]]), parts
