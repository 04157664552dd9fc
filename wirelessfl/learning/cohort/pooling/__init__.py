"""Maxima and means over windows of images, with or without a ReLU before them, and their derivatives.

A kernel in C gives the numbers of torch, but for the sign of a zero, in two thirds to a fifth of the time: on a CPU in
single precision, where it was compiled. Images (B, C, H, W) are in channels-last memory.
"""

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair

__all__ = ["CompiledPool", "Maxima", "Means", "kernel_for"]

LIBRARY = library_beside(__file__)

aten = torch.ops.aten
_MOST_PLACES = 255  # a place is a byte, of which one value says that there is none
_FEWEST_CHANNELS = 32  # with fewer, torch was faster


def kernel_for(images: Tensor, windows: KernelGeometry) -> ctypes.CDLL | None:
    """The library where it takes these images and windows, and is faster than torch.

    It takes windows of at most 255 places. Where they are padded and dilated, some may lie off the image altogether.
    """
    on_host = images.device.type == "cpu" and images.dtype == torch.float32
    met = windows.dilation == (1, 1) or windows.padding == (0, 0)
    fit = met and math.prod(windows.size) <= _MOST_PLACES and images.shape[1] >= _FEWEST_CHANNELS
    return kernel() if on_host and fit else None


class CompiledPool(Protocol):
    """Pooling by the library.

    Args:
        library: From ``kernel_for``.
        windows: Each with a pixel at least.
        rectified: Whether a ReLU comes before it.
    """

    def __init__(self, library: ctypes.CDLL, windows: KernelGeometry, rectified: bool) -> None: ...

    def pooled(self, images: Tensor) -> tuple[Tensor, Any]:
        """(B, C, rows, columns) values of the windows, and what ``derivative`` needs of the images."""

    def derivative(self, delta: Tensor, kept: Any) -> Tensor:
        """(B, C, H, W) derivative by the images from ``delta``, that by the values of the windows, in any precision."""


class Places(NamedTuple):
    """Where maxima lie.

    Attributes:
        of_windows: (B, rows, columns, C) bytes: the place in its window, 255 where a ReLU has no derivative.
        image: H and W.
    """

    of_windows: Tensor
    image: Pair


@dataclass(frozen=True)
class Maxima(CompiledPool):
    """Maxima over windows, what lies off the image left out."""

    library: ctypes.CDLL
    windows: KernelGeometry
    rectified: bool

    @override
    def pooled(self, images: Tensor) -> tuple[Tensor, Places]:
        images = _channels_last(images)
        out = _empty(images, self.windows.positions(images.shape[2:]))
        places = torch.empty(out.permute(0, 2, 3, 1).shape, dtype=torch.uint8, device=images.device)
        arguments = images.data_ptr(), _view(self.windows, images), self.rectified, out.data_ptr(), places.data_ptr()
        self.library.wirelessfl_maxima(*arguments)
        return out, Places(places, (images.shape[2], images.shape[3]))

    @override
    def derivative(self, delta: Tensor, kept: Places) -> Tensor:
        delta = _channels_last(delta.float())
        out = _empty(delta, kept.image)
        view = _view(self.windows, out)
        self.library.wirelessfl_from_maxima(delta.data_ptr(), kept.of_windows.data_ptr(), view, out.data_ptr())
        return out


@dataclass(frozen=True)
class Means(CompiledPool):
    """Means over windows, what lies off the image counted as zero; the images are kept."""

    library: ctypes.CDLL
    windows: KernelGeometry
    rectified: bool

    @override
    def pooled(self, images: Tensor) -> tuple[Tensor, Tensor]:
        images = _channels_last(images)
        out = _empty(images, self.windows.positions(images.shape[2:]))
        view = _view(self.windows, images)
        self.library.wirelessfl_means(images.data_ptr(), view, self.rectified, out.data_ptr())
        return out, images

    @override
    def derivative(self, delta: Tensor, kept: Tensor) -> Tensor:
        delta, out = _channels_last(delta.float()), torch.empty_like(kept)
        before = kept.data_ptr() if self.rectified else None
        self.library.wirelessfl_from_means(delta.data_ptr(), before, _view(self.windows, kept), out.data_ptr())
        return out


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    functions = {
        "wirelessfl_maxima": (POINTER, POINTER, COUNT, POINTER, POINTER),
        "wirelessfl_from_maxima": (POINTER,) * 4,
        "wirelessfl_means": (POINTER, POINTER, COUNT, POINTER),
        "wirelessfl_from_means": (POINTER,) * 4,
    }
    return loaded(LIBRARY, functions, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    windows = KernelGeometry(size=(2, 3), stride=(1, 2), padding=(0, 1), dilation=(1, 1))
    numbers = torch.linspace(-1.3, 1.7, 2 * 5 * 6 * 102, dtype=torch.float32, device="cpu").cos()
    images = numbers.view(2, 5, 6, 102).permute(0, 3, 1, 2)
    pair, rectified = (windows.size, windows.stride, windows.padding), images.relu()
    maxima, where = functional.max_pool2d_with_indices(rectified, *pair)
    means = functional.avg_pool2d(rectified, *pair)
    derivatives = (
        aten.max_pool2d_with_indices_backward(maxima, rectified, *pair, windows.dilation, False, where),
        aten.avg_pool2d_backward(means, rectified, *pair, False, True, None),
    )
    for pool, expected, derivative in zip((Maxima, Means), (maxima, means), derivatives, strict=True):
        compiled = pool(library, windows, True)
        values, kept = compiled.pooled(images)
        through = aten.threshold_backward(derivative, rectified, 0)
        if not torch.equal(values, expected) or not torch.equal(compiled.derivative(values, kept), through):
            return False
    return True


def _view(windows: KernelGeometry, images: Tensor) -> ctypes.Array[ctypes.c_int64]:
    samples, channels, height, width = images.shape
    axes = windows.size, windows.stride, windows.padding, windows.dilation
    places = (number for pair in axes for number in pair)
    return (ctypes.c_int64 * 14)(samples, height, width, channels, *windows.positions((height, width)), *places)


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)


def _empty(like: Tensor, size: Pair) -> Tensor:
    # (B, C, *size)
    shape = *like.shape[:2], *size
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)
