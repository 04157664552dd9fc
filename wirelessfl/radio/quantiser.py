"""Unbiased stochastic quantisation of updates for digital uplinks."""

from dataclasses import dataclass
from typing import Any

from wirelessfl.errors import precondition

Array = Any
"""A NumPy array or a torch tensor."""

SCALE_BITS = 32
"""Each update's scale travels as one single-precision number."""
MAX_BITS = 16
"""Above it single precision cannot hold a level and the fraction to be rounded."""


@dataclass(frozen=True)
class StochasticQuantiser:
    """b bits a coordinate on 2^b − 1 even levels over [−max|x|, max|x|], rounded up or down at random, without bias.

    Sign and magnitude as in QSGD (Alistarh et al. 2017) with s = 2^(b−1) − 1 levels of magnitude and the largest
    coordinate for the norm: zero is a level, so that a sparse update stays sparse. Each coordinate errs with variance
    f (1 − f) Δ², Δ = max|x|/s the step and f the position between two levels. One bit leaves no room for a zero: the
    levels are then ±max|x|, and Δ = 2 max|x|.

    Attributes:
        bits: b from 1 to 16.
    """

    bits: int

    def __post_init__(self) -> None:
        precondition(1 <= self.bits <= MAX_BITS, f"bits must lie between 1 and {MAX_BITS}, not {self.bits}")

    def payload_bits(self, dimension: int) -> int:
        """Bits of one quantised update of d coordinates."""
        return self.bits * dimension + SCALE_BITS

    def quantise(self, updates: Array, uniform: Array) -> Array:
        """What the receiver reconstructs.

        Args:
            updates: (k, d), NumPy or torch.
            uniform: (k, d) random numbers in [0, 1), of the same kind.

        Returns:
            (k, d) with E[result] = updates; the sum of squares can exceed that of ``updates``.
        """
        magnitude = abs(updates)
        largest = magnitude.amax(1, True) if hasattr(magnitude, "amax") else magnitude.max(axis=1, keepdims=True)
        scale = largest + (largest == 0)
        half = max(2 ** (self.bits - 1) - 1, 0.5)
        position = (updates / scale + 1) * half
        below = position // 1
        level = below + (uniform < position - below)
        return (level - half) / half * largest
