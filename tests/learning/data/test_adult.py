"""Adult: features by hand, bad rows, the published files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from wirelessfl.errors import DataError
from wirelessfl.learning.data import load_adult
from wirelessfl.learning.data.adult import CATEGORIES, COLUMNS, LARGEST_AMOUNT, LIMITS, NUMERIC

YOUNG = "20, Private, 7, Masters, 14, Divorced, Sales, Wife, White, Female, 0, 0, 30, Cuba, <=50K"
OLD = "40, ?, 9, Masters, 14, Divorced, Sales, Wife, White, Female, 0, 0, 50, Cuba, >50K"
NEW = "30, Never-seen, 9, Masters, 16, Divorced, Sales, Wife, White, Female, 5, 0, 40, Cuba, >50K."


def write(folder: Path, train: str = f"{YOUNG}\n{OLD}\n\n", test: str = f"|1x3 Cross validator\n{NEW}\n") -> Path:
    (folder / "adult").mkdir(exist_ok=True)
    (folder / "adult" / "adult.data").write_text(train)
    (folder / "adult" / "adult.test").write_text(test)
    return folder


def test_features_by_hand(tmp_path: Path) -> None:
    dataset = load_adult(write(tmp_path))
    # Age 17 to 90, education 1 to 16, hours 1 to 99, each to −1 … 1; gain 5 of 99,999, by logarithms.
    young = [2 * 3 / 73 - 1, 2 * 13 / 15 - 1, 0, 0, 2 * 29 / 98 - 1]
    new = [2 * 13 / 73 - 1, 1, math.log(6) / math.log(100_000), 0, 2 * 39 / 98 - 1]
    assert dataset.train.inputs[0, :5].tolist() == pytest.approx(young, abs=1e-7)
    assert dataset.test.inputs[0, :5].tolist() == pytest.approx(new, abs=1e-7)
    names = [name for categories in CATEGORIES.values() for name in categories]
    chosen = [[names[i] for i in np.flatnonzero(row[5:])] for row in dataset.train.inputs.numpy()]
    rest = ["Masters", "Divorced", "Sales", "Wife", "White", "Female", "Cuba"]
    assert chosen == [["Private", *rest], ["?", *rest]]
    assert dataset.test.inputs[0, 5:].sum() == len(CATEGORIES) - 1  # Never-seen
    assert dataset.train.targets.tolist() == [0, 1]
    assert dataset.test.targets.tolist() == [1]


@pytest.mark.parametrize(
    "other", [OLD.replace("40,", "89,"), OLD.replace("Cuba", "Peru"), OLD.replace(" 0, 0,", " 9, 7,")]
)
def test_a_row_moves_no_input_but_its_own(tmp_path: Path, other: str) -> None:
    """One person exchanged for another, in the training file: everybody else's inputs keep their bits."""
    before = load_adult(write(tmp_path))
    after = load_adult(write(tmp_path, train=f"{YOUNG}\n{other}\n{YOUNG}"))
    assert torch.equal(before.train.inputs[0], after.train.inputs[0])
    assert torch.equal(before.test.inputs, after.test.inputs)
    assert not torch.equal(before.train.inputs[1], after.train.inputs[1])


def test_entries_beyond_the_limits_count_as_the_limits(tmp_path: Path) -> None:
    wild = YOUNG.replace("20,", "-3,").replace("14,", "99,").replace(" 0, 0, 30", " 1e300, -5, 1000")
    assert load_adult(write(tmp_path, train=wild)).train.inputs[0, :5].tolist() == [-1, 1, 1, 0, 1]


def test_the_weight_is_a_feature_where_it_is_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path)
    plain, weighted = load_adult(folder), load_adult(folder, fnlwgt=True)
    weights = weighted.train.inputs[:, len(NUMERIC)].tolist()
    assert weights == pytest.approx([math.log(1 + weight) / math.log(10_000_000) for weight in (7, 9)])
    rest = np.delete(weighted.train.inputs.numpy(), len(NUMERIC), axis=1)
    assert np.array_equal(rest, plain.train.inputs.numpy())


