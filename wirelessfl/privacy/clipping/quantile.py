"""A norm that follows a quantile of the gradient norms, at a privacy cost of its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wirelessfl.privacy.clipping.base import Clipped, ClippingState, Samples, Step, require_positive
from wirelessfl.privacy.clipping.flat import clip_to
from wirelessfl.privacy.clipping_laws import ClippingLaw, QuantileClip
from wirelessfl.privacy.transfer import sent


@dataclass(frozen=True)
class QuantileClipping:
    """C ← C exp(−η_C (b̃ − γ)), with b̃ the noised share of samples whose gradient is within C.

    Source: Andrew, Thakkar, McMahan, Ramaswamy, "Differentially private learning with adaptive clipping", NeurIPS
    2021, Algorithm 1, here for the samples of one client instead of the clients of one round:
    b̃ = 1/2 + (Σ_b (1[‖g_b‖ ≤ C] − 1/2) + N(0, σ_b²))/L over a batch with the public divisor L. The centred count
    moves by 1/2 with one sample, so that together with noise of multiplier z on the gradients a step is one Gaussian
    of multiplier (z⁻² + (2σ_b)⁻²)^(−1/2). Each client follows its own quantile.

    Attributes:
        initial_clip: C in a client's first step; the paper takes 0.1.
        quantile: γ in [0, 1], the share that shall be within C.
        clip_learning_rate: η_C; the paper takes 0.2.
        count_noise_std: σ_b; the paper takes a twentieth of the expected batch.

    Raises:
        ValueError: If a value is out of range.
    """

    initial_clip: float
    quantile: float = 0.5
    clip_learning_rate: float = 0.2
    count_noise_std: float = 1.0

    def __post_init__(self) -> None:
        require_positive("initial_clip", self.initial_clip)
        require_positive("clip_learning_rate", self.clip_learning_rate)
        require_positive("count_noise_std", self.count_noise_std)
        if not 0 <= self.quantile <= 1:
            raise ValueError(f"quantile must lie in [0, 1], found {self.quantile}")

    @property
    def lasting(self) -> tuple[str, ...]:
        """C."""
        return ("clip_norm",)

    def law(self) -> ClippingLaw:
        """A noised count beside the noised gradients."""
        return QuantileClip(count_noise_std=self.count_noise_std)

    def start(self, clients: int, like: Tensor) -> ClippingState:
        """C of each client."""
        return {"clip_norm": like.new_full((clients,), self.initial_clip)}

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """See ``ClippingRule.clip``; the new C holds from the next step on."""
        clip_norm = state["clip_norm"]
        within = (samples.norms() <= clip_norm[:, None]) & samples.present
        count = within.sum(1) - 0.5 * samples.present.sum(1)
        stream = step.streams.nodes(f"clip_count_noise/{step.step}", step.round_index, step.clients)
        noise = sent(stream.normal(1)[:, 0], clip_norm.device).to(clip_norm.dtype)
        share = 0.5 + (count + self.count_noise_std * noise) / step.divisor
        following = clip_norm * torch.exp(-self.clip_learning_rate * (share - self.quantile))
        return clip_to(samples, clip_norm, {"clip_norm": following})

    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        """Nothing more is learnt."""
        return state
