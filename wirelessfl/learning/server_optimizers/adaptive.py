"""Adaptive server optimizers (Reddi et al., "Adaptive federated optimization", ICLR 2021, Algorithm 2)."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.server_optimizers.base import ServerOptimizer


@dataclass(frozen=True, kw_only=True)
class AdaptiveServerOptimizer(ServerOptimizer):
    """m ← β₁ m + (1 − β₁) g, v ← the rule's own, w ← w + lr · m/(√v + τ).

    Attributes:
        lr: η, learning rate of the server.
        tau: τ, degree of adaptivity: coordinates whose √v is far below it move by η m/τ.
        initial_v: v before the first round; None for τ², as in the paper.

    Raises:
        ValueError: if a number is out of range.
    """

    lr: float = 0.01
    tau: float = 1e-3
    initial_v: float | None = None

    def __post_init__(self) -> None:
        first = 0.0 if self.initial_v is None else self.initial_v
        holds = 0 < self.lr < math.inf and 0 < self.tau < math.inf and 0 <= first < math.inf and 0 <= self.decay < 1
        precondition(holds, f"needs positive lr and tau, initial_v of 0 at least, betas in [0, 1), not {self}")

    @property
    @abstractmethod
    def decay(self) -> float:
        """β₁."""

    @abstractmethod
    def second_moment(self, v: Tensor, update: Tensor) -> Tensor:
        """(d,) v after an update g (d,), from v before it; both are left as they are."""

    def rate(self, steps: int) -> float:
        """The learning rate of a step, counted from 1."""
        return self.lr

    @override
    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        first = self.tau**2 if self.initial_v is None else self.initial_v
        return {
            "mean": torch.zeros_like(parameters),
            "second_moment": torch.full_like(parameters, first),
            "steps": torch.zeros(1, dtype=torch.int64),
        }

    @override
    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        mean = torch.lerp(update, memory["mean"], self.decay)
        v, steps = self.second_moment(memory["second_moment"], update), memory["steps"] + 1
        change = self.rate(int(steps)) * mean / (v.sqrt() + self.tau)
        return change, {"mean": mean, "second_moment": v, "steps": steps}


@dataclass(frozen=True, kw_only=True)
class DecayingServerOptimizer(AdaptiveServerOptimizer):
    """An adaptive server optimizer with momentum whose second moment forgets.

    Attributes:
        beta1: β₁, decay of the mean of the updates.
        beta2: β₂, decay of the mean of their squares.
        bias_correction: Whether the rate of step t is lr √(1 − β₂ᵗ)/(1 − β₁ᵗ) (Kingma and Ba, "Adam", ICLR 2015, before
            their section 2.1); the paper of this optimizer has none.
    """

    beta1: float = 0.9
    beta2: float = 0.99
    bias_correction: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        precondition(0 <= self.beta2 < 1, f"betas must lie in [0, 1), not {self.beta2}")

    @override
    @property
    def decay(self) -> float:
        return self.beta1

    @override
    def rate(self, steps: int) -> float:
        if not self.bias_correction:
            return self.lr
        return self.lr * math.sqrt(1 - self.beta2**steps) / (1 - self.beta1**steps)
