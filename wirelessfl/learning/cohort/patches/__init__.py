"""Patches under the kernels of convolutions: copied side by side, and added up where they overlap.

A convolution is then one product of matrices for each client, and the gradient of a sample one product of its patches.
On a CPU a small C kernel copies and adds, in runs as long as the memory allows; where it was not compiled, in other
precisions and on a GPU, torch gives the same numbers.
"""

import ctypes
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.learning.cohort.patches.portable import add_portably, copy_portably
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair

LIBRARY = library_beside(__file__)

_SHORT = 16  # numbers: runs that are shorter take longer than a copy of the images that makes longer ones


def patches_of(geometry: KernelGeometry, images: Tensor) -> Tensor:
    """(k, B, P, kh · kw · C) what lies under the kernel on images (k, B, H, W, C), in any order of memory."""
    (above, left), (clients, samples, height, width, channels) = geometry.padding, images.shape
    if above or left or (channels < _SHORT and not images.is_contiguous()):
        padded = images.new_zeros(clients, samples, height + 2 * above, width + 2 * left, channels)
        padded[:, :, above : above + height, left : left + width] = images
        images = padded
    library = kernel() if _floats_of_host(images) else None
    return copy_portably(geometry, images) if library is None else _copy_compiled(library, geometry, images)


def sums_over_patches(geometry: KernelGeometry, values: Tensor, image: Pair) -> Tensor:
    """Of each pixel the sum of the values of the patches that cover it, the adjoint of ``patches_of``.

    Args:
        geometry: Of the kernel.
        values: (k, B, rows, columns, kh, kw, C).
        image: H and W.

    Returns:
        (k, B, H, W, C), in the order (B, H, W, k, C) of memory.
    """
    library = kernel() if _floats_of_host(values) else None
    if library is None:
        return add_portably(geometry, values, image)
    return _add_compiled(library, geometry, values.contiguous(), image)


def _floats_of_host(numbers: Tensor) -> bool:
    return numbers.device.type == "cpu" and numbers.dtype == torch.float32


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    functions = {
        "wirelessfl_copy_patches": (POINTER,) * 3,
        "wirelessfl_add_patches": (POINTER, POINTER, COUNT, COUNT, POINTER, POINTER, POINTER),
    }
    return loaded(LIBRARY, functions, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    geometry = KernelGeometry(size=(3, 2), stride=(2, 1), padding=(0, 0), dilation=(1, 2))
    numbers = torch.linspace(-1.3, 1.7, 2 * 3 * 5 * 6 * 4, dtype=torch.float32, device="cpu")
    images = numbers.cos().view(2, 3, 5, 6, 4)
    patches = copy_portably(geometry, images)
    values = patches.view(2, 3, *geometry.positions_inside((5, 6)), 3, 2, 4)
    sums = _add_compiled(library, geometry, values, (5, 6))
    return torch.equal(_copy_compiled(library, geometry, images), patches) and torch.equal(
        sums, add_portably(geometry, values, (5, 6))
    )


def _copy_compiled(library: ctypes.CDLL, geometry: KernelGeometry, images: Tensor) -> Tensor:
    (down, right), (below, beside), (high, wide) = geometry.stride, geometry.dilation, geometry.size
    clients, samples, height, width, channels = images.shape
    rows, columns = geometry.positions_inside((height, width))
    client, sample, row, column, channel = images.stride()
    outer = ((clients, client), (samples, sample), (rows, row * down), (columns, column * right), (high, row * below))
    if beside == 1 and column == channels * channel:  # the columns of a kernel lie side by side
        inner = (1, 0), (wide * channels, channel)
    else:
        inner = (wide, column * beside), (channels, channel)
    out = images.new_empty(clients, samples, rows * columns, high * wide * channels)
    library.wirelessfl_copy_patches(images.data_ptr(), _view(*outer, *inner), out.data_ptr())
    return out


def _add_compiled(library: ctypes.CDLL, geometry: KernelGeometry, values: Tensor, image: Pair) -> Tensor:
    clients, samples, rows, columns, high, wide, channels = values.shape
    out = values.new_empty(samples, *image, clients, channels).permute(3, 0, 1, 2, 4)
    axes = zip(out.shape[:4], out.stride()[:4], strict=True)
    row_over, column_over = (_positions_over(geometry, axis, image[axis], (rows, columns)[axis]) for axis in (0, 1))
    library.wirelessfl_add_patches(
        values.data_ptr(),
        _view(*axes, (high, 0), (wide, 0), (channels, 1)),
        *(rows, columns, row_over.ctypes.data, column_over.ctypes.data, out.data_ptr()),
    )
    return out


def _view(*axes: tuple[int, int]) -> ctypes.Array[ctypes.c_int64]:
    # The lengths of the axes, then the steps along them
    sizes, steps = zip(*axes, strict=True)
    return (ctypes.c_int64 * (2 * len(axes)))(*sizes, *steps)


def _positions_over(geometry: KernelGeometry, axis: int, side: int, positions: int) -> NDArray[np.int64]:
    # (side, kernel) the position at which a place of the kernel lies over a pixel; -1 where there is none
    stride, places = geometry.stride[axis], geometry.dilation[axis] * np.arange(geometry.size[axis])
    ahead = np.arange(side)[:, None] + geometry.padding[axis] - places
    known = (ahead >= 0) & (ahead % stride == 0) & (ahead < positions * stride)
    return np.where(known, ahead // stride, -1).astype(np.int64)
