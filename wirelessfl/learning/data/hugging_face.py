"""A dataset that the library ``datasets`` of Hugging Face has saved on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of


def load_hugging_face(
    root: str | Path,
    input: str = "image",
    label: str = "label",
    owner: str | None = None,
    split_seed: int = 0,
) -> Dataset:
    """A dataset from the folder that ``Dataset.save_to_disk`` or ``DatasetDict.save_to_disk`` wrote.

    Images become (channels, height, width) from 0 to 1; lists of numbers are taken as they are.

    Args:
        root: The folder.
        input: Column of the inputs, images or lists of numbers of one shape.
        label: Column of the labels.
        owner: Column of the owners; None where there is none.
        split_seed: Decides which samples are the test half where the folder has no split ``test``.

    Raises:
        DataError: no such folder, a missing column, or the library is not installed.
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
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{root}: not a folder that save_to_disk wrote: {error}") from error
    splits = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"train": loaded}
    precondition("train" in splits, f"{root}: has the splits {', '.join(splits)}; allowed: train, and test", DataError)
    train, test = (
        _half(f"{root}/{one}", splits[one], input, label, owner) if one in splits else None for one in ("train", "test")
    )
    assert train is not None
    return dataset_of("hugging_face", train, test, split_seed)


def _half(where: str, split: Any, column: str, label: str, owner: str | None) -> Half:
    named = {"input": column, "label": label, **({} if owner is None else {"owner": owner})}
    for key, name in named.items():
        precondition(
            name in split.column_names,
            f"{key}: found {name!r}, which {where} has not; allowed: one of its columns, "
            f"{', '.join(split.column_names)}",
            DataError,
        )
    try:
        inputs = np.stack([_numbers(one) for one in split[column]])
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where}: column {column!r} holds no images or lists of numbers of one shape: {error}"
        ) from error
    labels = np.array(split[label])
    return Half(inputs, labels, None if owner is None else np.array(split[owner]), where)


def _numbers(value: Any) -> NDArray[np.float32]:
    array = np.asarray(value)
    if array.dtype == np.uint8 and array.ndim in (2, 3) and hasattr(value, "getbands"):  # an image of Pillow
        image: NDArray[np.float32] = array.astype(np.float32) / np.float32(255)
        return image[None] if array.ndim == 2 else np.ascontiguousarray(image.transpose(2, 0, 1))
    return np.atleast_1d(array.astype(np.float32))
