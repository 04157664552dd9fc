"""A dataset of one's own in folders of images, one folder a class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of
from wirelessfl.learning.data.pictures import pixels

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
"""Of files that count as images."""


def load_image_folder(root: str | Path, size: int = 32, grey: bool = False, split_seed: int = 0) -> Dataset:
    """Images (N, 3 or 1, size, size) with values from 0 to 1, of files in one folder for each class.

    The folders lie in ``root/train`` and ``root/test``, and others beside these are not read, or in ``root`` itself, of
    which a fifth is then the test half. Classes are numbered in the alphabetical order of their folders. Files in
    folders below these count as well; those whose names begin with a dot do not, nor do such folders. Images are scaled
    to a square by bilinear interpolation; transparency is dropped, animations count as their first picture, and the
    orientation that a camera has noted (EXIF) is left as it is.

    Args:
        root: The folder.
        size: Side of the images in pixels.
        grey: Whether colours become one channel of luminance (ITU-R 601-2).
        split_seed: Decides which images are the test half where there is no folder of it.

    Raises:
        DataError: no images, or a file that is none; or Pillow is not installed.
    """
    precondition(size >= 1, f"size: found {size}; allowed: at least 1 pixel", DataError)
    folder = Path(root)
    halves = {name: folder / name for name in ("train", "test") if (folder / name).is_dir()}
    alone = "test" in halves and "train" not in halves and bool(_folders(halves["test"]))
    precondition(
        not alone, f"{folder}: has a folder test with folders in it and none train; allowed: train and test", DataError
    )
    train = _read(halves.get("train", folder), size, grey)
    test = _read(halves["test"], size, grey) if len(halves) == 2 else None
    return dataset_of("image_folder", train, test, split_seed)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _images(folder: Path) -> Iterator[Path]:
    # Image files in a folder and below, in no order
    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror or error}") from error

    for place, below, names in os.walk(folder, onerror=refuse):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and name.lower().endswith(ENDINGS):
                yield Path(place, name)


def _read(folder: Path, size: int, grey: bool) -> Half:
    classes = {one: sorted(_images(one)) for one in _folders(folder)}
    wanted = f"one folder for each class, with files {' '.join(ENDINGS)}"
    precondition(classes, f"{folder}: holds no images; allowed: {wanted}", DataError)
    for one, paths in classes.items():
        precondition(paths, f"{one}: holds no images; allowed: {wanted}", DataError)
    images = np.stack([_pixels(path, size, grey) for paths in classes.values() for path in paths])
    labels = [one.name for one, paths in classes.items() for _ in paths]
    return Half(images, np.array(labels), None, str(folder))


def _pixels(path: Path, size: int, grey: bool) -> NDArray[np.float32]:
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            "data.dataset.name: found image_folder without Pillow; allowed: once it is installed: pip install pillow"
        ) from error
    try:
        with Image.open(path) as image:
            return pixels(image, grey, size)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: not a readable image: {error}") from error
