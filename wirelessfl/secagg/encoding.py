"""Rings of integers, and fixed-point encoding of updates into one in which the sum of all clients cannot overflow.

A `SumEncoding` turns updates and their weights into vectors whose ring sum gives the weighted mean.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition

# Elements of the ring: little-endian words of 32 or 64 bits, the upper bits beyond the ring's own being free.
RingVector = NDArray[Any]


@dataclass(frozen=True)
class Ring:
    """The integers modulo 2**bits, 1 ≤ bits ≤ 64.

    Sums are taken in the machine word (32 or 64 bits), whose wrap-around respects every smaller power of two;
    ``reduce`` drops the upper bits once, at the end.
    """

    bits: int

    def __post_init__(self) -> None:
        precondition(1 <= self.bits <= 64, f"the ring must have 1 to 64 bits, not {self.bits}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned word that holds an element."""
        return np.dtype("<u4" if self.bits <= 32 else "<u8")

    @property
    def largest(self) -> int:
        """The largest element, 2**bits - 1."""
        return (1 << self.bits) - 1

    def zeros(self, dimension: int) -> RingVector:
        """A zero vector of the ring's word."""
        return np.zeros(dimension, dtype=self.dtype)

    def reduce(self, words: RingVector) -> None:
        """Reduction of words modulo 2**bits, in place."""
        np.bitwise_and(words, self.dtype.type(self.largest), out=words)

    def check(self, vector: RingVector, dimension: int) -> None:
        """Refusal of anything but ``dimension`` elements of this ring.

        Raises:
            ValueError: wrong shape, wrong word, or elements beyond the ring.
        """
        precondition(
            vector.shape == (dimension,) and vector.dtype == self.dtype,
            f"expected {dimension} words {self.dtype}, found {vector.dtype} of shape {vector.shape}",
        )
        precondition(int(vector.max()) <= self.largest, f"an element does not fit the ring of {self.bits} bits")

    def signed(self, elements: RingVector) -> NDArray[np.int64]:
        """The representative of each element in [-2**(bits-1), 2**(bits-1))."""
        shift = 64 - self.bits
        return (elements.astype(np.uint64) << np.uint64(shift)).view(np.int64) >> np.int64(shift)


# Beyond this many steps a double does not tell neighbouring steps apart.
_MOST_STEPS = 2**53


FLOAT_ROOM = 1.0 + 2.0**-10
"""Bound of a coordinate over the clip τ: a float32 update clipped to τ exceeds it by a few times 2^-24."""


@dataclass(frozen=True)
class FixedPoint:
    """Numbers in [-bound, bound] as multiples of ``step`` modulo 2**bits, for a sum of ``num_clients`` of them.

    A coordinate is rounded up or down at random so that its mean is kept: the error of the sum has mean zero and
    variance at most num_clients step²/4 per coordinate. Every encoded coordinate is at most ⌈bound/step⌉ in
    magnitude, and the constructor refuses a ring in which num_clients of those do not fit [-2**(bits-1), 2**(bits-1)).

    Attributes:
        bound: largest magnitude of a coordinate. Updates clipped to norm τ satisfy τ up to float rounding: leave room.
        step: resolution, in the unit of the coordinates.
        bits: size of the ring, at most 64.
        num_clients: the largest number of encoded vectors in one sum.
    """

    bound: float
    step: float
    bits: int
    num_clients: int

    def __post_init__(self) -> None:
        precondition(
            np.isfinite(self.bound) and np.isfinite(self.step) and self.bound > 0 and self.step > 0,
            f"bound and step must be positive and finite, not {self.bound} and {self.step}",
        )
        precondition(self.num_clients >= 1, f"a sum needs at least one client, not {self.num_clients}")
        largest = self.largest
        precondition(
            largest <= _MOST_STEPS, f"a bound of {largest} steps is finer than the double precision of the updates"
        )
        needed = bits_for(self.num_clients * largest)
        precondition(
            needed <= self.ring.bits,
            f"{self.bits} bits overflow: {self.num_clients} clients of up to {largest} steps need {needed}",
        )

    @classmethod
    def finest(cls, bound: float, bits: int, num_clients: int) -> Self:
        """The smallest step that a ring of ``bits`` allows.

        Raises:
            ValueError: not even one step per client fits.
        """
        steps = (2 ** (bits - 1) - 1) // num_clients if bits >= 1 and num_clients >= 1 else 0
        precondition(steps >= 1, f"{bits} bits overflow: they do not hold one step of each of {num_clients} clients")
        steps = min(steps, _MOST_STEPS)
        step = bound / steps
        if Fraction(bound) > steps * Fraction(step):  # the division rounded down: one step would be missing
            step = float(np.nextafter(step, np.inf))
        return cls(bound, step, bits, num_clients)

    @property
    def ring(self) -> Ring:
        """The ring of the encoded vectors."""
        return Ring(self.bits)

    @property
    def largest(self) -> int:
        """The largest magnitude of an encoded coordinate, ⌈bound/step⌉."""
        return ceil(Fraction(self.bound) / Fraction(self.step))

    def encode(self, values: NDArray[Any], generator: np.random.Generator) -> RingVector:
        """Ring elements (d,) of real values (d,), by stochastic rounding.

        Raises:
            ValueError: a value is not finite or beyond the bound. Saturating it would bias the sum in silence.
        """
        scaled = np.asarray(values, dtype=np.float64)
        precondition(
            np.all(np.abs(scaled) <= self.bound), f"a coordinate is not a number in [-{self.bound}, {self.bound}]"
        )
        scaled = scaled / self.step
        steps = np.floor(scaled)
        scaled -= steps
        steps += generator.random(len(steps)) < scaled
        elements: RingVector = steps.astype(np.int64).astype(self.ring.dtype)
        self.ring.reduce(elements)
        return elements

    def decode(self, total: RingVector) -> NDArray[np.float64]:
        """The sum (d,) in the unit of the values, from the ring sum of encoded vectors."""
        return np.multiply(self.ring.signed(total), self.step, dtype=np.float64)


