"""Group norm, on images in the layout of ``spatial``.

By its own formulas: torch's ``native_group_norm_backward`` gives wrong numbers where derivative and images differ in
memory format, and crashes where not all of its results are asked for (torch 2.13).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.in_place import add_to
from wirelessfl.learning.cohort.stacked.layer import TrainedLayer, Weights, squared_norm
from wirelessfl.learning.cohort.stacked.spatial import split_channels, weighted_images


class _Saved(NamedTuple):
    """The normalised images x̂ and 1/std, both (B, k · groups, C / groups, H, W), the latter broadcast."""

    normal: Tensor
    scale: Tensor


@dataclass(frozen=True)
class GroupNorm(TrainedLayer):
    """y = γ x̂ + β with γ and β (k, C), x̂ normalised over groups of channels."""

    groups: int
    eps: float

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Saved]:
        grouped = split_channels(inputs, self.groups * len(weights[0]))
        variance, mean = torch.var_mean(grouped, dim=(2, 3, 4), correction=0, keepdim=True)
        scale = torch.rsqrt(variance + self.eps)
        normal = (grouped - mean) * scale
        gamma, beta = (weight.reshape(-1, 1, 1) for weight in weights)
        return normal.flatten(1, 2) * gamma + beta, _Saved(normal, scale)

    @override
    def backward(self, weights: Weights, saved: _Saved, delta: Tensor) -> Tensor:
        # δ̂ = γ δ without its mean and its component along x̂: (δ̂ − mean δ̂ − x̂ mean(δ̂ x̂)) / std.
        normal, scale = saved
        scaled = split_channels(delta * weights[0].reshape(-1, 1, 1), scale.shape[1])
        along = (scaled * normal).mean((2, 3, 4), keepdim=True)
        result = (scaled - scaled.mean((2, 3, 4), keepdim=True) - normal * along) * scale
        return result.flatten(1, 2)

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return weighted_images(delta, weights)

    @override
    def add_gradient(self, saved: _Saved, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        add_to(into[0], (deltas[0] * saved.normal.flatten(1, 2)).sum((0, 2, 3)).view(into[0].shape), decay)
        add_to(into[1], deltas[1].sum((0, 2, 3)).view(into[1].shape), decay)

    @override
    def squared_norms(self, saved: _Saved, delta: Tensor) -> list[Tensor]:
        return [squared_norm(gradient) for gradient in self.sample_gradients(saved, delta, slice(None))]

    @override
    def sample_gradients(self, saved: _Saved, delta: Tensor, part: slice) -> list[Tensor]:
        clients = saved.scale.shape[1] // self.groups
        of_gamma = (delta[part] * saved.normal[part].flatten(1, 2)).sum((2, 3))
        of_beta = delta[part].sum((2, 3))
        return [gradient.view(len(gradient), clients, -1).transpose(0, 1) for gradient in (of_gamma, of_beta)]
