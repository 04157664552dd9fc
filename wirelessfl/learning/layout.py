"""Memory layout of images, and the samples that go through a model at once, on a CPU."""

from functools import lru_cache

import torch
from torch import nn

from wirelessfl.learning.flat import FlatModel

# Measured: with up to so many filters channels-last is up to twice as fast, with 512 on images of 4 x 4 slower
_WIDEST_LAST = 256


def convolves(module: nn.Module) -> bool:
    """Whether a convolution occurs in the module."""
    return any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules())


@lru_cache(maxsize=8)
def image_format(model: FlatModel) -> torch.memory_format:
    """The memory format of images in which the convolutions of a model are fast.

    Channels-last for two-dimensional ones that are not wide, where the module takes it: one that calls ``view`` on
    images may not. What is not an image is contiguous.
    """
    widths = [part.out_channels for part in model.module.modules() if isinstance(part, nn.Conv2d)]
    narrow = len(model.feature_shape) == 3 and widths and max(widths) <= _WIDEST_LAST
    return torch.channels_last if narrow and _takes_channels_last(model) else torch.contiguous_format


def _takes_channels_last(model: FlatModel) -> bool:
    # Whether the logits are the same in both formats, on two random samples in double precision
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(2, *model.feature_shape, generator=generator, dtype=torch.float64)
    parameters = model.initial(0).double()
    try:
        with torch.no_grad():
            logits = model.logits(parameters, inputs.contiguous(memory_format=torch.channels_last))
            return torch.allclose(logits, model.logits(parameters, inputs), rtol=1e-9, atol=1e-12)
    except RuntimeError:
        return False