def bits_for(largest_sum: int) -> int:
    """The bits of the smallest ring that holds every integer in [-largest_sum, largest_sum]."""
    return largest_sum.bit_length() + 1


@dataclass(frozen=True)
class SumEncoding(ABC):
    """Encoding of updates (d,) and their weights n_i, the sample numbers, for a ring sum that gives the weighted mean.

    Attributes:
        fixed_point: encodes coordinates.
        dimension: d.
        max_weight: bound on n_i that the server may know.
    """

    fixed_point: FixedPoint
    dimension: int
    max_weight: int

    @property
    def ring(self) -> Ring:
        """The ring of the sum."""
        return self.fixed_point.ring

    @property
    @abstractmethod
    def length(self) -> int:
        """Elements of an encoded vector."""

    @abstractmethod
    def encode(self, update: NDArray[Any], samples: int, generator: np.random.Generator) -> RingVector:
        """The vector (length,) of a client with ``samples`` samples."""

    @abstractmethod
    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weighted mean (d,) from the sum over clients with (k,) ``samples``."""


@dataclass(frozen=True)
class PublicWeights(SumEncoding):
    """Encoding with public n_i: (n_i/max_weight) Δ_i of client i, divided by Σ n_i/max_weight at the server."""

    @property
    @override
    def length(self) -> int:
        return self.dimension

    @override
    def encode(self, update: NDArray[Any], samples: int, generator: np.random.Generator) -> RingVector:
        return self.fixed_point.encode(update.astype(np.float64) * (samples / self.max_weight), generator)

    @override
    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.fixed_point.decode(total) * (self.max_weight / float(samples.sum()))


@dataclass(frozen=True)
class HiddenWeights(SumEncoding):
    """Encoding with hidden n_i: the server learns Σ n_i Δ_i and Σ n_i, and no single n_i.

    Client i encodes (n_i/max_weight) Δ_i and appends n_i itself as one more masked coordinate; the server divides
    one sum by the other, and does not read the numbers of samples that ``decode`` is given.

    Raises:
        ValueError: the bound is below 1 or above what the ring holds of it; a weight lies beyond it; all are zero.
    """

    def __post_init__(self) -> None:
        precondition(self.max_weight >= 1, f"the largest weight must be at least 1, not {self.max_weight}")
        bits, needed = self.fixed_point.bits, bits_for(self.fixed_point.num_clients * self.max_weight)
        precondition(needed <= bits, f"{bits} bits overflow: the sum of the weights needs {needed}")

    @property
    @override
    def length(self) -> int:
        return self.dimension + 1

    @override
    def encode(self, update: NDArray[Any], samples: int, generator: np.random.Generator) -> RingVector:
        precondition(0 <= samples <= self.max_weight, f"a weight must lie in [0, {self.max_weight}], not {samples}")
        share = np.asarray(update, dtype=np.float64) * (samples / self.max_weight)
        encoded = self.fixed_point.encode(share, generator)
        return np.append(encoded, encoded.dtype.type(samples))

    @override
    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        total_weight = int(total[-1])
        precondition(total_weight != 0, "the weights sum to zero: there is no mean")
        return self.fixed_point.decode(total[:-1]) * (self.max_weight / total_weight)
