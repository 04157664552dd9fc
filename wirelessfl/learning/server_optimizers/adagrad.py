"""FedAdagrad (Reddi et al., ICLR 2021, Algorithm 2)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.server_optimizers.adaptive import AdaptiveServerOptimizer


@dataclass(frozen=True, kw_only=True)
class ServerAdaGrad(AdaptiveServerOptimizer):
    """v ← v + g², without momentum: β₁ = 0."""

    decay: ClassVar[float] = 0.0

    @override
    def second_moment(self, v: Tensor, update: Tensor) -> Tensor:
        return v + update.square()
