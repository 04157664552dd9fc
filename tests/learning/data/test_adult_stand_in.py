"""The rows that stand in for Adult have its form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from wirelessfl.learning.data import load_adult, load_adult_stand_in
from wirelessfl.learning.data.adult import CATEGORIES, LARGEST_AMOUNT, LIMITS, NUMERIC


def test_the_form_is_that_of_the_published_files(shared_data: Path) -> None:
    real, rows = load_adult(shared_data), load_adult_stand_in()
    assert rows.name == real.name and rows.class_names == real.class_names
    for half in ("train", "test"):
        drawn, published = getattr(rows, half), getattr(real, half)
        assert drawn.inputs.shape == published.inputs.shape
        assert drawn.inputs.dtype == published.inputs.dtype and drawn.targets.dtype == published.targets.dtype
    assert int(rows.train.targets.sum()) == int(real.train.targets.sum())


def test_every_row_has_one_category_of_each_column() -> None:
    rows = load_adult_stand_in()
    indicators = torch.cat([rows.train.inputs, rows.test.inputs])[:, len(NUMERIC) :]
    assert set(np.unique(indicators.numpy()).tolist()) == {0.0, 1.0}
    for part in np.split(indicators.numpy(), np.cumsum([len(names) for names in CATEGORIES.values()])[:-1], axis=1):
        assert (part.sum(axis=1) == 1).all() and (part.sum(axis=0) > 0).all()


def test_rows_follow_the_split_seed_alone() -> None:
    one, same, other = load_adult_stand_in(3), load_adult_stand_in(3), load_adult_stand_in(4)
    assert torch.equal(one.train.inputs, same.train.inputs) and torch.equal(one.test.targets, same.test.targets)
    assert not torch.equal(one.train.inputs, other.train.inputs)


def test_there_is_something_to_learn() -> None:
    """Least squares on the training half tells the test half apart better than always saying no, right in 76 %."""
    rows = load_adult_stand_in()
    inputs = torch.cat([rows.train.inputs, torch.ones(len(rows.train), 1)], dim=1).double()
    weights = torch.linalg.lstsq(inputs, rows.train.targets.double()[:, None], driver="gelsd").solution
    test = torch.cat([rows.test.inputs, torch.ones(len(rows.test), 1)], dim=1).double()
    right = ((test @ weights)[:, 0] > 0.5).long() == rows.test.targets
    assert right.double().mean() > 0.8


def test_the_form_without_scaling_and_with_the_weight(shared_data: Path) -> None:
    """The range of each number is that of the files; labels and the other columns do not change."""
    real = load_adult(shared_data, fnlwgt=True, scaling="none")
    rows, plain = load_adult_stand_in(fnlwgt=True, scaling="none"), load_adult_stand_in()
    assert rows.train.inputs.shape == real.train.inputs.shape and torch.equal(rows.test.targets, plain.test.targets)
    assert torch.equal(rows.train.inputs[:, len(NUMERIC) + 1 :], plain.train.inputs[:, len(NUMERIC) :])
    for column, name in enumerate((*NUMERIC, "fnlwgt")):
        values = rows.train.inputs[:, column]
        low, high = LIMITS.get(name, (0.0, LARGEST_AMOUNT.get(name, 0.0)))
        assert low <= values.min() and values.max() <= high and values.std() > 0.1 * real.train.inputs[:, column].std()
