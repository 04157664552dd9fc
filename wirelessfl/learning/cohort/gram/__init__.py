"""Squared norms of single samples' gradients by the kernels of a convolution, from Gram matrices of its positions.

Of a sample with patches x_p and derivatives δ_p by the outputs the gradient is Σ_p δ_p ⊗ x_p, and its squared norm
Σ_{p,q} ⟨δ_p, δ_q⟩⟨x_p, x_q⟩ (Bu, Mao, Xu, "Scalable and efficient training of large convolutional neural networks with
differential privacy", NeurIPS 2022). A small kernel in C has the patches of one sample at a time, and leaves out blocks
below the diagonals; it wants a processor with AVX-512, or with AVX2 and fused multiplications. Elsewhere, and for fewer
than ``FEWEST_POSITIONS``, torch multiplies.
"""

import ctypes
import math
from functools import cache

import torch
from torch import Tensor

from wirelessfl.kernels import POINTER, library_beside, loaded
from wirelessfl.learning.cohort.patches import patches_of
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.layout import arranged
from wirelessfl.learning.sample_counts import address_of_counts

__all__ = ["FEWEST_POSITIONS", "kernel", "squared_norms"]

LIBRARY = library_beside(__file__)

FEWEST_POSITIONS = 4
"""Where the kernel takes over. At one or two positions torch was 1.2 to 2.8 times as fast on an AMD of family 25."""

_LONGEST = 384  # products in a running sum: with more, the last digits would be lost one by one
_VECTOR = 16  # numbers to whose multiples rows are rounded up at most


def squared_norms(
    library: ctypes.CDLL, geometry: KernelGeometry, images: Tensor, delta: Tensor, clients: int, counts: Tensor | None
) -> Tensor:
    """(k, B) squared norms of the samples' gradients by the kernels.

    Args:
        library: From ``kernel``.
        geometry: Of the kernels.
        images: (B, k · C, H, W) in float32, on a CPU.
        delta: (B, k · O, rows, columns) derivatives by the outputs, likewise.
        clients: k.
        counts: (k,) samples of each client that are present, see ``address_of_counts``; norms of others are 0.

    Raises:
        TypeError: They are not in float32.
    """
    if images.dtype != torch.float32 or delta.dtype != torch.float32:  # the kernel reads memory as such
        raise TypeError("norms by Gram matrices are for numbers in float32")
    images, delta = (arranged(operand, torch.channels_last) for operand in (images, delta))
    (samples, _, height, width), (rows, columns) = images.shape, delta.shape[2:]
    channels, filters = images.shape[1] // clients, delta.shape[1] // clients
    plan = (
        address_of_counts(counts, clients),
        *(clients, samples, channels, height, width, filters, rows, columns),
        *(*geometry.size, *geometry.padding, *geometry.stride, *geometry.dilation, _LONGEST),
    )
    places, lanes = math.prod(geometry.size), -(-rows * columns // _VECTOR) * _VECTOR
    offsets = rows * columns * places  # each takes as much as two numbers
    numbers = max(channels, filters) + (places * channels + filters + 2 * lanes) * lanes
    room = images.new_empty(2 * offsets + numbers + 5 * _VECTOR)
    out = images.new_empty(clients, samples)
    pointers = (operand.data_ptr() for operand in (images, delta, out, room))
    library.wirelessfl_gram_squared_norms((ctypes.c_int64 * len(plan))(*plan), *pointers)
    return out


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    return loaded(LIBRARY, {"wirelessfl_gram_squared_norms": (POINTER,) * 5}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # Where the processor lacks the instructions nothing is written
    geometry = KernelGeometry(size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    numbers = torch.linspace(-1.3, 1.7, 2**13, dtype=torch.float32, device="cpu").mul(2**12).cos()
    images, (rows, columns) = numbers[: 3 * 9 * 6 * 10].view(3, 9, 6, 2, 5), geometry.positions((9, 6))
    delta = numbers[-3 * rows * columns * 18 :].view(3, rows * columns, 2, 9).permute(2, 0, 1, 3)
    patches = patches_of(geometry, images.permute(3, 0, 1, 2, 4))
    expected = (delta.transpose(2, 3) @ patches).square().sum((2, 3))
    operands = images.flatten(3).permute(0, 3, 1, 2), delta.permute(1, 0, 3, 2).reshape(3, 18, rows, columns)
    found = squared_norms(library, geometry, *operands, 2, None)
    return bool((found - expected).norm() < 1e-5 * expected.norm())
