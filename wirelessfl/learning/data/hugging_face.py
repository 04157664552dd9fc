"""A dataset that the library ``datasets`` of Hugging Face has saved on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of, in_single_precision
from wirelessfl.learning.data.pictures import is_grey, pixels

_INPUTS = "images or lists of numbers"


def load_hugging_face(
    root: str | Path,
    input: str = "image",
    label: str = "label",
    owner: str | None = None,
    split_seed: int = 0,
) -> Dataset:
    """A dataset from the folder that ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote.

    Images become (channels, height, width) from 0 to 1 without transparency: one channel where all of both halves are
    grey, three otherwise. Lists of numbers are taken as they are. Other splits than train and test are not read.

    Args:
        root: The folder.
        input: Column of the inputs, images or lists of numbers of one shape.
        label: Column of the labels, whole numbers or words.
        owner: Column of the owners, whole numbers or words; None where there is none.
        split_seed: Decides which samples are the test half where the folder has no split ``test``.

    Raises:
        DataError: no such folder, a missing column or value, values of another kind, or the library is not installed.
    """
    try:
        import datasets  # an optional extra
    except ImportError as error:
        raise DataError(
            "data.dataset.name: found hugging_face without the library datasets; allowed: once it is installed: "
            "pip install 'wirelessfl[huggingface]'"
        ) from error
    try:
        loaded = datasets.load_from_disk(str(root))
        splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"train": loaded}
    except Exception as error:  # damage surfaces in the library under many names
        raise DataError(f"{root}: not a folder that save_to_disk wrote: {error or repr(error)}") from error
    precondition("train" in splits, f"{root}: has the splits {', '.join(splits)}; allowed: train, and test", DataError)
    columns = {"input": input, "label": label, **({} if owner is None else {"owner": owner})}
    read = [
        _split(f"{root}/{name}", splits[name].with_format(None), columns)
        for name in ("train", "test")
        if name in splits
    ]
    grey = all(one.grey for one in read)
    train, *test = (Half(_stacked(one, grey), one.labels, one.owners, one.where) for one in read)
    return dataset_of("hugging_face", train, test[0] if test else None, split_seed)


@dataclass(frozen=True, eq=False)
class _Split:
    """A split in memory.

    Attributes:
        where: Folder and name, for messages.
        column: Of the inputs.
        inputs: Of each sample; of images that are grey in one channel.
        images: Whether they are images.
        grey: Whether no image has colours; True of numbers.
        labels: (N,) whole numbers or words.
        owners: (N,) likewise; None without them.
    """

    where: str
    column: str
    inputs: list[NDArray[np.float32]]
    images: bool
    grey: bool
    labels: NDArray[Any]
    owners: NDArray[Any] | None


def _split(where: str, split: Any, columns: dict[str, str]) -> _Split:
    for key, name in columns.items():
        precondition(
            name in split.column_names,
            f"{key}: found {name!r}, which {where} has not; allowed: one of its columns, "
            f"{', '.join(split.column_names)}",
            DataError,
        )
    column, kinds, inputs, grey = columns["input"], set(), [], True
    for row, value in enumerate(_values(where, split, column)):
        place = f"{where}: row {row} (from 0) has in column {column!r}"
        kinds.add(hasattr(value, "getbands"))
        precondition(len(kinds) == 1, f"{place} another kind than before it; allowed: {_INPUTS}, not both", DataError)
        try:
            own_grey = not hasattr(value, "getbands") or is_grey(value)
            inputs.append(pixels(value, own_grey) if hasattr(value, "getbands") else _numbers(value))
        except (TypeError, ValueError, OSError, SyntaxError) as error:
            raise DataError(f"{place} what is none of {_INPUTS}: {error}") from error
        grey &= own_grey
    labels, owners = _plain(where, split, columns["label"]), None
    if "owner" in columns:
        owners = _plain(where, split, columns["owner"])
    return _Split(where, column, inputs, kinds == {True}, grey, labels, owners)


def _values(where: str, split: Any, column: str) -> Iterator[Any]:
    # The values of a column, none of which is missing
    row = 0
    try:
        for value in split[column]:
            precondition(
                value is not None,
                f"{where}: row {row} (from 0) has no value in column {column!r}; allowed: a value in every row",
                DataError,
            )
            yield value
            row += 1
    except DataError:
        raise
    except Exception as error:  # an image that cannot be decoded surfaces under many names, in some versions at once
        raise DataError(
            f"{where}: row {row} (from 0), or one behind it, cannot be decoded in column {column!r}: "
            f"{error or repr(error)}; allowed: values that can"
        ) from error


def _numbers(value: Any) -> NDArray[np.float32]:
    array = np.asarray(value)
    precondition(array.dtype.kind in "iufb", f"{str(value)[:40]!r}, of the type {array.dtype}")
    return np.atleast_1d(in_single_precision(array))


def _plain(where: str, split: Any, column: str) -> NDArray[Any]:
    # Labels or owners
    values = list(_values(where, split, column))
    for row, value in enumerate(values):
        precondition(
            isinstance(value, int | str),
            f"{where}: row {row} (from 0) has {str(value)[:40]!r} in column {column!r}; allowed: whole numbers, words",
            DataError,
        )
    return np.array(values)


def _stacked(split: _Split, grey: bool) -> NDArray[np.float32]:
    # (N, *feature) inputs of one shape; grey images beside colours have three equal ones
    inputs = split.inputs
    if split.images and not grey:
        inputs = [np.repeat(one, 3, axis=0) if len(one) == 1 else one for one in inputs]
    for row, one in enumerate(inputs):
        precondition(
            one.shape == inputs[0].shape,
            f"{split.where}: row {row} (from 0) has inputs of shape {one.shape} in column {split.column!r}; allowed: "
            f"{inputs[0].shape}, as in row 0",
            DataError,
        )
    precondition(inputs, f"{split.where}: holds no sample; allowed: one row at least", DataError)
    return np.stack(inputs)
