"""Convolutions of all clients at once: minimal filtering, direct sums, one grouped convolution, or products of patches.

Which is fastest depends on device and size. On a CPU minimal filtering mostly is where it applies (``winograd``), and
direct sums are for few channels or few positions (``direct``). Else grouped convolutions are, but where outputs have
many channels and few positions: their patches are few, and products mostly take less time. cuDNN's grouped convolution
in single precision takes several times as long as the products, the copies of the patches included: with it a round of
``cnn_mnist`` and DP-SGD trained 2.3 times as long on an H200 (``docs/how-to/gpu.md``). With TF32 it is faster for most
layers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self, cast

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from wirelessfl.learning.cohort import gram
from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.patches import patches_of, sums_over_patches
from wirelessfl.learning.cohort.products import batched_product
from wirelessfl.learning.cohort.stacked.layers import (
    FLOPS_PER_ELEMENT,
    HeldGradients,
    TrainedLayer,
    Weights,
    squared_norm,
)
from wirelessfl.learning.cohort.stacked.spatial import aten, split_channels, weighted_images
from wirelessfl.learning.direct import VECTOR, DirectSums, direct_sums
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.layout import arranged
from wirelessfl.learning.winograd import MinimalFiltering, minimal_filtering

# Channels up to which direct sums are taken, the second number where torch would multiply patches. There they were
# 1.4 times as fast, elsewhere 0.9 times, in the geometric mean of 340 random geometries on an Intel Xeon with AMX
_FEW_CHANNELS = 4, 32
# Products in a running sum, the second number where torch would multiply patches: as MKL has it, and as oneDNN has it
# but for the largest batches, so that results are those of before
_LONGEST = 2**14, 384
_FEW = 2  # filters for each position: with fewer, grouped convolutions were faster for most sizes that were tried

_Compiled = MinimalFiltering | DirectSums
_Pass = tuple[Tensor, Tensor, Tensor | None, _Compiled | None]


def holds(images: Tensor) -> bool:
    """Whether patches and per-sample gradients are held from one use to the next: on a CPU, whose memory is ample.

    On a GPU they are made again; what holding them would save there was not measured.
    """
    return images.device.type == "cpu"


@dataclass(frozen=True)
class Conv2d(TrainedLayer):
    """Convolution with kernels (k, O, C, kh, kw) and biases (k, O).

    ``saved`` are the images (B, k · C, H, W), the kernels (k, O, C, kh, kw) or (k · O, C, kh, kw), of products on a CPU
    the patches (k, B, P, kh · kw · C), and the minimal filtering or the direct sums where they are taken, which compute
    nothing for absent samples: their outputs, and derivatives by their images and of their kernels, are 0.

    Attributes:
        channels: C.
        filters: O.
        geometry: Of the kernels.
        has_bias: Whether there are biases.
        counts: (k,) samples of each client that are present; None where all are.
    """

    channels: int
    filters: int
    geometry: KernelGeometry
    has_bias: bool
    counts: Tensor | None = field(default=None, compare=False)

    @override
    def of_counts(self, counts: Tensor) -> Self:
        return replace(self, counts=counts)

    def multiplies_patches(self, images: Tensor, positions: int) -> bool:
        """Whether the convolution is a product of patches: of few positions on a CPU, and in full precision on a GPU.

        Without values, on the ``meta`` device, it goes the way of a GPU, whose memory is planned there.

        Args:
            images: Or derivatives by the outputs, for their device.
            positions: P.
        """
        device = images.device.type
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            return False
        if device == "cpu":
            return _FEW * positions <= self.filters
        return torch.get_float32_matmul_precision() == "highest"

    def filters_minimally(self, images: Tensor, *, by_sample: bool = False) -> MinimalFiltering | None:
        """The minimal filtering of images (B, k · C, H, W); None where another way is taken.

        Args:
            images: For their shape, device and precision.
            by_sample: Whether it is for the gradients of the samples, each by itself.
        """
        if not _in_full_precision_on_host(images):
            return None
        at_once = 1 if by_sample else len(images)
        return minimal_filtering(self.geometry, at_once, images.shape[2:], self.channels, self.filters, self.counts)

    def sums_directly(self, images: Tensor, *, by_sample: bool = False) -> DirectSums | None:
        """The direct sums over images (B, k · C, H, W); None where torch is faster. For arguments see above."""
        if not _in_full_precision_on_host(images):
            return None
        multiplies = self.multiplies_patches(images, math.prod(self.geometry.positions(images.shape[2:])))
        few = self.channels <= _FEW_CHANNELS[multiplies]
        copies = self.geometry.size != (1, 1)  # patches of a kernel of one place are the images themselves
        if not few and not (by_sample and copies):
            return None
        longest = _LONGEST[multiplies or by_sample]
        sizes = len(images), images.shape[2:], self.channels, self.filters
        return direct_sums(self.geometry, *sizes, longest, self.counts)

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        if filtering := self.filters_minimally(inputs):
            return self._compiled(filtering, weights, arranged(inputs, torch.channels_last))
        return self._summed(weights, inputs)

    def _compiled(self, compiled: _Compiled, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        outputs = compiled.convolved(inputs, weights[0], weights[1] if self.has_bias else None)
        return outputs, (inputs, weights[0], None, compiled)

    def _summed(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, _Pass]:
        # Without minimal filtering
        if sums := self.sums_directly(inputs):
            return self._compiled(sums, weights, inputs)
        inputs = arranged(inputs, torch.channels_last)
        kernels, size = weights[0].flatten(0, 1), self.geometry.positions(inputs.shape[2:])
        if not self.multiplies_patches(inputs, math.prod(size)):
            biases = weights[1].flatten() if self.has_bias else None
            at = self.geometry
            settings = at.stride, at.padding, at.dilation, len(weights[0])
            return functional.conv2d(inputs, kernels, biases, *settings), (inputs, kernels, None, None)
        patches = self._patches(inputs)
        outputs = self._products(weights, patches.flatten(1, 2)).view(*patches.shape[:2], *size, self.filters)
        kept = patches if holds(inputs) else None
        return _interleaved(outputs), (inputs, kernels, kept, None)

    def _products(self, weights: Weights, patches: Tensor) -> Tensor:
        # (k, B · P, O) from patches (k, B · P, kh · kw · C)
        kernels = self._by_place(weights[0]).transpose(1, 2)
        return (
            torch.baddbmm(weights[1].unsqueeze(1), patches, kernels) if self.has_bias else torch.bmm(patches, kernels)
        )

    @override
    def backward(self, weights: Weights, saved: _Pass, delta: Tensor) -> Tensor:
        images, kernels = (operand.to(delta.dtype) for operand in (saved[0], saved[1]))
        if (compiled := saved[3]) is not None and self.channels >= VECTOR:  # of fewer most lanes would be empty
            size = images.shape[2], images.shape[3]
            return compiled.image_derivatives(delta.float(), kernels.float(), size)
        if not self.multiplies_patches(delta, delta.shape[2:].numel()):
            return self._grouped_derivative(arranged(images, torch.channels_last), kernels, delta, 0)
        of_clients = kernels.reshape(-1, self.filters, *kernels.shape[-3:])
        by_patch = batched_product(self._by_position(delta).flatten(1, 2), self._by_place(of_clients))
        values = by_patch.view(len(by_patch), len(delta), *delta.shape[2:], *self.geometry.size, self.channels)
        height, width = images.shape[2:]
        return _interleaved(sums_over_patches(self.geometry, values, (height, width)))

    def _grouped_derivative(self, images: Tensor, kernels: Tensor, delta: Tensor, by: int) -> Tensor:
        # By the images (0) or the kernels (1)
        at, clients = self.geometry, images.shape[1] // self.channels
        kernels = kernels.reshape(-1, *kernels.shape[-3:])
        settings = at.stride, at.padding, at.dilation, False, (0, 0), clients
        wanted = [by == 0, by == 1, False]
        return cast(Tensor, aten.convolution_backward(delta, images, kernels, None, *settings, wanted)[by])

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return weighted_images(delta, weights)

    @override
    def add_gradient(self, saved: _Pass, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        images, kernels = (operand.to(deltas[0].dtype) for operand in (saved[0], saved[1]))
        if (compiled := saved[3]) is not None:
            add_to(into[0], compiled.kernel_derivatives(images.float(), deltas[0].float(), len(into[0])), decay)
        elif self.multiplies_patches(images, deltas[0].shape[2:].numel()):
            outputs = self._by_position(deltas[0]).flatten(1, 2).transpose(1, 2)
            patches = (self._patches(images) if saved[2] is None else saved[2].to(images.dtype)).flatten(1, 2)
            add_to(into[0], self._as_kernels(batched_product(outputs, patches)), decay)
        else:
            add_to(into[0], self._grouped_derivative(images, kernels, deltas[0], 1).view(into[0].shape), decay)
        if self.has_bias:
            add_to(into[1], deltas[1].sum((0, 2, 3)).view(into[1].shape), decay)

    @override
    def add_weighted_gradients(
        self, saved: _Pass, delta: Tensor, weights: Sequence[Tensor], into: Weights, decay: float
    ) -> None:
        """By direct sums, as norms are: a large pixel whose derivative is zero must not come in by rounding."""
        images, kernels, patches, _ = saved
        sums = self.sums_directly(images)
        super().add_weighted_gradients((images, kernels, patches, sums), delta, weights, into, decay)

    @override
    def held_gradients(self, saved: _Pass, delta: Tensor) -> list[HeldGradients] | None:
        """Where that takes less time than Gram matrices and the second pass, by counting operations."""
        if not holds(delta) or not self._pays_to_hold(delta.shape[2:].numel()):
            return None
        return self._formed(saved, delta, slice(None), self.filters_minimally(saved[0], by_sample=True))

    def _pays_to_hold(self, positions: int) -> bool:
        # Gradients are formed instead of summed, written once and read twice; patches are written and read once
        inputs = self.channels * math.prod(self.geometry.size)
        gram = 2 * positions**2 * (self.filters + inputs) + 2 * FLOPS_PER_ELEMENT * positions * inputs
        return gram > 3 * FLOPS_PER_ELEMENT * self.filters * inputs

    @override
    def squared_norms(self, saved: _Pass, delta: Tensor) -> list[Tensor]:
        """By forming each sample's gradient or, where that is cheaper, from the Gram matrices of the positions."""
        positions, inputs = delta.shape[2:].numel(), self.channels * self.geometry.size[0] * self.geometry.size[1]
        if positions * (self.filters + inputs) >= self.filters * inputs:
            return [squared_norm(gradients.rows) for gradients in self._formed(saved, delta, slice(None))]
        outputs, images = self._by_position(delta), saved[0]
        few = positions < gram.FEWEST_POSITIONS or not _in_full_precision_on_host(images)
        if few or (library := gram.kernel()) is None:
            of_kernel = (_gram(outputs) * _gram(self._patches_of(saved, slice(None)))).sum((2, 3))
        else:
            of_kernel = gram.squared_norms(library, self.geometry, images, delta, len(outputs), self.counts)
        return [of_kernel, squared_norm(outputs.sum(2))] if self.has_bias else [of_kernel]

    @override
    def inner_products(self, saved: _Pass, delta: Tensor, vectors: Weights) -> list[Tensor]:
        images, _, patches, _ = saved
        if patches is None:
            outputs, _ = self._summed(vectors, images)  # a large pixel is not to come in by rounding, as in norms
        else:
            rows = self._products(vectors, patches.flatten(1, 2))
            outputs = _interleaved(rows.view(*patches.shape[:2], *delta.shape[2:], self.filters))
        return [split_channels(outputs * delta, len(vectors[0])).sum((2, 3, 4)).T]

    @override
    def sample_gradients(self, saved: _Pass, delta: Tensor, part: slice) -> list[Tensor]:
        return [gradients.arranged(gradients.rows) for gradients in self._formed(saved, delta, part)]

    def _formed(
        self, saved: _Pass, delta: Tensor, part: slice, filtering: MinimalFiltering | None = None
    ) -> list[HeldGradients]:
        images, outputs = saved[0][part], self._by_position(delta[part])
        if compiled := filtering or self._of_part(part).sums_directly(images, by_sample=True):
            gradients = compiled.kernel_derivatives(images, delta[part], len(outputs), by_sample=True)
            shape = gradients.shape[2:]
            of_kernels = HeldGradients(gradients.flatten(2), lambda rows: rows.view(*rows.shape[:-1], *shape))
        else:
            outputs = outputs.contiguous()
            rows = torch.matmul(outputs.transpose(2, 3), self._patches_of(saved, part)).flatten(2)
            of_kernels = HeldGradients(rows, lambda r: self._as_kernels(r.view(*r.shape[:-1], self.filters, -1)))
        return [of_kernels, HeldGradients(outputs.sum(2), lambda rows: rows)] if self.has_bias else [of_kernels]

    def _of_part(self, part: slice) -> "Conv2d":
        # The layer for some of the samples of each client
        whole = self.counts is None or part == slice(None)
        return self if whole else replace(self, counts=(self.counts - part.start).clamp(0, part.stop - part.start))

    def _patches_of(self, saved: _Pass, part: slice) -> Tensor:
        images, _, patches, _ = saved
        return self._patches(images[part]) if patches is None else patches[:, part]

    def _patches(self, images: Tensor) -> Tensor:
        # (k, B, P, kh · kw · C)
        by_client = split_channels(images, images.shape[1] // self.channels)
        return patches_of(self.geometry, by_client.permute(1, 0, 3, 4, 2))

    def _by_place(self, kernels: Tensor) -> Tensor:
        # (k, O, kh · kw · C), in the order of patches, from (k, O, C, kh, kw)
        return kernels.permute(0, 1, 3, 4, 2).flatten(2)

    def _as_kernels(self, rows: Tensor) -> Tensor:
        # (..., O, C, kh, kw) from (..., O, kh · kw · C), a view
        return rows.view(*rows.shape[:-1], *self.geometry.size, self.channels).movedim(-1, -3)

    def _by_position(self, delta: Tensor) -> Tensor:
        # (k, B, P, O) from (B, k · O, rows, columns)
        return split_channels(delta, delta.shape[1] // self.filters).permute(1, 0, 3, 4, 2).flatten(2, 3)


def _in_full_precision_on_host(images: Tensor) -> bool:
    return images.device.type == "cpu" and images.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


def _interleaved(images: Tensor) -> Tensor:
    # (B, k · C, H, W) in channels-last memory from (k, B, H, W, C); a copy where memory has another order
    return images.permute(1, 2, 3, 0, 4).flatten(3).permute(0, 3, 1, 2)


def _gram(rows: Tensor) -> Tensor:
    # (k, B, P, P) inner products of the rows of (k, B, P, n)
    return torch.matmul(rows, rows.transpose(2, 3))
