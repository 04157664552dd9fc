"""Codecs of digital uploads: single precision, and random rounding to few bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.radio import StochasticQuantiser


@dataclass(frozen=True)
class Payload:
    """Encoded vectors of k clients.

    Attributes:
        content: whatever the codec's own ``decode`` takes.
        bits: of each client's.
    """

    content: Any
    bits: int


@runtime_checkable
class Codec(Protocol):
    """How vectors become bits. Their number is public and known before training: airtime does not tell of data."""

    def bits(self, dimension: int) -> int:
        """Bits of an encoded vector of length d."""

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        """The payload of vectors (k, d), with randomness of k generators, one a client."""

    def decode(self, payload: Payload) -> NDArray[np.float32]:
        """(k, d) what the server reconstructs."""


FLOAT_BITS = 32


@dataclass(frozen=True)
class NoCodec(Codec):
    """Vectors in single precision."""

    @override
    def bits(self, dimension: int) -> int:
        return FLOAT_BITS * dimension

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        return Payload(rows, self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        return np.asarray(payload.content)


@dataclass(frozen=True)
class RandomRounding(NoCodec):
    """Coordinates rounded at random without bias; the payload holds what they stand for."""

    quantiser: StochasticQuantiser

    @override
    def bits(self, dimension: int) -> int:
        return self.quantiser.payload_bits(dimension)

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        uniform = np.stack([generator.random(rows.shape[1], dtype=np.float32) for generator in generators])
        return Payload(self.quantiser.quantise(rows, uniform), self.bits(rows.shape[1]))
