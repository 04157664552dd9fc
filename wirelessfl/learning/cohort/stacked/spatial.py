"""Layers on images: their layout, and group norm.

Between them the images of all clients are one tensor (B, k · C, H, W) in channels-last memory: image b holds the
b-th sample of every client, client after client along the channels. A convolution of k clients is then one grouped
convolution (``convolution``), group norm has k times the groups, and pooling need not know of clients at all; in this
memory format all of them are several times faster on a CPU.

Group norm goes by its own formulas: torch's ``native_group_norm_backward`` gives wrong numbers where derivative and
images differ in memory format, and crashes where not all of its results are asked for (torch 2.13).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.stacked.layers import Layer, TrainedLayer, Weights, squared_norm
from wirelessfl.learning.layout import arranged

aten = torch.ops.aten


def split_channels(images: Tensor, parts: int) -> Tensor:
    """(B, n, H, W) as (B, parts, n / parts, H, W), a view."""
    return images.view(len(images), parts, -1, *images.shape[2:])


def weighted_images(delta: Tensor, weights: Tensor) -> Tensor:
    """Derivatives ``delta`` (B, k · C, H, W) with client i's sample b times ``weights[i, b]``."""
    return (split_channels(delta, len(weights)) * weights.T[:, :, None, None, None]).flatten(1, 2)


@dataclass(frozen=True)
class ToImages(Layer):
    """From samples (k, B, C, H, W) to images (B, k · C, H, W); ``saved`` is k.

    Attributes:
        arranges: Whether in channels-last memory. A convolution that comes next arranges them itself, if it needs to.
    """

    arranges: bool = True

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, int]:
        images = inputs.transpose(0, 1).flatten(1, 2)
        return arranged(images, torch.channels_last) if self.arranges else images, len(inputs)

    @override
    def backward(self, weights: Weights, saved: int, delta: Tensor) -> Tensor:
        return split_channels(delta, saved).transpose(0, 1)


@dataclass(frozen=True)
class FlattenImages(Layer):
    """From images (B, k · C, H, W) to the samples' features (k, B, C · H · W), in the order of ``nn.Flatten``."""

    channels: int

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, torch.Size]:
        by_client = split_channels(inputs, inputs.shape[1] // self.channels)
        return by_client.transpose(0, 1).flatten(2), inputs.shape

    @override
    def backward(self, weights: Weights, saved: torch.Size, delta: Tensor) -> Tensor:
        return delta.transpose(0, 1).reshape(saved).contiguous(memory_format=torch.channels_last)


_Pass = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class GroupNorm(TrainedLayer):
    """y = γ x̂ + β with γ and β (k, C), x̂ normalised over groups of channels.

    ``saved`` are x̂ and 1/std, both (B, k · groups, C / groups, H, W), the latter broadcast.
    """

    groups: int
    eps: float

    @property
    @override
    def takes_zeros(self) -> bool:
        return self.eps > 2.0**-150  # which is 0 in float32

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        grouped = split_channels(inputs, self.groups * len(weights[0]))
        variance, mean = torch.var_mean(grouped, dim=(2, 3, 4), correction=0, keepdim=True)
        scale = torch.rsqrt(variance + self.eps)
        normal = (grouped - mean) * scale
        gamma, beta = (weight.reshape(-1, 1, 1) for weight in weights)
        return normal.flatten(1, 2) * gamma + beta, (normal, scale)

    @override
    def backward(self, weights: Weights, saved: _Pass, delta: Tensor) -> Tensor:
        # δ̂ = γ δ without its mean and its component along x̂: (δ̂ − mean δ̂ − x̂ mean(δ̂ x̂)) / std.
        normal, scale = saved
        scaled = split_channels(delta * weights[0].reshape(-1, 1, 1), scale.shape[1])
        along = (scaled * normal).mean((2, 3, 4), keepdim=True)
        return ((scaled - scaled.mean((2, 3, 4), keepdim=True) - normal * along) * scale).flatten(1, 2)

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return weighted_images(delta, weights)

    @override
    def add_gradient(self, saved: _Pass, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        add_to(into[0], (deltas[0] * saved[0].flatten(1, 2)).sum((0, 2, 3)).view(into[0].shape), decay)
        add_to(into[1], deltas[1].sum((0, 2, 3)).view(into[1].shape), decay)

    @override
    def squared_norms(self, saved: _Pass, delta: Tensor) -> list[Tensor]:
        return [squared_norm(gradient) for gradient in self.sample_gradients(saved, delta, slice(None))]

    @override
    def inner_products(self, saved: _Pass, delta: Tensor, vectors: Weights) -> list[Tensor]:
        gamma, beta = (vector.reshape(-1, 1, 1) for vector in vectors)
        outputs = saved[0].flatten(1, 2) * gamma + beta
        return [split_channels(outputs * delta, len(vectors[0])).sum((2, 3, 4)).T]

    @override
    def sample_gradients(self, saved: _Pass, delta: Tensor, part: slice) -> list[Tensor]:
        normal, scale = saved
        of_gamma = (delta[part] * normal[part].flatten(1, 2)).sum((2, 3))
        of_both = of_gamma, delta[part].sum((2, 3))
        return [each.view(len(each), scale.shape[1] // self.groups, -1).transpose(0, 1) for each in of_both]
