"""A norm that follows a quantile of the gradient norms, at a privacy cost of its own."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping.base import Clipped, ClippingRule, ClippingState, Samples, Step, require_positive
from wirelessfl.privacy.clipping.flat import clip_to
from wirelessfl.privacy.clipping_laws import ClippingLaw, QuantileClip
from wirelessfl.privacy.transfer import sent


@dataclass(frozen=True)
class QuantileClipping(ClippingRule):
    """C ← C exp(−η_C (b̃ − γ)), with b̃ the noised share of samples whose gradient is within C.

    Source: Andrew, Thakkar, McMahan, Ramaswamy, "Differentially private learning with adaptive clipping", NeurIPS
    2021, Algorithm 1, here for the samples of one client instead of the clients of one round:
    b̃ = 1/2 + (Σ_b (1[‖g_b‖ ≤ C] − 1/2) + N(0, σ_b²))/L over a batch with the public divisor L. The centred count
    moves by 1/2 with one sample, so that together with noise of multiplier z on the gradients a step is one Gaussian
    of multiplier (z⁻² + (2σ_b)⁻²)^(−1/2). Each client follows its own quantile.

    Attributes:
        clip_norm: C in a client's first step; the paper takes 0.1.
        quantile: γ in [0, 1], the share that shall be within C.
        lr: η_C; the paper takes 0.2.
        count_noise_std: σ_b; the paper takes a twentieth of the expected batch.

    Raises:
        ValueError: If a value is out of range.
    """

    lasting: ClassVar[tuple[str, ...]] = ("clip_norm",)

    clip_norm: float
    quantile: float = 0.5
    lr: float = 0.2
    count_noise_std: float = 1.0

    def __post_init__(self) -> None:
        require_positive(clip_norm=self.clip_norm, lr=self.lr, count_noise_std=self.count_noise_std)
        precondition(0 <= self.quantile <= 1, f"quantile must lie in [0, 1], found {self.quantile}")

    @override
    def law(self) -> ClippingLaw:
        return QuantileClip(count_noise_std=self.count_noise_std)

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {"clip_norm": like.new_full((clients,), self.clip_norm)}

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        clip_norm = state["clip_norm"]
        within = (samples.norms() <= clip_norm[:, None]) & samples.present
        count = within.sum(1) - 0.5 * samples.present.sum(1)
        stream = step.streams.nodes(f"clip_count_noise/{step.step}", step.round_index, step.clients)
        noise = sent(stream.normal(1)[:, 0], clip_norm.device).to(clip_norm.dtype)
        share = 0.5 + (count + self.count_noise_std * noise) / step.divisor
        return clip_to(samples, clip_norm, {"clip_norm": clip_norm * torch.exp(-self.lr * (share - self.quantile))})

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        return state