def test_numbers_stay_as_in_the_files_without_scaling(tmp_path: Path) -> None:
    wild = OLD.replace("40,", "200,")  # no limits either
    dataset = load_adult(write(tmp_path, train=f"{YOUNG}\n{wild}"), fnlwgt=True, scaling="none")
    assert dataset.train.inputs[:, :6].tolist() == [[20, 14, 0, 0, 30, 7], [200, 14, 0, 0, 50, 9]]
    assert torch.equal(dataset.train.inputs[:, 6:], load_adult(tmp_path).train.inputs[:, 5:])
    with pytest.raises(DataError, match="capital-gain has a number beyond single precision"):
        load_adult(write(tmp_path, train=YOUNG.replace(" 0, 0,", " 1e300, 0,")), scaling="none")


def test_every_column_but_weight_and_income_is_a_feature() -> None:
    assert set(NUMERIC) | set(CATEGORIES) == set(COLUMNS) - {"fnlwgt", "income"}
    assert set(LIMITS) | set(LARGEST_AMOUNT) == {*NUMERIC, "fnlwgt"}


def test_the_constants_are_those_of_the_documentation(shared_data: Path) -> None:
    """adult.names lists every category; "?" stands for what is unknown."""
    lines = (shared_data / "adult" / "adult.names").read_text().splitlines()
    listed = dict(line.rstrip(".").split(": ") for line in lines if ": " in line and not line.startswith("|"))
    assert {name for name, values in listed.items() if values != "continuous"} == set(CATEGORIES)
    for name, categories in CATEGORIES.items():
        assert set(listed[name].split(", ")) == set(categories) - {"?"}
        assert sorted(categories) == list(categories)
    assert any("AAGE>16" in line and "HRSWK>0" in line for line in lines)


@pytest.mark.parametrize(
    ("train", "says"),
    [
        ("", "holds no rows"),
        (YOUNG.replace(", Cuba", ""), "line 1: 15 fields are needed, found 14"),
        (f"{YOUNG}\n{OLD.replace('>50K', 'rich')}", "line 2: income is <=50K or >50K, found another word"),
        (YOUNG.replace("20,", "twenty,"), "age must be a number"),
        (YOUNG.replace("20,", "nan,"), "age must be finite"),
        (YOUNG.replace("Cuba", "Curaçao"), "cannot be read"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, train: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        load_adult(write(tmp_path, train))
    assert "adult.data" in str(caught.value)


def test_both_files_are_needed(tmp_path: Path) -> None:
    (write(tmp_path) / "adult" / "adult.test").unlink()
    with pytest.raises(DataError, match=r"adult\.data, adult\.test"):
        load_adult(tmp_path)


def test_the_published_files(shared_data: Path) -> None:
    dataset = load_adult(shared_data)
    assert (len(dataset.train), len(dataset.test)) == (32_561, 16_281)
    assert (int(dataset.train.targets.sum()), int(dataset.test.targets.sum())) == (7_841, 3_846)
    numeric, indicators = dataset.train.inputs[:, : len(NUMERIC)].double(), dataset.train.inputs[:, len(NUMERIC) :]
    assert numeric.min() >= -1 and numeric.max() <= 1
    assert set(np.unique(indicators.numpy()).tolist()) == {0.0, 1.0}
    assert (indicators.sum(1) == len(CATEGORIES)).all()
    assert (dataset.test.inputs[:, len(NUMERIC) :].sum(1) == len(CATEGORIES)).all()  # no category is new there
    # An independent count of the categories, straight from the file.
    lines = (shared_data / "adult" / "adult.data").read_text().split("\n")
    rows = [line.split(", ") for line in lines if line]
    categories = sum(len({row[COLUMNS.index(name)] for row in rows}) for name in CATEGORIES)
    assert dataset.feature_shape == (len(NUMERIC) + categories,) == (107,)


@pytest.mark.slow
def test_the_weights_of_the_published_files_have_seven_digits_at_most(shared_data: Path) -> None:
    """Beyond its limit a weight would count as the limit."""
    raw = load_adult(shared_data, fnlwgt=True, scaling="none")
    largest = max(float(half.inputs[:, len(NUMERIC)].max()) for half in (raw.train, raw.test))
    assert 1e6 < largest <= LARGEST_AMOUNT["fnlwgt"]
