"""Convolutions of many clients by direct sums, without any copy of patches.

The images of a few clients stay in the cache of a core, and a table says where on them the kernel lies: of any size,
stride, padding and dilation. Sums are those of a product of patches, in the same order. The kernel in C wants a
processor with AVX-512, or with AVX2 and fused multiplications; both round alike. Elsewhere torch convolves.
"""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from wirelessfl.kernels import POINTER, library_beside, loaded
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair
from wirelessfl.learning.sample_counts import address_of_counts

__all__ = ["VECTOR", "DirectSums", "direct_sums"]

LIBRARY = library_beside(__file__)

FUNCTIONS = {
    "wirelessfl_direct_convolution": 6,
    "wirelessfl_direct_image_derivatives": 5,
    "wirelessfl_direct_kernel_derivatives_by_pieces": 5,
}
"""Functions of the library and how many addresses they take."""

aten = torch.ops.aten

VECTOR = 16
"""Filters, and channels of derivatives by images, that are taken at once."""

_CACHE = 2**17  # numbers
_POSITIONS = 128  # that are enough at once
_PIECE = 64  # products, see the kernel
# Of the first cache the bytes in a line, the sets of lines, and the lines in a set, of which some processors have 12
_LINE, _SETS, _WAYS = 64, 64, 8
# Bytes over which the pixels of an image lie, from which on a copy was faster on an AMD of family 25: 1.2 to 1.8 times
# with kernels that lie on each pixel several times
_SPAN = 2**16


