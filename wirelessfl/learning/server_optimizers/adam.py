"""FedAdam (Reddi et al., ICLR 2021, Algorithm 2)."""

from dataclasses import dataclass

from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.server_optimizers.adaptive import DecayingServerOptimizer


@dataclass(frozen=True, kw_only=True)
class ServerAdam(DecayingServerOptimizer):
    """v ← β₂ v + (1 − β₂) g²."""

    @override
    def second_moment(self, v: Tensor, update: Tensor) -> Tensor:
        return self.beta2 * v + (1 - self.beta2) * update.square()
