"""Layers on images: convolution, pooling, group norm.

Pooling and normalisation know no clients; they see k · B images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from wirelessfl.learning.cohort.stacked.dense import squared_norm
from wirelessfl.learning.cohort.stacked.layer import Weights, add_product, add_to, per_client

Pair = tuple[int, int]


@dataclass(frozen=True)
class SavedPatches:
    """The patches (k, B, C · kernel, P) under the P positions of the kernel, and the images' size."""

    patches: Tensor
    size: Pair


@dataclass(frozen=True)
class Conv2d:
    """Convolution as one matrix product over the patches of a client's whole batch; weights (k, O, C, kh, kw)."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    has_bias: bool

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, SavedPatches]:
        """See ``Layer.forward``."""
        size = (inputs.shape[3], inputs.shape[4])
        flat = functional.unfold(inputs.flatten(0, 1), self.kernel, self.dilation, self.padding, self.stride)
        patches = per_client(flat, inputs)
        outputs = torch.matmul(weights[0].flatten(2)[:, None], patches)
        if self.has_bias:
            outputs += weights[1][:, None, :, None]
        return outputs.view(*outputs.shape[:3], *self._positions(size)), SavedPatches(patches, size)

    def _positions(self, size: Pair) -> Pair:
        rows, columns = (
            (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for side, kernel, stride, padding, dilation in zip(
                size, self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )
        return rows, columns

    def backward(self, weights: Weights, saved: SavedPatches, delta: Tensor) -> Tensor:
        """See ``Layer.backward``."""
        patches = torch.matmul(weights[0].flatten(2).transpose(1, 2)[:, None], delta.flatten(3))
        images = functional.fold(
            patches.flatten(0, 1), saved.size, self.kernel, self.dilation, self.padding, self.stride
        )
        return per_client(images, delta)

    def add_gradient(self, saved: SavedPatches, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """See ``TrainedLayer.add_gradient``."""
        left = deltas[0].flatten(3).transpose(1, 2).flatten(2)  # (k, O, B · P)
        right = saved.patches.transpose(2, 3).flatten(1, 2)  # (k, B · P, C · kernel)
        add_product(into[0].flatten(2), left, right, decay)
        if self.has_bias:
            add_to(into[1], deltas[1].sum((1, 3, 4)), decay)

    def squared_norms(self, saved: SavedPatches, delta: Tensor) -> list[Tensor]:
        """By forming each sample's gradient or, where that is cheaper, from the Gram matrices of the positions.

        ‖Σ_p δ_p ⊗ x_p‖² = Σ_{p,q} ⟨δ_p, δ_q⟩⟨x_p, x_q⟩ (Bu, Mao, Xu, "Scalable and efficient training of large
        convolutional neural networks with differential privacy", NeurIPS 2022).
        """
        flat = delta.flatten(3)
        outputs, positions = flat.shape[2:]
        inputs = saved.patches.shape[2]
        if positions * (outputs + inputs) < outputs * inputs:
            of_weight = (_gram(flat) * _gram(saved.patches)).sum((2, 3))
        else:
            of_weight = squared_norm(torch.matmul(flat, saved.patches.transpose(2, 3)).flatten(2))
        return [of_weight, squared_norm(flat.sum(3))] if self.has_bias else [of_weight]

    def sample_gradients(self, saved: SavedPatches, delta: Tensor, part: slice) -> list[Tensor]:
        """See ``TrainedLayer.sample_gradients``."""
        flat = delta[:, part].flatten(3)
        of_weight = torch.matmul(flat, saved.patches[:, part].transpose(2, 3))
        return [of_weight, flat.sum(3)] if self.has_bias else [of_weight]


def _gram(columns: Tensor) -> Tensor:
    """(k, B, P, P) inner products of the columns of (k, B, n, P)."""
    return torch.matmul(columns.transpose(2, 3), columns)


@dataclass(frozen=True)
class MaxPool2d:
    """``saved`` holds the images and where in them the maxima lie."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair
    ceil_mode: bool

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """See ``Layer.forward``."""
        images = inputs.flatten(0, 1)
        outputs, where = functional.max_pool2d_with_indices(
            images, self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode
        )
        return per_client(outputs, inputs), (images, where)

    def backward(self, weights: Weights, saved: tuple[Tensor, Tensor], delta: Tensor) -> Tensor:
        """See ``Layer.backward``."""
        images, where = saved
        result = torch.ops.aten.max_pool2d_with_indices_backward(
            delta.flatten(0, 1), images, self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode, where
        )
        return per_client(result, delta)


@dataclass(frozen=True)
class AvgPool2d:
    """``saved`` is the images."""

    kernel: Pair
    stride: Pair
    padding: Pair
    ceil_mode: bool
    count_include_pad: bool

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """See ``Layer.forward``."""
        images = inputs.flatten(0, 1)
        outputs = functional.avg_pool2d(
            images, self.kernel, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )
        return per_client(outputs, inputs), images

    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        """See ``Layer.backward``."""
        result = torch.ops.aten.avg_pool2d_backward(
            delta.flatten(0, 1),
            saved,
            self.kernel,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            None,
        )
        return per_client(result, delta)


@dataclass(frozen=True)
class AdaptiveAvgPool2d:
    """``saved`` is the images."""

    size: Pair

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """See ``Layer.forward``."""
        images = inputs.flatten(0, 1)
        outputs = functional.adaptive_avg_pool2d(images, self.size)
        return per_client(outputs, inputs), images

    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        """See ``Layer.backward``."""
        result = torch.ops.aten._adaptive_avg_pool2d_backward(delta.flatten(0, 1), saved)
        return per_client(result, delta)


@dataclass(frozen=True)
class GroupNorm:
    """y = γ x̂ + β per channel, x̂ normalised over groups of channels; ``saved`` is x̂ and 1/std (k, B, groups)."""

    groups: int
    eps: float

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """See ``Layer.forward``."""
        grouped = inputs.reshape(*inputs.shape[:2], self.groups, -1)
        variance, mean = torch.var_mean(grouped, dim=3, correction=0, keepdim=True)
        scale = torch.rsqrt(variance + self.eps)
        normal = ((grouped - mean) * scale).view(inputs.shape)
        gamma, beta = (_per_channel(weight, inputs.ndim) for weight in weights)
        return normal * gamma + beta, (normal, scale)

    def backward(self, weights: Weights, saved: tuple[Tensor, Tensor], delta: Tensor) -> Tensor:
        """x̂ loses its mean and its component along x̂: (δ̂ − mean δ̂ − x̂ mean(δ̂ x̂)) / std, δ̂ = γ δ."""
        normal, scale = saved
        scaled = (delta * _per_channel(weights[0], delta.ndim)).view(*scale.shape[:3], -1)
        grouped = normal.view(scaled.shape)
        along = (scaled * grouped).mean(3, keepdim=True)
        result = (scaled - scaled.mean(3, keepdim=True) - grouped * along) * scale
        return result.view(delta.shape)

    def add_gradient(self, saved: tuple[Tensor, Tensor], deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """See ``TrainedLayer.add_gradient``."""
        add_to(into[0], _over_positions(deltas[0] * saved[0]).sum(1), decay)
        add_to(into[1], _over_positions(deltas[1]).sum(1), decay)

    def squared_norms(self, saved: tuple[Tensor, Tensor], delta: Tensor) -> list[Tensor]:
        """See ``TrainedLayer.squared_norms``."""
        return [squared_norm(_over_positions(delta * saved[0])), squared_norm(_over_positions(delta))]

    def sample_gradients(self, saved: tuple[Tensor, Tensor], delta: Tensor, part: slice) -> list[Tensor]:
        """See ``TrainedLayer.sample_gradients``."""
        return [_over_positions(delta[:, part] * saved[0][:, part]), _over_positions(delta[:, part])]


def _over_positions(images: Tensor) -> Tensor:
    """(k, B, C) sums over the positions of (k, B, C, ...)."""
    return images.flatten(3).sum(3) if images.ndim > 3 else images


def _per_channel(weight: Tensor, ndim: int) -> Tensor:
    """(k, C) as (k, 1, C, 1, ...) with ``ndim`` dimensions."""
    return weight.view(len(weight), 1, -1, *(1,) * (ndim - 3))
