"""Single precision, and random rounding to few bits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.compression.base import Codec, Payload
from wirelessfl.radio import StochasticQuantiser

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
