"""Pooling of images in the layout of ``spatial``."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from torch import Tensor
from torch.nn import functional
from typing_extensions import override

from wirelessfl.learning.cohort.pooling import CompiledPool, kernel_for
from wirelessfl.learning.cohort.stacked.layers import Layer, Saved, Weights
from wirelessfl.learning.cohort.stacked.spatial import aten
from wirelessfl.learning.kernel_geometry import KernelGeometry, Pair

_Pass = tuple[Tensor, Tensor]


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
        delta = delta.to(images.dtype)  # that of convolutions in reduced precision, where group norm gave the images
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
        return self.derivative(delta.to(saved.dtype), saved)


class _Kept(NamedTuple):
    # What the kernel needs for the derivative
    compiled: CompiledPool
    images: Any


@dataclass(frozen=True)
class Pool(Layer):
    """Maxima or means, or a ReLU and these, by the kernel in C; layers of torch where it does not take the images.

    ``saved`` is what the kernel kept, or what each of these layers saved.

    Attributes:
        compiled: Maxima or means.
        windows: Their geometry.
        pool: The same by torch.
        relu: Before it, if any.
    """

    compiled: Callable[[ctypes.CDLL, KernelGeometry, bool], CompiledPool]
    windows: KernelGeometry
    pool: Layer
    relu: Layer | None = None

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Saved]:
        library = kernel_for(inputs, self.windows)
        if library is not None:
            compiled = self.compiled(library, self.windows, self.relu is not None)
            outputs, images = compiled.pooled(inputs)
            return outputs, _Kept(compiled, images)
        if self.relu is None:
            outputs, of_pool = self.pool.forward(weights, inputs)
            return outputs, (None, of_pool)
        rectified, of_relu = self.relu.forward(weights, inputs)
        outputs, of_pool = self.pool.forward(weights, rectified)
        return outputs, (of_relu, of_pool)

    @override
    def backward(self, weights: Weights, saved: Saved, delta: Tensor) -> Tensor:
        if isinstance(saved, _Kept):
            return saved.compiled.derivative(delta, saved.images)
        of_relu, of_pool = saved
        delta = self.pool.backward(weights, of_pool, delta)
        return delta if self.relu is None else self.relu.backward(weights, of_relu, delta)
