"""Layers on images: convolution, pooling and group norm.

Between them the images of all clients are one tensor (B, k · C, H, W) in channels-last memory: image b holds the
b-th sample of every client, client after client along the channels. A convolution of k clients is then one grouped
convolution, group norm has k times the groups, and pooling need not know of clients at all; in this memory format
all of them are several times faster on a CPU.

Group norm goes by its own formulas: torch's ``native_group_norm_backward`` gives wrong numbers where derivative and
images differ in memory format, and crashes where not all of its results are asked for (torch 2.13).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.stacked.layers import Layer, TrainedLayer, Weights, squared_norm

Pair = tuple[int, int]
aten = torch.ops.aten


def split_channels(images: Tensor, parts: int) -> Tensor:
    """(B, n, H, W) as (B, parts, n / parts, H, W), a view."""
    return images.view(len(images), parts, -1, *images.shape[2:])


def weighted_images(delta: Tensor, weights: Tensor) -> Tensor:
    """Derivatives ``delta`` (B, k · C, H, W) with client i's sample b times ``weights[i, b]``."""
    return (split_channels(delta, len(weights)) * weights.T[:, :, None, None, None]).flatten(1, 2)


@dataclass(frozen=True)
class ToImages(Layer):
    """From samples (k, B, C, H, W) to images (B, k · C, H, W); ``saved`` is k."""

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, int]:
        return inputs.transpose(0, 1).flatten(1, 2).contiguous(memory_format=torch.channels_last), len(inputs)

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
class Conv2d(TrainedLayer):
    """Convolution with kernels (k, O, C, kh, kw) and biases (k, O).

    ``saved`` are the images (B, k · C, H, W) and the kernels (k · O, C, kh, kw).
    """

    channels: int
    filters: int
    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    has_bias: bool

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        kernels = weights[0].flatten(0, 1)
        biases = weights[1].flatten() if self.has_bias else None
        outputs = functional.conv2d(
            inputs, kernels, biases, self.stride, self.padding, self.dilation, groups=len(weights[0])
        )
        return outputs, (inputs, kernels)

    @override
    def backward(self, weights: Weights, saved: _Pass, delta: Tensor) -> Tensor:
        return self._derivative(saved, delta, 0)

    def _derivative(self, saved: _Pass, delta: Tensor, by: int) -> Tensor:
        # By the images (0) or the kernels (1)
        images, kernels = (operand.to(delta.dtype) for operand in saved)
        settings = self.stride, self.padding, self.dilation, False, (0, 0), len(kernels) // self.filters
        wanted = [by == 0, by == 1, False]
        return cast(Tensor, aten.convolution_backward(delta, images, kernels, None, *settings, wanted)[by])

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return weighted_images(delta, weights)

    @override
    def add_gradient(self, saved: _Pass, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        add_to(into[0], self._derivative(saved, deltas[0], 1).view(into[0].shape), decay)
        if self.has_bias:
            add_to(into[1], deltas[1].sum((0, 2, 3)).view(into[1].shape), decay)

    @override
    def squared_norms(self, saved: _Pass, delta: Tensor) -> list[Tensor]:
        """By forming each sample's gradient or, where that is cheaper, from the Gram matrices of the positions.

        ‖Σ_p δ_p ⊗ x_p‖² = Σ_{p,q} ⟨δ_p, δ_q⟩⟨x_p, x_q⟩ (Bu, Mao, Xu, "Scalable and efficient training of large
        convolutional neural networks with differential privacy", NeurIPS 2022).
        """
        outputs, patches = self._by_position(delta), self._patches(saved[0], delta)
        positions, inputs = patches.shape[2:]
        if positions * (self.filters + inputs) < self.filters * inputs:
            of_kernel = (_gram(outputs) * _gram(patches)).sum((2, 3))
        else:
            of_kernel = squared_norm(torch.matmul(outputs.transpose(2, 3), patches).flatten(2))
        return [of_kernel, squared_norm(outputs.sum(2))] if self.has_bias else [of_kernel]

    @override
    def sample_gradients(self, saved: _Pass, delta: Tensor, part: slice) -> list[Tensor]:
        outputs, patches = self._by_position(delta[part]), self._patches(saved[0][part], delta)
        of_kernel = torch.matmul(outputs.transpose(2, 3), patches)
        by_place = of_kernel.view(*of_kernel.shape[:3], *self.kernel, self.channels).permute(0, 1, 2, 5, 3, 4)
        return [by_place, outputs.sum(2)] if self.has_bias else [by_place]

    def _by_position(self, delta: Tensor) -> Tensor:
        # (k, B, P, O) from (B, k · O, rows, columns)
        return split_channels(delta, delta.shape[1] // self.filters).permute(1, 0, 3, 4, 2).flatten(2, 3)

    def _patches(self, images: Tensor, delta: Tensor) -> Tensor:
        # (k, B, P, kh · kw · C) what lies under the kernel at each of the P positions of ``delta``
        (rows, columns), (down, right) = self.padding, self.stride
        padded = functional.pad(images, (columns, columns, rows, rows))
        clients = images.shape[1] // self.channels
        batch, client, channel, row, column = split_channels(padded, clients).stride()
        windows = padded.as_strided(
            (clients, len(images), *delta.shape[2:], *self.kernel, self.channels),
            (client, batch, row * down, column * right, row * self.dilation[0], column * self.dilation[1], channel),
        )
        return windows.flatten(4).flatten(2, 3)


def _gram(rows: Tensor) -> Tensor:
    # (k, B, P, P) inner products of the rows of (k, B, P, n)
    return torch.matmul(rows, rows.transpose(2, 3))


@dataclass(frozen=True)
class MaxPool2d(Layer):
    """Maxima; ``saved`` holds the images and where in them the maxima lie.

    Attributes:
        settings: Kernel, stride, padding, dilation, and whether output sizes are rounded up, as torch takes them.
    """

    settings: tuple[Pair, Pair, Pair, Pair, bool]

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        outputs, where = functional.max_pool2d_with_indices(inputs, *self.settings)
        return outputs, (inputs, where)

    @override
    def backward(self, weights: Weights, saved: _Pass, delta: Tensor) -> Tensor:
        images, where = saved
        return cast(Tensor, aten.max_pool2d_with_indices_backward(delta, images, *self.settings, where))


@dataclass(frozen=True)
class MeanPool(Layer):
    """Means over windows; ``saved`` is the images.

    Attributes:
        means: Of the images.
        derivative: By the images, from δ and the images.
    """

    means: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor, Tensor], Tensor]

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return self.means(inputs), inputs

    @override
    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        return self.derivative(delta, saved)


@dataclass(frozen=True)
class GroupNorm(TrainedLayer):
    """y = γ x̂ + β with γ and β (k, C), x̂ normalised over groups of channels.

    ``saved`` are x̂ and 1/std, both (B, k · groups, C / groups, H, W), the latter broadcast.
    """

    groups: int
    eps: float

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
    def sample_gradients(self, saved: _Pass, delta: Tensor, part: slice) -> list[Tensor]:
        normal, scale = saved
        of_gamma = (delta[part] * normal[part].flatten(1, 2)).sum((2, 3))
        of_both = of_gamma, delta[part].sum((2, 3))
        return [each.view(len(each), scale.shape[1] // self.groups, -1).transpose(0, 1) for each in of_both]
