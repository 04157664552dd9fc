"""Halves of a dataset of one's own: labels and owners in numbers or words, with or without a test half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import TEST_SHARE, Dataset, Examples, stratified_split

_MOST_CLASSES = 100_000


@dataclass(frozen=True, eq=False)
class Half:
    """Samples as a file has them.

    Attributes:
        inputs: (N, *feature) float32.
        labels: (N,) whole numbers from 0 on, or words.
        owners: (N,) whole numbers or words; None where none are known.
        where: File, for messages.
    """

    inputs: NDArray[np.float32]
    labels: NDArray[Any]
    owners: NDArray[Any] | None
    where: str

    def __post_init__(self) -> None:
        count = len(self.inputs)
        precondition(count, f"{self.where}: holds no sample", DataError)
        for what, column in (("labels", self.labels), ("owners", self.owners)):
            found = count if column is None else len(column)
            precondition(
                found == count, f"{self.where}: {found} {what} for {count} inputs; allowed: one for each", DataError
            )
            kind = "u" if column is None else column.dtype.kind
            precondition(
                kind in "iubU",
                f"{self.where}: {what} of the type {None if column is None else column.dtype}; allowed: whole numbers"
                f"{' from 0 on' if what == 'labels' else ''}, or words",
                DataError,
            )
        shape = self.inputs.shape[1:]
        precondition(0 not in shape, f"{self.where}: inputs of shape {shape}; allowed: one feature at least", DataError)
        finite = np.isfinite(self.inputs.reshape(count, -1)).all(axis=1)
        precondition(
            finite.all(),
            f"{self.where}: sample {int(np.argmin(finite))} (from 0) has a value that is not finite; "
            "allowed: finite numbers of single precision",
            DataError,
        )


def in_single_precision(inputs: NDArray[Any]) -> NDArray[np.float32]:
    """The inputs as float32; numbers beyond it are infinite, and `Half` refuses them."""
    with np.errstate(over="ignore"):
        return inputs.astype(np.float32)


def dataset_of(
    name: str, train: Half, test: Half | None, split_seed: int, vocabulary: tuple[str, ...] | None = None
) -> Dataset:
    """The dataset of two halves, or of one that is divided by `stratified_split`.

    Labels that are whole numbers are the classes; words are numbered in their alphabetical order. Owners get the
    numbers of their order, those of both halves together.

    Args:
        name: The dataset.
        train: Its training half, or all samples.
        test: Its test half; None has a fifth of every class taken out of the other.
        split_seed: Decides which samples that are.
        vocabulary: Words or letters whose numbers the inputs are; None for inputs that are quantities.

    Raises:
        DataError: the halves do not go together, or have labels that are neither numbers from 0 nor words.
    """
    halves = [train] if test is None else [train, test]
    shapes = {half.inputs.shape[1:] for half in halves}
    precondition(
        len(shapes) == 1,
        f"{halves[-1].where}: inputs of shape {test and test.inputs.shape[1:]}; allowed: {train.inputs.shape[1:]}, "
        f"as in {train.where}",
        DataError,
    )
    targets, names = _classes(halves)
    owners = _numbered([half.owners for half in halves])
    parts = [
        Examples(torch.from_numpy(half.inputs), torch.from_numpy(own))
        for half, own in zip(halves, targets, strict=True)
    ]
    if test is not None:
        return Dataset(name, parts[0], parts[1], names, owners[0], owners[1], vocabulary)
    whole, known = parts[0], owners[0]
    rows = stratified_split(targets[0], TEST_SHARE, split_seed)
    precondition(
        len(rows[1]),
        f"{train.where}: too few samples of each class for a test half; allowed: more, or a test half",
        DataError,
    )
    train_owners, test_owners = (None if known is None else known[half] for half in rows)
    return Dataset(name, whole.take(rows[0]), whole.take(rows[1]), names, train_owners, test_owners, vocabulary)


def _classes(halves: list[Half]) -> tuple[list[NDArray[np.int64]], tuple[str, ...]]:
    # Class of each sample of each half, and the names of the classes
    kinds = ["words" if half.labels.dtype.kind == "U" else "numbers" for half in halves]
    precondition(
        len(set(kinds)) == 1,
        f"{halves[-1].where}: labels of the test half that are {kinds[-1]}; allowed: {kinds[0]}, as in the other",
        DataError,
    )
    if kinds[0] == "words":
        names, number = np.unique(np.concatenate([half.labels for half in halves]), return_inverse=True)
        cuts = np.cumsum([len(half.labels) for half in halves])[:-1]
        return [part.astype(np.int64) for part in np.split(number, cuts)], tuple(names.tolist())
    most = 0
    for half in halves:
        low, high = int(half.labels.min()), int(half.labels.max())
        precondition(
            low >= 0 and high < _MOST_CLASSES,
            f"{half.where}: labels from {low} to {high}; allowed: whole numbers from 0 to {_MOST_CLASSES - 1}",
            DataError,
        )
        most = max(most, high)
    return [half.labels.astype(np.int64) for half in halves], tuple(map(str, range(most + 1)))


def _numbered(owners: list[NDArray[Any] | None]) -> list[NDArray[np.int64] | None]:
    # Number of the owner of each sample of each half
    kinds = {half.dtype.kind for half in owners if half is not None}
    if not kinds:
        return [None] * len(owners)
    # NumPy would round whole numbers of two types to floating point, and merge owners
    common = str if "U" in kinds else object if len(kinds) > 1 else None
    alike = [half if half is None or common is None else half.astype(common) for half in owners]
    distinct = np.unique(np.concatenate([half for half in alike if half is not None]))
    return [None if half is None else np.searchsorted(distinct, half).astype(np.int64) for half in alike]
