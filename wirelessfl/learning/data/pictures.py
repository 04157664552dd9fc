"""Pixels of images as Pillow opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

if TYPE_CHECKING:
    from PIL.Image import Image

_GREY = ("1", "L", "LA")
_GREY_OF_16_BITS = ("I;16", "I;16L", "I;16B")
_COLOURS = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


def is_grey(image: Image) -> bool:
    """Whether an image has luminance alone, with or without transparency.

    Raises:
        ValueError: it has pixels of another kind, 32-bit numbers for instance, whose white is not known.
    """
    allowed = (*_GREY, *_GREY_OF_16_BITS, *_COLOURS)
    precondition(image.mode in allowed, f"pixels of the mode {image.mode}; allowed: {', '.join(allowed)}")
    return image.mode not in _COLOURS


def pixels(image: Image, grey: bool, side: int | None = None) -> NDArray[np.float32]:
    """Pixels (1 or 3, height, width) of an image, black 0 and white 1, without transparency.

    Args:
        image: Of 1, 8 or 16 bits, or with a palette; of an animation the picture at which it stands, at first the
            first. The orientation that a camera has noted (EXIF) is left as it is.
        grey: Whether colours become luminance (ITU-R 601-2); otherwise grey becomes three equal colours.
        side: Of the square that it is scaled to, by bilinear interpolation; None leaves its size.

    Raises:
        ValueError: as `is_grey`.
        OSError: it is damaged.
    """
    from PIL import Image as pillow  # an optional extra

    whole_grey = is_grey(image)
    if image.mode in _GREY_OF_16_BITS:  # which Pillow would cut off at 255
        plain = pillow.fromarray(np.asarray(image).astype(np.float32) / np.float32(65_535))
        white = 1
    else:
        plain = image.convert("L" if grey or whole_grey else "RGB")
        white = 255
    if side is not None:
        plain = plain.resize((side, side), pillow.Resampling.BILINEAR)
    values = np.asarray(plain, dtype=np.float32) / np.float32(white)
    channels = values[None] if values.ndim == 2 else np.ascontiguousarray(values.transpose(2, 0, 1))
    return channels if grey or not whole_grey else np.repeat(channels, 3, axis=0)
