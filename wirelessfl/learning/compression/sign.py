"""One bit a coordinate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.compression.codecs import FLOAT_BITS, Codec, Payload


@dataclass(frozen=True)
class Sign(Codec):
    """Signs, one bit a coordinate; a zero counts as positive.

    Without a vote x → sign(x) ‖x‖₁/d, with one number more (Karimireddy et al., "Error feedback fixes SignSGD", ICML
    2019). With a vote the server steps by ±vote_step as the majority has it, weighted by data (Bernstein et al.,
    "signSGD with majority vote", ICLR 2019).

    Attributes:
        vote_step: Step of the server in each coordinate; a tie moves nothing. None for no vote.

    Raises:
        ValueError: if the step is not positive.
    """

    vote_step: float | None = None

    def __post_init__(self) -> None:
        holds = self.vote_step is None or self.vote_step > 0
        precondition(holds, f"vote_step must be positive, not {self.vote_step}")

    @override
    def bits(self, dimension: int) -> int:
        return dimension + (FLOAT_BITS if self.vote_step is None else 0)

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        scale = np.abs(rows).mean(axis=1, keepdims=True) if self.vote_step is None else np.float32(1.0)
        return Payload((rows >= 0, scale), self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        positive, scale = payload.content
        return np.asarray(np.where(positive, scale, -scale), dtype=np.float32)

    def decided(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """(d,) the server's step from the mean of what clients sent (d,)."""
        return mean if self.vote_step is None else self.vote_step * np.sign(mean)
