"""Server optimizers: the step of the global model from the aggregated update, whose negative is a pseudo-gradient.

They see nothing but what was received, so that they are post-processing and cost no privacy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from typing_extensions import override


@runtime_checkable
class ServerOptimizer(Protocol):
    """The step of the global model in a round; all state is passed in and given back."""

    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        """The memory before the first round, by name, for a global model (d,)."""

    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        """(d,) what is to be added to the global model, and the memory after the round.

        Args:
            update: (d,) the aggregated update g; −g is the pseudo-gradient (Reddi et al., "Adaptive federated
                optimization", ICLR 2021).
            memory: Of the round before; left as it is.
        """


@dataclass(frozen=True)
class ServerSgd(ServerOptimizer):
    """v ← momentum · v + g, w ← w + lr · v (Hsu et al., "FedAvgM", 2019); with lr 1 and momentum 0, w ← w + g.

    Raises:
        ValueError: if lr is not positive and finite, or the momentum lies outside [0, 1).
    """

    lr: float = 1.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lr) and self.lr > 0 and 0 <= self.momentum < 1):
            raise ValueError(f"lr must be positive and momentum in [0, 1), not {self.lr} and {self.momentum}")

    @override
    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        return {"velocity": torch.zeros_like(parameters)} if self.momentum else {}

    @override
    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        velocity = self.momentum * memory["velocity"] + update if self.momentum else update
        return (velocity if self.lr == 1.0 else self.lr * velocity), ({"velocity": velocity} if self.momentum else {})
