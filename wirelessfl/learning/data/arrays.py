"""A dataset of one's own in a NumPy archive."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of, in_single_precision

_WHOLE, _TRAIN, _TEST = (
    ("x", "y", "owners"),
    ("x_train", "y_train", "owners_train"),
    ("x_test", "y_test", "owners_test"),
)
# What NumPy and zipfile raise of other files, of damaged streams, and of archives with a password
_NO_ARCHIVE = (
    *(ValueError, EOFError, AttributeError, TypeError, RuntimeError, NotImplementedError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
_ALLOWED = "x and y, or x_train, y_train, x_test and y_test, each also with owners"


def load_arrays(file: str | Path, split_seed: int = 0) -> Dataset:
    """A dataset from an NPZ file.

    Inputs are (N, *feature); unsigned bytes, as of images, are divided by 255, other numbers are taken as they are.
    Labels are whole numbers from 0 on, or words, and owners whole numbers or words. Arrays of Python objects are not
    read.

    Args:
        file: With the arrays ``x``, ``y`` and, if known, ``owners``, of which a fifth is the test half; or with both
            halves, as ``x_train``, ``y_train``, ``owners_train``, ``x_test``, ``y_test`` and ``owners_test``.
        split_seed: Decides which samples are the test half where the file has none.

    Raises:
        DataError: no such archive, or arrays that do not go together.
    """
    path = Path(file)
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _NO_ARCHIVE as error:
        raise DataError(f"{path}: not an NPZ file of plain arrays; allowed: {_ALLOWED}") from error
    unknown = found.keys() - {*_WHOLE, *_TRAIN, *_TEST}
    precondition(not unknown, f"{path}: has an array {min(unknown, default='')!r}; allowed: {_ALLOWED}", DataError)
    halves = [_WHOLE] if "x_train" not in found else [_TRAIN, _TEST] if "x_test" in found else [_TRAIN]
    beside = found.keys() - {name for names in halves for name in names}
    words = f"{min(beside, default='')} beside {halves[0][0]}"
    precondition(not beside, f"{path}: has {words}; allowed: {_ALLOWED}", DataError)
    first, *second = (_half(path, found, names) for names in halves)
    return dataset_of("arrays", first, second[0] if second else None, split_seed)


def _half(path: Path, found: Mapping[str, NDArray[Any]], names: tuple[str, str, str]) -> Half:
    inputs_name, labels_name, owners_name = names
    for name in (inputs_name, labels_name):
        precondition(name in found, f"{path}: lacks the array {name}; allowed: {_ALLOWED}", DataError)
    inputs, labels, owners = found[inputs_name], found[labels_name], found.get(owners_name)
    precondition(
        inputs.ndim >= 2 and inputs.dtype.kind in "iufb",
        f"{path}: {inputs_name} is {inputs.dtype} of shape {inputs.shape}; allowed: real numbers (N, features...)",
        DataError,
    )
    for name, column in ((labels_name, labels), (owners_name, owners)):
        precondition(
            column is None or column.ndim == 1, f"{path}: {name} has several dimensions; allowed: one, (N,)", DataError
        )
    scale = np.float32(255 if inputs.dtype == np.uint8 else 1)
    return Half(in_single_precision(inputs) / scale, labels, owners, str(path))
