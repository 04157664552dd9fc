"""Adult: features by hand, bad rows, the published files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.data import load_adult
from wirelessfl.learning.data.adult import CATEGORICAL, COLUMNS, NUMERIC

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
    # Age 20, 40: mean 30, std 10; education-num, gain, loss constant: std taken as 1; hours 30, 50: mean 40, std 10.
    # Then workclass "?" and "Private", and one indicator for each of the seven others.
    ones = [1.0] * 7
    assert dataset.train.inputs.tolist() == [[-1, 0, 0, 0, -1, 0, 1, *ones], [1, 0, 0, 0, 1, 1, 0, *ones]]
    assert dataset.test.inputs.tolist() == [[0, 2, 5, 0, 0, 0, 0, *ones]]
    assert dataset.train.targets.tolist() == [0, 1]
    assert dataset.test.targets.tolist() == [1]


def test_every_column_but_weight_and_income_is_a_feature() -> None:
    assert set(NUMERIC) | set(CATEGORICAL) == set(COLUMNS) - {"fnlwgt", "income"}


@pytest.mark.parametrize(
    ("train", "says"),
    [
        ("", "holds no rows"),
        (YOUNG.replace(", Cuba", ""), "line 1: 15 fields are needed, found 14"),
        (f"{YOUNG}\n{OLD.replace('>50K', 'rich')}", "line 2: income is <=50K or >50K, found 'rich'"),
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
    # Each of 32,561 features is off by at most half a unit in the last place of a float32 below 32 (2**-19).
    np.testing.assert_allclose(numeric.mean(0), 0, atol=2**-19)
    np.testing.assert_allclose(numeric.std(0, correction=0), 1, atol=2**-19)
    assert set(np.unique(indicators.numpy()).tolist()) == {0.0, 1.0}
    assert (indicators.sum(1) == len(CATEGORICAL)).all()
    assert (dataset.test.inputs[:, len(NUMERIC) :].sum(1) == len(CATEGORICAL)).all()  # no category is new there
    # An independent count of the categories, straight from the file.
    lines = (shared_data / "adult" / "adult.data").read_text().split("\n")
    rows = [line.split(", ") for line in lines if line]
    categories = sum(len({row[COLUMNS.index(name)] for row in rows}) for name in CATEGORICAL)
    assert dataset.feature_shape == (len(NUMERIC) + categories,) == (107,)
