"""Convolutions of all clients at once: as one grouped convolution, or as matrix products of patches.

On a CPU the grouped convolution is faster. cuDNN's in single precision takes several times as long as the products, the
copies of the patches included: with it a round of ``cnn_mnist`` and DP-SGD trained 2.3 times as long on an H200
(``docs/how-to/gpu.md``). With TF32 it is faster for most layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.stacked.layers import TrainedLayer, Weights, squared_norm
from wirelessfl.learning.cohort.stacked.spatial import Pair, aten, split_channels, weighted_images

_Pass = tuple[Tensor, Tensor]


def multiplies_patches(images: Tensor) -> bool:
    """Whether convolutions of ``images`` are matrix products of patches: in single precision on a GPU.

    Without values, on the ``meta`` device, they go the way of a GPU, whose memory is planned there.
    """
    device = images.device.type
    rounds = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
    return device != "cpu" and torch.get_float32_matmul_precision() == "highest" and not rounds


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
        if multiplies_patches(inputs):
            outputs = self._product(weights, inputs)
        else:
            biases = weights[1].flatten() if self.has_bias else None
            settings = self.stride, self.padding, self.dilation, len(weights[0])
            outputs = functional.conv2d(inputs, kernels, biases, *settings)
        return outputs, (inputs, kernels)

    def _product(self, weights: Weights, images: Tensor) -> Tensor:
        # The outputs (B, k · O, rows, columns) as one batched product of patches and kernels
        clients, size = len(weights[0]), self._size(images)
        patches = self._patches(images, size).flatten(1, 2)
        kernels = self._by_place(weights[0]).transpose(1, 2)
        rows = (
            torch.baddbmm(weights[1].unsqueeze(1), patches, kernels) if self.has_bias else torch.bmm(patches, kernels)
        )
        by_client = rows.view(clients, len(images), *size, self.filters).permute(1, 2, 3, 0, 4)
        return by_client.flatten(3).permute(0, 3, 1, 2)  # flatten copies into channels-last memory

    @override
    def backward(self, weights: Weights, saved: _Pass, delta: Tensor) -> Tensor:
        images, kernels = (operand.to(delta.dtype) for operand in saved)
        if not multiplies_patches(delta):
            return self._grouped_derivative(images, kernels, delta, 0)
        of_clients = kernels.view(-1, self.filters, *kernels.shape[1:])
        rows = torch.bmm(self._by_position(delta).flatten(1, 2), self._by_place(of_clients))
        return self._overlapped(rows, images, delta)

    def _overlapped(self, rows: Tensor, images: Tensor, delta: Tensor) -> Tensor:
        # The adjoint of ``_patches``: derivatives by patches (k, B · P, kh · kw · C) added up where patches overlap
        (above, left), (down, right), (below, beside) = self.padding, self.stride, self.dilation
        batch, _, height, width = images.shape
        vertical, horizontal = delta.shape[2:]
        by_place = rows.view(len(rows), batch, vertical, horizontal, *self.kernel, self.channels)
        padded = rows.new_zeros(batch, height + 2 * above, width + 2 * left, len(rows), self.channels)
        for row, column in product(*map(range, self.kernel)):
            under = padded[:, row * below :: down, column * beside :: right][:, :vertical, :horizontal]
            under.add_(by_place[:, :, :, :, row, column].permute(1, 2, 3, 0, 4))
        return padded[:, above : above + height, left : left + width].flatten(3).permute(0, 3, 1, 2)

    def _grouped_derivative(self, images: Tensor, kernels: Tensor, delta: Tensor, by: int) -> Tensor:
        # By the images (0) or the kernels (1)
        settings = self.stride, self.padding, self.dilation, False, (0, 0), len(kernels) // self.filters
        wanted = [by == 0, by == 1, False]
        return cast(Tensor, aten.convolution_backward(delta, images, kernels, None, *settings, wanted)[by])

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return weighted_images(delta, weights)

    @override
    def add_gradient(self, saved: _Pass, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        images, kernels = (operand.to(deltas[0].dtype) for operand in saved)
        if multiplies_patches(images):
            outputs = self._by_position(deltas[0]).flatten(1, 2).transpose(1, 2)
            patches = self._patches(images, deltas[0].shape[2:]).flatten(1, 2)
            add_to(into[0], self._as_kernels(torch.bmm(outputs, patches)), decay)
        else:
            add_to(into[0], self._grouped_derivative(images, kernels, deltas[0], 1).view(into[0].shape), decay)
        if self.has_bias:
            add_to(into[1], deltas[1].sum((0, 2, 3)).view(into[1].shape), decay)

    @override
    def squared_norms(self, saved: _Pass, delta: Tensor) -> list[Tensor]:
        """By forming each sample's gradient or, where that is cheaper, from the Gram matrices of the positions.

        ‖Σ_p δ_p ⊗ x_p‖² = Σ_{p,q} ⟨δ_p, δ_q⟩⟨x_p, x_q⟩ (Bu, Mao, Xu, "Scalable and efficient training of large
        convolutional neural networks with differential privacy", NeurIPS 2022).
        """
        outputs, patches = self._by_position(delta), self._patches(saved[0], delta.shape[2:])
        positions, inputs = patches.shape[2:]
        if positions * (self.filters + inputs) < self.filters * inputs:
            of_kernel = (_gram(outputs) * _gram(patches)).sum((2, 3))
        else:
            of_kernel = squared_norm(torch.matmul(outputs.transpose(2, 3), patches).flatten(2))
        return [of_kernel, squared_norm(outputs.sum(2))] if self.has_bias else [of_kernel]

    @override
    def sample_gradients(self, saved: _Pass, delta: Tensor, part: slice) -> list[Tensor]:
        outputs, patches = self._by_position(delta[part]), self._patches(saved[0][part], delta.shape[2:])
        of_kernel = self._as_kernels(torch.matmul(outputs.transpose(2, 3), patches))
        return [of_kernel, outputs.sum(2)] if self.has_bias else [of_kernel]

    def _size(self, images: Tensor) -> Pair:
        # Rows and columns of the outputs
        rows, columns = (
            (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for side, kernel, stride, padding, dilation in zip(
                images.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )
        return rows, columns

    def _by_place(self, kernels: Tensor) -> Tensor:
        # (k, O, kh · kw · C), in the order of patches, from (k, O, C, kh, kw)
        return kernels.permute(0, 1, 3, 4, 2).flatten(2)

    def _as_kernels(self, rows: Tensor) -> Tensor:
        # (..., O, C, kh, kw) from (..., O, kh · kw · C), a view
        return rows.view(*rows.shape[:-1], *self.kernel, self.channels).movedim(-1, -3)

    def _by_position(self, delta: Tensor) -> Tensor:
        # (k, B, P, O) from (B, k · O, rows, columns)
        return split_channels(delta, delta.shape[1] // self.filters).permute(1, 0, 3, 4, 2).flatten(2, 3)

    def _patches(self, images: Tensor, size: Sequence[int]) -> Tensor:
        # (k, B, P, kh · kw · C) what lies under the kernel at each of the P = rows · columns positions
        (rows, columns), (down, right) = self.padding, self.stride
        padded = functional.pad(images, (columns, columns, rows, rows))
        clients = images.shape[1] // self.channels
        batch, client, channel, row, column = split_channels(padded, clients).stride()
        windows = padded.as_strided(
            (clients, len(images), *size, *self.kernel, self.channels),
            (client, batch, row * down, column * right, row * self.dilation[0], column * self.dilation[1], channel),
        )
        return windows.flatten(4).flatten(2, 3)


def _gram(rows: Tensor) -> Tensor:
    # (k, B, P, P) inner products of the rows of (k, B, P, n)
    return torch.matmul(rows, rows.transpose(2, 3))
