"""Codecs of digital uploads: single precision, and random rounding to few bits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition


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
    """Coding of vectors in bits, whose number is public and known before training: airtime does not tell of data."""

    def bits(self, dimension: int) -> int:
        """Bits of an encoded vector of length d."""

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        """The payload of vectors (k, d), with randomness of k generators, one a client."""

    def decode(self, payload: Payload) -> NDArray[np.float32]:
        """(k, d) what the server reconstructs."""


@runtime_checkable
class RoundCodec(Codec, Protocol):
    """Codec with randomness that is common to all clients of a round."""

    def drawn(self, generator: np.random.Generator) -> Codec:
        """The codec of a round."""


@runtime_checkable
class DecidingCodec(Codec, Protocol):
    """Codec of votes, whose mean the server takes a decision by."""

    def decided(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d,) the server's step from the mean of what clients sent (d,)."""


FLOAT_BITS = 32
MAX_BITS = 16
"""Above it single precision cannot hold a level and the fraction to be rounded."""


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
    """b bits a coordinate on 2^b − 1 even levels over [−max|x|, max|x|], rounded up or down at random, without bias.

    Sign and magnitude as in QSGD (Alistarh et al. 2017) with s = 2^(b−1) − 1 levels of magnitude and the largest
    coordinate for the norm: zero is a level, so that a sparse update stays sparse. Each coordinate errs with variance
    f (1 − f) Δ², Δ = max|x|/s the step and f the position between two levels. One bit leaves no room for a zero: the
    levels are then ±max|x|, and Δ = 2 max|x|. A payload holds what its levels stand for; each vector's scale travels as
    one number in single precision.

    Attributes:
        width: b from 1 to 16.
    """

    width: int

    def __post_init__(self) -> None:
        precondition(1 <= self.width <= MAX_BITS, f"bits must lie between 1 and {MAX_BITS}, not {self.width}")

    @override
    def bits(self, dimension: int) -> int:
        return self.width * dimension + FLOAT_BITS

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        uniform = np.stack([generator.random(rows.shape[1], dtype=np.float32) for generator in generators])
        return Payload(self.quantise(rows, uniform), self.bits(rows.shape[1]))

    def quantise(self, updates: Any, uniform: Any) -> Any:
        """Reconstruction of updates at the receiver.

        Args:
            updates: (k, d), NumPy or torch.
            uniform: (k, d) random numbers in [0, 1), of the same kind.

        Returns:
            (k, d) with E[result] = updates; the sum of squares can exceed that of ``updates``.
        """
        magnitude = abs(updates)
        largest = magnitude.amax(1, True) if hasattr(magnitude, "amax") else magnitude.max(axis=1, keepdims=True)
        scale = largest + (largest == 0)
        half = max(2 ** (self.width - 1) - 1, 0.5)
        position = (updates / scale + 1) * half
        below = position // 1
        level = below + (uniform < position - below)
        return (level - half) / half * largest
