"""Splits, class filter and limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.errors import DataError
from wirelessfl.learning.data import Dataset, Examples, stratified_split
from wirelessfl.learning.data.examples import from_halves


def examples(labels: list[int]) -> Examples:
    """One-number inputs that say which row they are."""
    return Examples(torch.arange(float(len(labels)))[:, None], torch.tensor(labels))


DATASET = Dataset("toy", examples([0, 1, 2, 1, 0]), examples([2, 1, 0]), ("a", "b", "c"), np.array([7, 7, 8, 9, 9]))


@given(
    targets=st.lists(st.integers(0, 5), min_size=1, max_size=60),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_split_is_stratified_and_covers(targets: list[int], share: float, seed: int) -> None:
    labels = np.array(targets)
    train, test = stratified_split(labels, share, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert list(train) == sorted(train)
    assert list(test) == sorted(test)
    for label in set(targets):
        assert np.count_nonzero(labels[test] == label) == round(share * targets.count(label))


def test_split_depends_on_its_seed_alone() -> None:
    labels = np.arange(1000) % 10
    first, again, other = (stratified_split(labels, 0.2, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_two_halves_are_kept_and_one_is_divided() -> None:
    train, test = examples([0] * 5 + [1] * 5), examples([1])
    assert from_halves("toy", train, test, ("a", "b"), 0).test is test
    alone = from_halves("toy", None, train, ("a", "b"), 0)
    assert torch.bincount(alone.train.targets).tolist() == [4, 4]
    assert torch.bincount(alone.test.targets).tolist() == [1, 1]
    with pytest.raises(ValueError, match="one half"):
        from_halves("toy", None, None, ("a", "b"), 0)


@pytest.mark.parametrize("classes", [["c", "a"], [2, 0], [2, "a"]])
def test_class_filter_labels_anew_in_the_order_given(classes: list[int | str]) -> None:
    some = DATASET.only(classes)
    assert some.class_names == ("c", "a")
    assert some.num_classes == 2
    assert some.train.targets.tolist() == [1, 0, 1]
    assert some.train.inputs.flatten().tolist() == [0.0, 2.0, 4.0]
    assert some.test.targets.tolist() == [0, 1]
    assert some.owners is not None
    assert some.owners.tolist() == [7, 8, 9]


@pytest.mark.parametrize("classes", [[], ["a", "a"], ["a", 0], ["d"], [3], [-1], [True], [1.0]])
def test_class_filter_refuses(classes: list[int | str]) -> None:
    with pytest.raises(DataError, match=r"data\.dataset\.classes"):
        DATASET.only(classes)


def test_class_filter_needs_every_class_to_train_and_some_to_test() -> None:
    lopsided = Dataset("toy", examples([0, 1]), examples([0, 2]), ("a", "b", "c"))
    with pytest.raises(DataError, match="no test sample of b"):
        lopsided.only(["b"])
    with pytest.raises(DataError, match="no training sample of c in toy; allowed"):
        lopsided.only(["a", "c"])
    assert lopsided.only(["b", "a"]).test.targets.tolist() == [1]


def test_limit_takes_the_first_training_samples_and_frees_the_rest() -> None:
    head = DATASET.head(2)
    assert head.train.inputs.flatten().tolist() == [0.0, 1.0]
    assert head.train.inputs.untyped_storage().nbytes() == 2 * 4
    assert head.test is DATASET.test
    assert head.owners is not None
    assert head.owners.tolist() == [7, 7]
    assert len(DATASET.head(5).train) == len(DATASET.head(6).train) == 5
    with pytest.raises(ValueError, match="limit"):
        DATASET.head(0)


@pytest.mark.parametrize(
    ("inputs", "targets", "says"),
    [
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64), "as many targets"),
        (torch.zeros(3, 2), torch.zeros(3, 1, dtype=torch.int64), "as many targets"),
        (torch.zeros(3, 2, dtype=torch.float64), torch.zeros(3, dtype=torch.int64), "float32"),
        (torch.zeros(3, 2), torch.zeros(3), "int64"),
    ],
)
def test_examples_refuse_what_does_not_fit(inputs: torch.Tensor, targets: torch.Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Examples(inputs, targets)


def test_moving_to_the_same_device_copies_nothing() -> None:
    assert DATASET.to("cpu").train.inputs is DATASET.train.inputs
