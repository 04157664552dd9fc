"""FedYogi (Reddi et al., ICLR 2021, Algorithm 2)."""

from dataclasses import dataclass

from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.server_optimizers.adaptive import DecayingServerOptimizer


@dataclass(frozen=True, kw_only=True)
class ServerYogi(DecayingServerOptimizer):
    """v ← v − (1 − β₂) g² sign(v − g²): v falls by no more than (1 − β₂) g² in a round."""

    @override
    def second_moment(self, v: Tensor, update: Tensor) -> Tensor:
        square = update.square()
        return v - (1 - self.beta2) * square * (v - square).sign()
