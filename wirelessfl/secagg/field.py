"""Arithmetic in a prime field, vectorised, exact.

Products of two elements of a field below 2**31 fit 62 bits, so that uint64 holds them; matrix products go through
floating-point BLAS, with one factor split in halves so short that every sum stays an exact integer below 2**53.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

RandomBytes = Callable[[int], bytes]
Elements = NDArray[np.uint64]

_HALF_BITS = 16
_LOW_HALF = 2**_HALF_BITS - 1
# 2**6 terms of (16-bit half) x (31-bit element) sum to less than 2**53, the last exact integer of a double.
_EXACT_TERMS = 2 ** (53 - 31 - _HALF_BITS)


@dataclass(frozen=True)
class PrimeField:
    """The integers modulo ``prime`` (at most 2**31 - 1), held as uint64 arrays of values below ``prime``."""

    prime: int

    def __post_init__(self) -> None:
        precondition(2 <= self.prime < 2**31, f"the field's prime must lie in [2, 2**31), not {self.prime}")

    def random(self, shape: tuple[int, ...], random_bytes: RandomBytes) -> Elements:
        """Uniform elements of the given shape, by rejection of words that are not below the prime."""
        count = int(np.prod(shape))
        mask = np.uint32(2 ** self.prime.bit_length() - 1)
        kept = np.empty(0, dtype=np.uint32)
        while len(kept) < count:
            words = np.frombuffer(random_bytes(4 * (count - len(kept))), dtype="<u4") & mask
            kept = np.concatenate([kept, words[words < self.prime]])
        return kept.astype(np.uint64).reshape(shape)

    def matmul(self, left: Elements, right: Elements) -> Elements:
        """The matrix product of (m, k) and (k, n) elements, (m, n)."""
        product = np.zeros((left.shape[0], right.shape[1]), dtype=np.uint64)
        for start in range(0, left.shape[1], _EXACT_TERMS):
            block = left[:, start : start + _EXACT_TERMS]
            factor = right[start : start + _EXACT_TERMS].astype(np.float64)
            high = ((block >> _HALF_BITS).astype(np.float64) @ factor).astype(np.uint64)
            low = ((block & _LOW_HALF).astype(np.float64) @ factor).astype(np.uint64)
            product += ((high % self.prime) << _HALF_BITS) + low % self.prime
            product %= self.prime
        return product

    def inverse(self, elements: Elements) -> Elements:
        """Multiplicative inverses by Fermat's theorem; 0 has none and gives 0."""
        result = np.ones_like(elements)
        square, exponent = elements % self.prime, self.prime - 2
        while exponent:
            if exponent & 1:
                result = result * square % self.prime
            square = square * square % self.prime
            exponent >>= 1
        return result % self.prime

    def powers(self, points: Elements, count: int) -> Elements:
        """The Vandermonde matrix (m, count): powers 0 to count - 1 of the m points."""
        matrix = np.ones((len(points), count), dtype=np.uint64)
        base, filled = points % self.prime, 1
        while filled < count:  # each pass doubles the number of columns: base is points**filled
            width = min(filled, count - filled)
            matrix[:, filled : filled + width] = matrix[:, :width] * base[:, None] % self.prime
            base, filled = base * base % self.prime, filled + width
        return matrix % self.prime

    def lagrange_at_zero(self, points: Elements) -> Elements:
        """Weights (m, t) that take the values of a polynomial at each row's t points to its value at 0.

        λ_i = Π_{j ≠ i} x_j / (x_j − x_i). The points of a row must be distinct and non-zero.
        """
        numerator = np.ones_like(points)
        denominator = np.ones_like(points)
        for j in range(points.shape[1]):
            point = points[:, j : j + 1]
            factor = (point + self.prime - points) % self.prime
            factor[:, j] = 1
            denominator = denominator * factor % self.prime
            others = np.broadcast_to(point, points.shape).copy()
            others[:, j] = 1
            numerator = numerator * others % self.prime
        return numerator * self.inverse(denominator) % self.prime


MERSENNE_31 = PrimeField(2**31 - 1)