@dataclass(frozen=True)
class DirectSums:
    """Convolutions of k clients, of images (B, k · C, H, W) and kernels (k, O, C, kh, kw) in float32.

    O is a multiple of 16. Images may lie in memory in any order; derivatives by outputs are given in channels-last
    memory, and copied where they are taken in another. All are on a CPU in float32.

    Attributes:
        library: The compiled kernel.
        geometry: Of the kernels.
        longest: Products in a running sum; with more, the last digits would be lost one by one.
        counts: (k,) int64 samples of each client; those behind them are not looked at, and their outputs and
            derivatives are 0. None where all B count.
    """

    library: ctypes.CDLL
    geometry: KernelGeometry
    longest: int
    counts: Tensor | None = field(default=None, compare=False)

    def convolved(self, images: Tensor, kernels: Tensor, biases: Tensor | None) -> Tensor:
        """(B, k · O, rows, columns) outputs, of biases (k, O) too where there are any."""
        _require_float32(images, kernels, *(() if biases is None else (biases,)))
        kernels = _by_client(kernels)
        biases = biases if biases is None or biases.stride(1) == 1 else biases.contiguous()
        out = _empty(images, kernels.shape[0] * kernels.shape[1], self.geometry.positions(images.shape[2:]))
        plan, room = self._plan(images, kernels, biases, some_samples=self._some(len(images), images.shape[2:]))
        of_biases = None if biases is None else biases.data_ptr()
        pointers = images.data_ptr(), kernels.data_ptr(), of_biases, out.data_ptr(), room.data_ptr()
        self.library.wirelessfl_direct_convolution(plan, *pointers)
        return out

    def image_derivatives(self, delta: Tensor, kernels: Tensor, image: Pair) -> Tensor:
        """(B, k · C, *image) derivatives by the images, of those by the outputs."""
        _require_float32(delta, kernels)
        delta, kernels = _channels_last(delta), _by_client(kernels)
        out = _empty(delta, kernels.shape[0] * kernels.shape[2], image)
        plan, room = self._plan(out, kernels, some_samples=self._some(len(out), image), whole_vectors=True)
        pointers = (numbers.data_ptr() for numbers in (delta, kernels, out, room))
        self.library.wirelessfl_direct_image_derivatives(plan, *pointers)
        return out

    def kernel_derivatives(self, images: Tensor, delta: Tensor, clients: int, *, by_sample: bool = False) -> Tensor:
        """(k, O, C, kh, kw) derivatives by the kernels, of the images and the derivatives by the outputs.

        Args:
            images: (B, k · C, H, W).
            delta: (B, k · O, rows, columns).
            clients: k.
            by_sample: Whether they are not summed over the samples, but (k, B, O, C, kh, kw).
        """
        _require_float32(images, delta)
        delta = _channels_last(delta)
        samples = (len(images),) if by_sample else ()
        shape = delta.shape[1] // clients, images.shape[1] // clients, *self.geometry.size
        gradients = images.new_empty(clients, *samples, *shape)
        own = gradients[:, 0] if by_sample else gradients
        some_samples = 1 if by_sample else len(images)
        plan, room = self._plan(images, own, some_samples=some_samples, by_sample=by_sample, packs=True)
        pointers = (numbers.data_ptr() for numbers in (images, delta, gradients, room))
        self.library.wirelessfl_direct_kernel_derivatives_by_pieces(plan, *pointers)
        return gradients

    def _plan(
        self,
        images: Tensor,
        kernels: Tensor,
        biases: Tensor | None = None,
        *,
        some_samples: int,
        whole_vectors: bool = False,
        by_sample: bool = False,
        packs: bool = False,
    ) -> tuple[ctypes.Array[ctypes.c_int64], Tensor]:
        # The argument of the kernel in C, field by field, and room for its tables and copies
        at, (samples, _, height, width), (clients, filters, channels) = self.geometry, images.shape, kernels.shape[:3]
        rows, columns = at.positions((height, width))
        lanes = -(-channels // VECTOR) * VECTOR if whole_vectors else channels
        taps, positions = math.prod(at.size) * lanes, some_samples * rows * columns
        unpadded = at.padding == (0, 0) and lanes == channels
        scattered = math.prod(at.size) > math.prod(at.stride) and _is_scattered(images, channels)
        in_place = unpadded and not scattered and _stays_in_cache(images, channels)
        pixels = (height + 2 * at.padding[0]) * (width + 2 * at.padding[1]) * lanes
        copied = 0 if in_place else some_samples * pixels
        some_clients = max(1, min(clients, _CACHE // (taps * filters + copied)))
        by_client = kernels.stride(0), 0 if biases is None else biases.stride(0)
        plan = (
            address_of_counts(self.counts, clients),
            *(clients, samples, some_clients, some_samples, channels, height, width, *at.padding, filters),
            *(rows, columns, *at.size, *at.stride, *at.dilation, *by_client, by_sample, in_place),
            self.longest,
            *(images.stride(0), channels * images.stride(1), *images.stride()[1:]),
        )
        offsets = 2 * (positions + taps) + max(taps, filters)  # each takes as much as two numbers
        packed = 2 * VECTOR * (_PIECE + taps) if packs else 0
        room = images.new_empty(2 * offsets + some_clients * (taps * filters + copied) + packed + 3 * VECTOR)
        return (ctypes.c_int64 * len(plan))(*plan), room

    def _some(self, samples: int, image: Sequence[int]) -> int:
        # Of which a client has enough positions to fill the registers
        return max(1, min(samples, _POSITIONS // math.prod(self.geometry.positions(image))))


def direct_sums(
    geometry: KernelGeometry,
    samples: int,
    image: Sequence[int],
    channels: int,
    filters: int,
    longest: int,
    counts: Tensor | None = None,
) -> DirectSums | None:
    """Direct sums over images of one client; None where they do not apply.

    Args:
        geometry: Of the kernels.
        samples: B.
        image: H and W.
        channels: C.
        filters: O.
        longest: Products in a running sum.
        counts: (k,) samples of each client; see the attribute.
    """
    if filters % VECTOR or min(samples, channels, filters, *geometry.positions(image)) < 1:
        return None
    library = kernel()
    return None if library is None else DirectSums(library, geometry, longest, counts)


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    functions = {name: (POINTER,) * count for name, count in FUNCTIONS.items()}
    return loaded(LIBRARY, functions, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # Where the processor lacks the instructions nothing is written
    at = KernelGeometry(size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    sums, image = DirectSums(library, at, 20), (9, 6)
    numbers = torch.linspace(-1.3, 1.7, 2**15, dtype=torch.float32, device="cpu").mul(2**12).cos()
    images = numbers[: 2 * 9 * 6 * 6].view(2, *image, 6).permute(0, 3, 1, 2)
    kernels = numbers[: 2 * 16 * 3 * 6].view(2, 16, 3, *at.size)
    settings = at.stride, at.padding, at.dilation
    outputs = functional.conv2d(images, kernels.flatten(0, 1), None, *settings, 2)
    by_images, by_kernels, _ = aten.convolution_backward(
        outputs, images, kernels.flatten(0, 1), None, *settings, False, (0, 0), 2, (True, True, False)
    )
    found = (
        (sums.convolved(images, kernels, None), outputs),
        (sums.image_derivatives(outputs, kernels, image), by_images),
        (sums.kernel_derivatives(images, outputs, 2), by_kernels.view(kernels.shape)),
    )
    return all((one - other).norm() < 1e-5 * other.norm() for one, other in found)


def _require_float32(*operands: Tensor) -> None:
    # The kernel reads memory as such
    if any(operand.dtype != torch.float32 for operand in operands):
        raise TypeError("direct sums are for numbers in float32")


def _empty(like: Tensor, channels: int, size: Pair) -> Tensor:
    shape = len(like), channels, *size
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _is_scattered(images: Tensor, channels: int) -> bool:
    # Whether the pixels of one client's image lie far apart, those of other clients between
    _, _, height, width = images.shape
    column = images.stride(3)
    return column > channels and height * width * column * images.element_size() > _SPAN


def _stays_in_cache(images: Tensor, channels: int) -> bool:
    # Whether the pixels of one client's image stay in the first cache where they lie, those of other clients between
    _, _, height, width = images.shape
    _, channel, _, column = images.stride()
    if column == 1 == channels:
        return True
    sets = _SETS // math.gcd(4 * column // _LINE, _SETS)
    whole_lines = channel == 1 and channels % VECTOR == 0 and column % VECTOR == 0
    return whole_lines and height * width * channels // VECTOR <= _WAYS * sets


def _by_client(kernels: Tensor) -> Tensor:
    # Those of a client side by side
    return kernels if kernels[0].is_contiguous() else kernels.contiguous()


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)
