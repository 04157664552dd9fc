"""Street View House Numbers from its MATLAB files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset, Examples, from_halves
from wirelessfl.learning.data.files import data_roots, find_files, halves_of_first, normalised, not_found, unpacked

FOLDERS = ("SVHN", ".")
TRAIN, TEST = "train_32x32.mat", "test_32x32.mat"
CLASS_NAMES = tuple("0123456789")

# Of the red, green and blue of all training pixels, black 0 and white 1, as its users give them.
MEAN = (0.4377, 0.4438, 0.4728)
STD = (0.1980, 0.2010, 0.1970)


def load_svhn(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """SVHN, 73,257 + 26,032 cropped house numbers (Netzer et al. 2011), inputs (N, 3, 32, 32).

    The files call the digit 0 class 10; here it is class 0.

    Raises:
        DataError: neither file is there, or one is damaged.
    """
    roots = data_roots(root, "svhn")
    halves = halves_of_first(roots, _half, (TRAIN, TEST))
    if halves is None:
        raise not_found("svhn", roots, FOLDERS, [TRAIN, TEST])
    return from_halves("svhn", *halves, CLASS_NAMES, split_seed)


def _half(root: Path, name: str) -> Examples | None:
    paths = find_files(root, FOLDERS, [name])
    return None if paths is None else _read(paths[0])


def _read(path: Path) -> Examples:
    from scipy.io import loadmat  # a tenth of a second, and most runs read no such file

    file = io.BytesIO(unpacked(path))
    try:
        content = loadmat(file, variable_names=["X", "y"])
    except Exception as error:  # damage surfaces in the reader under many names
        raise DataError(f"{path}: not a readable MATLAB file") from error
    images, labels = content.get("X"), content.get("y")
    precondition(
        images is not None
        and images.dtype == np.uint8
        and images.ndim == 4
        and images.shape[:3] == (32, 32, 3)
        and images.shape[3] > 0,
        f"{path}: not a file of SVHN: X must be unsigned bytes of shape (32, 32, 3, N), N at least 1",
        DataError,
    )
    precondition(
        labels is not None and labels.size == images.shape[3] and labels.dtype.kind in "iu",
        f"{path}: not a file of SVHN: y must be {images.shape[3]} numbers, one for each image",
        DataError,
    )
    digits = labels.astype(np.int64).ravel()
    precondition(digits.min() >= 1 and digits.max() <= 10, f"{path}: y must hold the numbers 1 to 10", DataError)
    mean, std = (255 * torch.tensor(constants) for constants in (MEAN, STD))
    return Examples(normalised(images.transpose(3, 2, 0, 1), mean, std), torch.from_numpy(digits % 10))
