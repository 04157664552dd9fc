"""A dataset of one's own in folders of images, one folder a class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
"""Of files that count as images."""


def load_image_folder(root: str | Path, size: int = 32, grey: bool = False, split_seed: int = 0) -> Dataset:
    """Images (N, 3 or 1, size, size) with values from 0 to 1, of files in one folder for each class.

    The folders lie in ``root/train`` and ``root/test``, or in ``root`` itself, of which a fifth is then the test half.
    Images are scaled to a square by bilinear interpolation; transparency is dropped.

    Args:
        root: The folder.
        size: Side of the images in pixels.
        grey: Whether colours become one channel of luminance (ITU-R 601-2).
        split_seed: Decides which images are the test half where there is no folder of it.

    Raises:
        DataError: no images, or a file that is none; or Pillow is not installed.
    """
    folder = Path(root)
    halves = [folder / half for half in ("train", "test") if (folder / half).is_dir()]
    if halves and halves[0].name == "train":
        read = [_read(half, size, grey) for half in halves]
    else:
        read = [_read(folder, size, grey)]
    return dataset_of("image_folder", read[0], read[1] if len(read) > 1 else None, split_seed)


def _read(folder: Path, size: int, grey: bool) -> Half:
    classes = sorted(one for one in folder.iterdir() if one.is_dir())
    files = [(path, one.name) for one in classes for path in sorted(one.rglob("*")) if path.suffix.lower() in ENDINGS]
    wanted = f"one folder for each class, with files {' '.join(ENDINGS)}"
    precondition(files, f"{folder}: holds no images; allowed: {wanted}", DataError)
    images = np.stack([_pixels(path, size, grey) for path, _ in files])
    return Half(images, np.array([name for _, name in files]), None, str(folder))


def _pixels(path: Path, size: int, grey: bool) -> NDArray[np.float32]:
    # (channels, size, size) of one image
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            "data.dataset.name: found image_folder without Pillow; allowed: once it is installed: pip install pillow"
        ) from error
    try:
        with Image.open(path) as image:
            scaled = image.convert("L" if grey else "RGB").resize((size, size), Image.Resampling.BILINEAR)
            pixels: NDArray[np.float32] = np.asarray(scaled, dtype=np.float32) / np.float32(255)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: not a readable image: {error}") from error
    return pixels[None] if grey else np.ascontiguousarray(pixels.transpose(2, 0, 1))
