"""Stochastic quantisation to levels of the norm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.compression.codecs import FLOAT_BITS, Codec, Payload


@dataclass(frozen=True)
class Qsgd(Codec):
    """x_j → ‖x‖ sign(x_j) ξ_j, ξ_j one of the two multiples of 1/s next to |x_j|/‖x‖, at random without bias.

    Alistarh et al., "QSGD", NeurIPS 2017, section 3.1; the variance is at most min(d/s², √d/s) ‖x‖². Its codewords of
    variable length would let airtime tell of the data: here all 2s + 1 signed levels take the same bits,
    ⌈d log₂(2s + 1)⌉ in all, and the norm 32.

    Attributes:
        levels: s.

    Raises:
        ValueError: if there is no level.
    """

    levels: int

    def __post_init__(self) -> None:
        precondition(self.levels >= 1, f"levels must be at least 1, not {self.levels}")

    @override
    def bits(self, dimension: int) -> int:
        return math.ceil(dimension * math.log2(2 * self.levels + 1)) + FLOAT_BITS

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        position = np.abs(rows) * (self.levels / np.where(norms > 0, norms, 1.0))
        uniform = np.stack([generator.random(rows.shape[1], dtype=np.float32) for generator in generators])
        # In single precision the sum with a draw next to 1 is rounded up to a level that has no codeword
        level = np.copysign(np.minimum(np.floor(position + uniform), np.float32(self.levels)), rows)
        return Payload((level, norms), self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        level, norms = payload.content
        return np.asarray(level * (norms / self.levels), dtype=np.float32)
