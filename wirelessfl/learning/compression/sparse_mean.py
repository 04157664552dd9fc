"""The mean of the highest or of the lowest coordinates of a vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.compression.codecs import FLOAT_BITS, Codec, Payload
from wirelessfl.learning.compression.top_k import index_bits


@dataclass(frozen=True)
class SparseMean(Codec):
    """The q highest or the q lowest coordinates, whichever have the mean of larger magnitude, all at that mean.

    Sattler et al., "Sparse binary compression", 2018, as in D-DSGD (Amiri, Gündüz, TSP 2020): ⌈log₂ C(d, q)⌉ bits of
    the places and 33 of the mean with its sign. Of equal means the highest coordinates are taken.

    Attributes:
        kept: q, at most d/2.

    Raises:
        ValueError: if nothing is kept.
    """

    kept: int

    def __post_init__(self) -> None:
        precondition(self.kept >= 1, f"kept must be at least 1, not {self.kept}")

    @override
    def bits(self, dimension: int) -> int:
        return index_bits(dimension, self.kept) + FLOAT_BITS + 1

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        order = np.argsort(rows, axis=1, kind="stable")
        lowest, highest = order[:, : self.kept], order[:, rows.shape[1] - self.kept :]
        means = [np.take_along_axis(rows, each, axis=1).mean(axis=1, dtype=np.float64) for each in (lowest, highest)]
        falls = np.abs(means[0]) > np.abs(means[1])
        places = np.where(falls[:, None], lowest, highest)
        mean = np.where(falls, *means).astype(np.float32)
        return Payload((rows.shape, places, mean), self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        shape, places, mean = payload.content
        rows = np.zeros(shape, dtype=np.float32)
        np.put_along_axis(rows, places, mean[:, None], axis=1)
        return rows
