"""Halves of a dataset of one's own: what labels and owners may be, and how they are numbered over both halves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of


def of_halves(labels: tuple[Any, Any], owners: tuple[Any, Any] = (None, None)) -> Dataset:
    halves = [
        Half(np.ones((len(own), 2), dtype=np.float32), np.array(own), None if of is None else np.array(of), where)
        for own, of, where in zip(labels, owners, ("train.file", "test.file"), strict=True)
    ]
    return dataset_of("own", halves[0], halves[1], 0)


def test_whole_numbers_of_two_types_stay_whole() -> None:
    """NumPy makes floating point of uint64 beside int64: labels were refused, and owners beyond 2^53 were merged."""
    large = 2**60
    labels = np.arange(4, dtype=np.uint64), np.arange(4, dtype=np.int64)
    owners = np.array([large + 2, large, large + 1, 3], dtype=np.uint64), np.array([large + 1, 3, -1, large + 2])
    dataset = of_halves(labels, owners)
    assert dataset.train.targets.tolist() == dataset.test.targets.tolist() == [0, 1, 2, 3]
    order = sorted({*map(int, owners[0]), *map(int, owners[1])})
    assert dataset.owners is not None and dataset.test_owners is not None
    assert dataset.owners.tolist() == [order.index(int(one)) for one in owners[0]]
    assert dataset.test_owners.tolist() == [order.index(int(one)) for one in owners[1]]


def test_owners_that_are_words_in_one_half_are_words_in_both() -> None:
    dataset = of_halves(([0, 1, 1], [0, 1]), ([10, 9, 10], ["9", "x"]))
    assert dataset.owners is not None and dataset.test_owners is not None
    assert (dataset.owners.tolist(), dataset.test_owners.tolist()) == ([0, 1, 0], [1, 2])


@pytest.mark.parametrize(
    ("labels", "owners", "says"),
    [
        (([0, 1, 10], ["0", "a"]), (None, None), "test.file: labels of the test half that are words; allowed: numbers"),
        ((["0", "a"], [0, 1]), (None, None), "test.file: labels of the test half that are numbers; allowed: words"),
        (([0, 1], [0, -1]), (None, None), "test.file: labels from -1 to 0; allowed: whole numbers from 0"),
        (([0, 1], [0, 1.0]), (None, None), "test.file: labels of the type float64; allowed: whole numbers from 0"),
        (([0, None], [0, 1]), (None, None), "train.file: labels of the type object; allowed: whole numbers from 0"),
        (([0, 1], [0, 1]), ([np.nan, 1.0], None), "train.file: owners of the type float64; allowed: whole numbers, or"),
        (([0, 1], [0, 1]), ([0, 1], [b"a", b"b"]), r"test.file: owners of the type \|S1; allowed: whole numbers, or"),
        (([0, 1], [0, 1]), (None, np.full(2, np.datetime64("2020"))), "test.file: owners of the type datetime64"),
    ],
)
def test_labels_and_owners_of_other_kinds_are_refused(labels: Any, owners: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        of_halves(labels, owners)


@pytest.mark.parametrize("shape", [(4, 0), (4, 3, 0)])
def test_inputs_without_a_feature_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"a\.file: inputs of shape .*0.*; allowed: one feature at least"):
        Half(np.ones(shape, dtype=np.float32), np.arange(4), None, "a.file")
