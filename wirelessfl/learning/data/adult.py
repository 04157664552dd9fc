"""UCI Adult: does a person earn more than 50,000 dollars a year? 32,561 + 16,281 rows of the 1994 census."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import DataError
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.learning.data.files import data_root, find_files, not_found

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
CLASS_NAMES = ("<=50K", ">50K")
FOLDERS = ("adult", "Adult", ".")
FILES = ("adult.data", "adult.test")

Table = dict[str, NDArray[np.str_]]


def load_adult(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """Adult as numbers, inputs (N, 107) with the published files: 5 numeric features, then 102 indicators.

    Numeric features are standardised with mean and standard deviation of the training file. Each categorical one
    becomes one indicator a category of the training file, in alphabetical order; a missing entry ("?") is a category
    of its own, one that only the test file knows has no indicator set. ``fnlwgt`` is left out: it says how many people
    a row stands for, nothing about the person. The published division is kept, so ``split_seed`` changes nothing.

    Raises:
        DataError: files are missing or hold a row that is not of this form.
    """
    folder = data_root(root, "adult")
    paths = find_files(folder, FOLDERS, FILES)
    if paths is None:
        raise not_found("adult", folder, FOLDERS, FILES)
    return _encoded(*((path, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=1)
def _encoded(train_file: tuple[Path, int], test_file: tuple[Path, int]) -> Dataset:
    """The dataset of two files, each with the time of its last change: the many runs of a study read them once."""
    paths = (train_file[0], test_file[0])
    train, test = read_table(paths[0]), read_table(paths[1])
    train_inputs, test_inputs = [], []
    for name in NUMERIC:
        known, unseen = _numbers(train[name], name, paths[0]), _numbers(test[name], name, paths[1])
        mean, std = known.mean(), known.std() or 1.0
        train_inputs.append(((known - mean) / std)[:, None])
        test_inputs.append(((unseen - mean) / std)[:, None])
    for name in CATEGORICAL:
        categories = np.unique(train[name])
        train_inputs.append(train[name][:, None] == categories)
        test_inputs.append(test[name][:, None] == categories)
    return Dataset("adult", _examples(train_inputs, train), _examples(test_inputs, test), CLASS_NAMES)


def read_table(path: Path) -> Table:
    """The columns of one file as text; ``income`` without the full stop that the test file sets behind it.

    Raises:
        DataError: unreadable, empty, or a line without 15 fields or with an unknown income.
    """
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("|"):  # the test file opens with a remark
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            raise DataError(f"{path}, line {number}: {len(COLUMNS)} fields are needed, found {len(fields)}")
        fields[-1] = fields[-1].removesuffix(".")
        if fields[-1] not in CLASS_NAMES:
            raise DataError(f"{path}, line {number}: income is {' or '.join(CLASS_NAMES)}, found {fields[-1]!r}")
        rows.append(fields)
    if not rows:
        raise DataError(f"{path}: holds no rows")
    return dict(zip(COLUMNS, np.array(rows).T, strict=True))


def _numbers(column: NDArray[np.str_], name: str, path: Path) -> NDArray[np.float64]:
    try:
        values = column.astype(np.float64)
    except ValueError as error:
        raise DataError(f"{path}: {name} must be a number: {error}") from error
    if not np.isfinite(values).all():
        raise DataError(f"{path}: {name} must be finite")
    return values


def _examples(columns: list[NDArray[np.float64] | NDArray[np.bool_]], table: Table) -> Examples:
    inputs = torch.from_numpy(np.concatenate(columns, axis=1, dtype=np.float32))
    return Examples(inputs, torch.from_numpy((table["income"] == CLASS_NAMES[1]).astype(np.int64)))
