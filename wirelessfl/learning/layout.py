"""Memory layout of images, and the samples that go through a model at once, on a CPU."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.winograd.modules import ConvolutionCount

# Measured: with up to so many filters channels-last is up to twice as fast; with 512 on images of 4 x 4 it is slower
# where torch convolves. Minimal filtering wants it, but takes too few of a ResNet's products on images of 64 x 64
_WIDEST_LAST = 256
_MOST_FILTERED = 0.75
_IMAGES = 32  # what so many become in a network of convolutions stays in the caches
_WIDEST_BYTES = 2**27  # of the outputs of one layer


def convolves(module: nn.Module) -> bool:
    """Whether a convolution occurs in the module."""
    return any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules())


@lru_cache(maxsize=8)
def samples_at_once(model: FlatModel, most: int) -> int:
    """Samples that go through a model at once on a CPU where no gradient is wanted.

    Few images through convolutions; of others as many as the outputs of the widest layer leave room for.

    Args:
        model: The model.
        most: What to divide; a part of a half, a quarter... of it otherwise.
    """
    if convolves(model.module):
        return _IMAGES
    at_once, widest = most, _widest_output(model)
    while at_once > 1 and 4 * widest * at_once > _WIDEST_BYTES:
        at_once = -(-at_once // 2)
    return at_once


def _widest_output(model: FlatModel) -> int:
    # Most numbers that a layer makes of one sample
    widest = 0

    def measure(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal widest
        first = output[0] if isinstance(output, tuple) else output  # recurrent layers also give their state
        widest = max(widest, first.numel())

    module = model.replica(torch.device("cpu")).module
    for part in module.modules():
        if not list(part.children()):
            part.register_forward_hook(measure)
    with torch.no_grad():
        module(torch.zeros(1, *model.feature_shape))
    return widest


def arranged(images: Tensor, layout: torch.memory_format) -> Tensor:
    """Images (n, C, H, W) in a memory format; a copy where theirs is another.

    Where there is one channel both formats are the same memory. The strides then say which it is: what layers make of
    the images would be contiguous otherwise, and pooling takes several times as long there.
    """
    images = images.contiguous(memory_format=layout)
    if layout == torch.channels_last and images.shape[1] == 1:
        height, width = images.shape[2:]
        return images.as_strided(images.shape, (height * width, 1, width, 1))
    return images


@lru_cache(maxsize=8)
def image_format(model: FlatModel) -> torch.memory_format:
    """The memory format of images in which the convolutions of a model are fast.

    Channels-last for two-dimensional ones that are not wide or mostly filtered minimally, where the module takes it:
    one that calls ``view`` on images may not. What is not an image is contiguous.
    """
    widths = [part.out_channels for part in model.module.modules() if isinstance(part, nn.Conv2d)]
    if len(model.feature_shape) != 3 or not widths:
        return torch.contiguous_format
    fast = max(widths) <= _WIDEST_LAST or _filtered_share(model) >= _MOST_FILTERED
    return torch.channels_last if fast and _takes_channels_last(model) else torch.contiguous_format


def _filtered_share(model: FlatModel) -> float:
    # Share of the products of two-dimensional convolutions for which minimal filtering is taken
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(1, *model.feature_shape, generator=generator)
    with torch.no_grad(), ConvolutionCount(_IMAGES) as count:
        model.logits(model.initial(0), inputs)
    return count.filtered / count.products if count.products else 0.0


def _takes_channels_last(model: FlatModel) -> bool:
    # Whether the logits are the same in both formats, on two random samples in double precision
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(2, *model.feature_shape, generator=generator, dtype=torch.float64)
    parameters = model.initial(0).double()
    try:
        with torch.no_grad():
            logits = model.logits(parameters, arranged(inputs, torch.channels_last))
            return torch.allclose(logits, model.logits(parameters, inputs), rtol=1e-9, atol=1e-12)
    except RuntimeError:
        return False
