"""Gradient descent with momentum on the pseudo-gradient."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.server_optimizers.base import ServerOptimizer


@dataclass(frozen=True)
class ServerSgd(ServerOptimizer):
    """v ← momentum · v + g, w ← w + lr · v (Hsu et al., "FedAvgM", 2019); with lr 1 and momentum 0, w ← w + g.

    Raises:
        ValueError: if lr is not positive and finite, or the momentum lies outside [0, 1).
    """

    lr: float = 1.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        holds = 0 < self.lr < math.inf and 0 <= self.momentum < 1
        precondition(holds, f"lr must be positive and momentum in [0, 1), not {self.lr} and {self.momentum}")

    @override
    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        return {"velocity": torch.zeros_like(parameters)} if self.momentum else {}

    @override
    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        velocity = self.momentum * memory["velocity"] + update if self.momentum else update
        return (velocity if self.lr == 1.0 else self.lr * velocity), ({"velocity": velocity} if self.momentum else {})
