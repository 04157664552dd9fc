"""k coordinates drawn at random, the same for all clients of a round."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.compression.codecs import FLOAT_BITS, Codec, Payload
from wirelessfl.learning.compression.top_k import check_share, kept_of


@dataclass(frozen=True)
class RandK(Codec):
    """k = ⌈share · d⌉ coordinates, uniformly drawn from a seed that the server announces, times d/k at the server.

    Unbiased (Konečný et al., "Federated learning: strategies for improving communication efficiency", 2016). As all
    clients send the same places, these take no bits, and the sum of uploads has them too: a secure sum is enough.

    Attributes:
        share: in (0, 1].
        seed: of the places.
        unbiased: whether the server multiplies by d/k; not where clients keep what they did not send.

    Raises:
        ValueError: if the share is out of range.
    """

    share: float
    seed: int = 0
    unbiased: bool = True

    def __post_init__(self) -> None:
        check_share(self.share)

    def drawn(self, generator: np.random.Generator) -> Self:
        """The same with the places of another round."""
        return replace(self, seed=int(generator.integers(2**62)))

    @override
    def bits(self, dimension: int) -> int:
        return FLOAT_BITS * kept_of(self.share, dimension)

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        return Payload((rows.shape[1], self.reduced(rows)), self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        dimension, values = payload.content
        return self.expanded(values, dimension).astype(np.float32, copy=False)

    def reduced(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """(..., k) what is sent of vectors (..., d)."""
        return np.asarray(rows[..., self.places(rows.shape[-1])])

    def expanded(self, values: NDArray[np.floating], dimension: int) -> NDArray[np.floating]:
        """(..., d) vectors, or a sum of vectors, from what was sent of them (..., k)."""
        rows = np.zeros((*values.shape[:-1], dimension), dtype=values.dtype)
        factor = dimension / values.shape[-1] if self.unbiased else 1.0
        rows[..., self.places(dimension)] = values * values.dtype.type(factor)
        return rows

    def places(self, dimension: int) -> NDArray[np.int64]:
        """(k,) ascending places."""
        return _places(dimension, kept_of(self.share, dimension), self.seed)


@functools.lru_cache(maxsize=2)  # all blocks of a round ask for the same
def _places(dimension: int, kept: int, seed: int) -> NDArray[np.int64]:
    places = np.sort(np.random.default_rng(seed).choice(dimension, kept, replace=False))
    places.flags.writeable = False
    return places
