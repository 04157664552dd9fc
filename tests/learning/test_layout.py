"""Memory formats of images: the same numbers, in strides by which torch keeps the format from layer to layer."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from wirelessfl.learning.layout import arranged

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
