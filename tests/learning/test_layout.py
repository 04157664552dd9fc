"""Memory formats of images: the same numbers, in strides by which torch keeps the format from layer to layer."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from wirelessfl.learning import Examples
from wirelessfl.learning.evaluation import evaluate
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.layout import arranged, image_format
from wirelessfl.learning.winograd import kernel

FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("layout", FORMATS, ids=str)
@pytest.mark.parametrize("given", FORMATS, ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_layers_keep_the_format(channels: int, given: torch.memory_format, layout: torch.memory_format) -> None:
    images = torch.randn(4, channels, 9, 8).contiguous(memory_format=given)
    found = arranged(images, layout)
    assert torch.equal(found, images)
    maps = functional.conv2d(found, torch.randn(5, channels, 3, 3))
    assert maps.is_contiguous(memory_format=layout)
    assert functional.max_pool2d(maps, 2).is_contiguous(memory_format=layout)


def test_images_in_the_format_are_not_copied() -> None:
    images = torch.randn(4, 1, 9, 8)
    for layout in FORMATS:
        assert arranged(images, layout).data_ptr() == images.data_ptr()
    part = torch.randn(4, 3, 9, 8)[:, 1:2]  # of one channel, but apart in memory
    assert torch.equal(arranged(part, torch.channels_last), part)


class Viewed(nn.Module):
    """A network that calls ``view`` on images, which wants them contiguous."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(channels, 8, 3), nn.Linear(8 * 36, 4)

    @override
    def forward(self, images: Tensor) -> Tensor:
        maps = self.convolution(images).relu()
        logits: Tensor = self.linear(maps.view(len(maps), -1))
        return logits


@pytest.mark.parametrize("channels", [1, 3])
def test_modules_that_do_not_take_channels_last_get_contiguous_images(channels: int) -> None:
    model = FlatModel(lambda: Viewed(channels), (channels, 8, 8), 4)
    assert image_format(model) == torch.contiguous_format
    examples = Examples(torch.randn(5, channels, 8, 8), torch.arange(5) % 4)
    logits = model.logits(model.initial(1), examples.inputs)
    expected = functional.cross_entropy(logits, examples.targets)
    assert evaluate(model, model.initial(1), examples).loss == pytest.approx(float(expected), rel=1e-5)


class Wide(nn.Module):
    """A network of more than 256 filters, whose convolutions are called in one way or another."""

    def __init__(self, calls: str) -> None:
        super().__init__()
        self.calls, self.first, self.wide = calls, nn.Conv2d(3, 64, 1), nn.Conv2d(64, 320, 3, padding=1)
        self.linear = nn.Linear(320, 4)

    @override
    def forward(self, images: Tensor) -> Tensor:
        assert images.any()  # it may refuse what no image is
        maps = self.first(images)
        if self.calls == "by name":
            maps = self.wide(input=maps)
        elif self.calls == "as a function":
            maps = functional.conv2d(maps, self.wide.weight, self.wide.bias, padding=[1])
        elif self.calls == "never":
            maps = self.wide.weight.mean((1, 2, 3))[:, None, None] * maps.mean(1, keepdim=True)
        else:
            maps = self.wide(maps)
        logits: Tensor = self.linear(maps.mean((2, 3)))
        return logits


@pytest.mark.skipif(kernel() is None, reason="the kernel was not compiled, or not for this processor")
@pytest.mark.parametrize(
    ("calls", "layout"),
    [
        ("as a module", torch.channels_last),
        ("by name", torch.channels_last),
        ("as a function", torch.contiguous_format),  # with a list of one number, which is left to torch
        ("never", torch.contiguous_format),
    ],
)
def test_wide_networks_are_in_channels_last_where_they_are_filtered(calls: str, layout: torch.memory_format) -> None:
    model = FlatModel(lambda: Wide(calls), (3, 16, 16), 4)
    before = torch.get_rng_state()
    assert image_format(model) == layout
    assert torch.equal(torch.get_rng_state(), before)
