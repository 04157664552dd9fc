"""Winograd's minimal filtering: convolutions of 3 × 3 and 5 × 5 kernels in fewer products than they have.

A tile of 6 × 6 pixels and a kernel are transformed and multiplied point by point; the product is transformed to the
4 × 4 (or 2 × 2) outputs of the tile: 36 products in place of 144 (or 100) for each input and output (Lavin and Gray,
"Fast algorithms for convolutional neural networks", CVPR 2016). The derivatives are those of that computation. Results
are rounded some two to four times as much as direct sums, by some 10⁻⁶ of their norm. Where a pixel is not finite, or
so large that transforms overflow, all outputs of its tile may be NaN, and a pixel that is far larger than the others of
its tile leaves rounding errors of its own size in all of them.

The kernel in C wants a processor with AVX-512, or with AVX2 and fused multiplications; both round alike. Elsewhere
there is no minimal filtering, and torch convolves.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from wirelessfl.kernels import POINTER, library_beside, loaded
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair
from wirelessfl.learning.sample_counts import address_of_counts

__all__ = ["MinimalFiltering", "minimal_filtering"]

LIBRARY = library_beside(__file__)

FUNCTIONS = {"wirelessfl_minimal_convolution": 6, "wirelessfl_minimal_kernel_derivatives": 5}
"""Functions of the library and how many addresses they take."""

aten = torch.ops.aten

_SIDE = 6
_POINTS = _SIDE * _SIDE
_SIZES = 3, 5
_VECTOR = 16
_LINE = 16  # numbers in a line of the cache
_GROUP = 8  # inputs
_CACHE = 2**19  # numbers
_PANEL = 64  # filters
_BLOCKS = 24, 48  # tiles, the second where the kernels do not stay in the cache
# Time to transform a channel of a tile and a place of a kernel, in that of a product. Fitted to 736 random geometries
# on an Intel Xeon with AMX: in their geometric mean 1.26 times as fast as torch, 1.33 if the better way were known
_OF_TILE, _OF_PLACE = 20.0, 3.3


@dataclass(frozen=True)
class MinimalFiltering:
    """Convolutions of k clients with stride 1, of images (B, k · C, H, W) and kernels (k, O, C, r, r) in float32.

    Images are given in channels-last memory, and copied where they are taken in another.

    Attributes:
        library: The compiled kernel.
        size: r, 3 or 5.
        padding: Along rows and columns, below r.
        counts: (k,) int64 samples of each client; those behind them are not looked at, and their outputs and
            derivatives are 0. None where all B count.
    """

    library: ctypes.CDLL
    size: int
    padding: Pair
    counts: Tensor | None = field(default=None, compare=False)

    def convolved(self, images: Tensor, kernels: Tensor, biases: Tensor | None) -> Tensor:
        """(B, k · O, rows, columns) outputs, of biases (k, O) too where there are any."""
        rows, columns = (
            side + 2 * padding - self.size + 1 for side, padding in zip(images.shape[2:], self.padding, strict=True)
        )
        return self._convolved(images, kernels, biases, (rows, columns), turned=False)

    def image_derivatives(self, delta: Tensor, kernels: Tensor, image: Pair) -> Tensor:
        """(B, k · C, *image) derivatives by the images: convolutions of those by the outputs with turned kernels."""
        above, beside = (self.size - 1 - padding for padding in self.padding)
        turned = replace(self, padding=(above, beside))
        return turned._convolved(delta, kernels, None, image, turned=True)

    def kernel_derivatives(self, images: Tensor, delta: Tensor, clients: int, *, by_sample: bool = False) -> Tensor:
        """(k, O, C, r, r) derivatives by the kernels, of the images and the derivatives by the outputs.

        Args:
            images: (B, k · C, H, W).
            delta: (B, k · O, rows, columns).
            clients: k.
            by_sample: Whether they are not summed over the samples, but (k, B, O, C, r, r).
        """
        images, delta = _channels_last(images), _channels_last(delta)
        channels, filters = images.shape[1] // clients, delta.shape[1] // clients
        samples = (len(images),) if by_sample else ()
        gradients = images.new_empty(clients, *samples, filters, channels, self.size, self.size)
        plan, room = self._plan(images, delta, gradients, None, turned=False)
        pointers = (numbers.data_ptr() for numbers in (images, delta, gradients, room))
        self.library.wirelessfl_minimal_kernel_derivatives(plan, *pointers)
        return gradients

    def _convolved(self, images: Tensor, kernels: Tensor, biases: Tensor | None, size: Pair, *, turned: bool) -> Tensor:
        images = _channels_last(images)
        kernels = kernels if kernels[0].is_contiguous() else kernels.contiguous()
        biases = biases if biases is None or biases.stride(1) == 1 else biases.contiguous()
        shape = len(images), len(kernels) * kernels.shape[2 if turned else 1], *size
        out = torch.empty(shape, dtype=images.dtype, device=images.device, memory_format=torch.channels_last)
        plan, room = self._plan(images, out, kernels, biases, turned=turned)
        of_biases = None if biases is None else biases.data_ptr()
        pointers = images.data_ptr(), kernels.data_ptr(), of_biases, out.data_ptr(), room.data_ptr()
        self.library.wirelessfl_minimal_convolution(plan, *pointers)
        return out

    def _plan(
        self, images: Tensor, outputs: Tensor, kernels: Tensor, biases: Tensor | None, *, turned: bool
    ) -> tuple[ctypes.Array[ctypes.c_int64], Tensor]:
        # The argument of the kernel in C, field by field, and room for the transforms
        places = self.size**2
        filters, channels = kernels.shape[-4:-2]
        axes = (channels, places), (filters, channels * places)  # of inputs and outputs
        (inputs, by_input), (filters, by_output) = reversed(axes) if turned else axes
        panel = min(filters, max(_PANEL, _CACHE // (_POINTS * inputs) // _PANEL * _PANEL))
        block = _BLOCKS[1] if _POINTS * inputs * panel > _CACHE else _BLOCKS[0]
        plan = (
            address_of_counts(self.counts, len(kernels)),
            *(len(kernels), len(images), self.size, block, panel),
            *_layout(images, inputs, self.padding),
            *_layout(outputs, filters, (0, 0)),
            *(inputs, filters, by_input, by_output, kernels.stride(0)),
            *(0 if biases is None else biases.stride(0), turned, kernels.stride(1) if kernels.ndim == 6 else 0),
        )
        planes = inputs * panel + block * (inputs + panel) + 3 * _LINE
        room = images.new_empty(_POINTS * planes + _GROUP * places * panel + max(inputs, panel))
        return (ctypes.c_int64 * len(plan))(*plan), room


def minimal_filtering(
    geometry: KernelGeometry,
    samples: int,
    image: Sequence[int],
    channels: int,
    filters: int,
    counts: Tensor | None = None,
) -> MinimalFiltering | None:
    """Minimal filtering of images of one client; None where it does not apply, or is not faster.

    Args:
        geometry: Of the kernels.
        samples: B, for which the kernels are transformed once.
        image: H and W.
        channels: C.
        filters: O.
        counts: (k,) samples of each client; see the attribute.
    """
    size = geometry.size[0]
    if geometry.size != (size, size) or size not in _SIZES or channels % _VECTOR or filters % _VECTOR:
        return None
    unit = geometry.stride == geometry.dilation == (1, 1)
    if not unit or not 0 <= min(geometry.padding) <= max(geometry.padding) < size:
        return None
    positions = geometry.positions(image)
    if min(samples, channels, filters, *positions) < 1:  # of which there are no tiles, or torch refuses them
        return None
    tiles = math.prod(-(-along // (_SIDE + 1 - size)) for along in positions)
    saved = size**2 * math.prod(positions) / (_POINTS * tiles)
    cost = 1 + _OF_TILE * (1 / channels + 1 / filters) + _OF_PLACE * size**2 / (samples * tiles)
    if saved < cost:
        return None
    library = kernel()
    return None if library is None else MinimalFiltering(library, size, geometry.padding, counts)


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    functions = {name: (POINTER,) * count for name, count in FUNCTIONS.items()}
    return loaded(LIBRARY, functions, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # Where the processor lacks the instructions nothing is written
    numbers = torch.linspace(-1.3, 1.7, 2**15, dtype=torch.float32, device="cpu").mul(2**12).cos()
    images = numbers[: 2 * 9 * 6 * 32].view(2, 9, 6, 32).permute(0, 3, 1, 2)
    for size in _SIZES:
        kernels = numbers[: 2 * 16 * 16 * size**2].view(2, 16, 16, size, size)
        filtering, settings = MinimalFiltering(library, size, (1, 2)), ((1, 1), (1, 2), (1, 1), False, (0, 0), 2)
        outputs = functional.conv2d(images, kernels.flatten(0, 1), None, 1, (1, 2), 1, 2)
        by_images, by_kernels, _ = aten.convolution_backward(
            outputs, images, kernels.flatten(0, 1), None, *settings, (True, True, False)
        )
        found = (
            (filtering.convolved(images, kernels, None), outputs),
            (filtering.image_derivatives(outputs, kernels, (9, 6)), by_images),
            (filtering.kernel_derivatives(images, outputs, 2), by_kernels.view(kernels.shape)),
        )
        if not all((one - other).norm() < 1e-4 * other.norm() for one, other in found):
            return False
    return True


def _layout(images: Tensor, channels: int, padding: Pair) -> tuple[int, ...]:
    # How many numbers clients, samples, rows and columns are apart
    _, all_channels, height, width = images.shape
    steps = channels, height * width * all_channels, width * all_channels, all_channels
    return height, width, *padding, *steps


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)
