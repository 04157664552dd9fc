"""Tables of one's own, read by hand as well: columns of numbers and words, labels, owners, and what is refused."""

from __future__ import annotations

import csv
import io
import warnings
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.tables import load_table


def of_text(folder: Path, text: str, test: str | None = None, **options: Any) -> Dataset:
    (folder / "a.csv").write_text(text)
    if test is not None:
        (folder / "b.csv").write_text(test)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load_table(folder / "a.csv", "y", None if test is None else folder / "b.csv", **options)


def of_columns(folder: Path, **columns: Any) -> Dataset:
    pd.DataFrame({"a": np.arange(20), "y": np.arange(20) % 2} | columns).to_parquet(folder / "a.parquet")
    return load_table(folder / "a.parquet", "y")


def lines(*columns: list[Any]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def by_hand(text: str, words: dict[str, list[str]]) -> tuple[np.ndarray, list[str]]:
    """Inputs and labels, of the words of each column that holds any."""
    head, *rows = csv.reader(io.StringIO(text))
    inputs, labels = [], []
    for row in rows:
        features: list[float] = []
        for name, cell in zip(head, row, strict=True):
            if name == "y":
                labels.append(cell)
            elif name in words:
                features += [float(cell == word) for word in words[name]]
            else:
                features.append(float(cell))
        inputs.append(features)
    return np.array(inputs, dtype=np.float32), labels


@pytest.mark.parametrize("seed", range(20))
def test_random_tables_are_read_as_by_hand(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vocabulary = ["x, y", 'said "so"', "1a", " leading", "ü", "01"]
    halves = []
    for rows in (40, 12):
        columns = {
            "w": rng.choice(vocabulary, rows).tolist() if rows == 40 else rng.choice(["01", "1a"], rows).tolist(),
            "f": (rng.standard_normal(rows) * 10.0 ** rng.integers(-30, 30)).tolist(),
            "i": rng.integers(-(2**62), 2**62, rows).tolist(),
            "y": [f"{at % 12}.0" for at in range(rows)] if seed % 2 else [at % 12 for at in range(rows)],
        }
        text = io.StringIO()
        csv.writer(text).writerows([list(columns), *zip(*columns.values(), strict=True)])
        halves.append(text.getvalue())
    dataset = of_text(tmp_path, *halves)
    known = {"w": sorted({row["w"] for row in csv.DictReader(io.StringIO(halves[0]))})}
    for written, half in zip(halves, (dataset.train, dataset.test), strict=True):
        inputs, labels = by_hand(written, known)
        np.testing.assert_allclose(half.inputs.numpy(), inputs, rtol=2**-22)
        assert half.targets.tolist() == [int(float(label)) for label in labels]
    assert dataset.class_names == tuple(map(str, range(12)))


def test_whole_numbers_with_a_point_are_whole_numbers(tmp_path: Path) -> None:
    """As words they were classes in the order 0.0, 1.0, 10.0, 2.0, and others than 0, 1, 10, 2 of the other half."""
    numbers = [0, 1, 2, 10] * 3
    dataset = of_text(
        tmp_path,
        "o,y,a\n" + lines([f"{one}.0" for one in numbers], [f"{one}.0" for one in numbers], numbers),
        "o,y,a\n" + lines(numbers, numbers, numbers),
        owner="o",
    )
    assert dataset.num_classes == 11
    assert dataset.train.targets.tolist() == dataset.test.targets.tolist() == numbers
    assert dataset.owners is not None and dataset.test_owners is not None
    assert dataset.owners.tolist() == dataset.test_owners.tolist() == [0, 1, 2, 3] * 3


def test_words_that_look_like_numbers_are_words_in_both_halves(tmp_path: Path) -> None:
    """A test half in which 01 alone occurs was read as numbers, and 1 is no category of the training half."""
    train = "o,w,y\n" + lines(["007", "b"] * 3, ["01", "x"] * 3, ["TRUE", "maybe"] * 3)
    dataset = of_text(tmp_path, train, "o,w,y\n007,01,TRUE\n007,01,TRUE\n", owner="o")
    assert dataset.test.inputs.tolist() == [[1, 0]] * 2
    assert dataset.class_names == ("TRUE", "maybe") and dataset.test.targets.tolist() == [0, 0]
    assert dataset.test_owners is not None and dataset.test_owners.tolist() == [0, 0]


def test_equal_numbers_are_not_divided_by_a_rounded_deviation(tmp_path: Path) -> None:
    """The mean of ten times 0.1 is another number than 0.1, and the deviation 1.4e-17."""
    rows = [0.1] * 10, range(10), [0, 1] * 5
    dataset = of_text(tmp_path, "c,a,y\n" + lines(*map(list, rows)), "c,a,y\n0.1,3,0\n0.35,4,1\n", scaling="standard")
    assert np.abs(dataset.train.inputs[:, 0].numpy()).max() < 1e-15
    assert dataset.test.inputs[:, 0].tolist() == pytest.approx([0, 0.25])


def test_columns_of_parquet_of_many_types_are_read(tmp_path: Path) -> None:
    whole = np.arange(20)
    dataset = of_columns(
        tmp_path,
        b=pd.array(whole, dtype="Int64"),
        c=pd.array(whole % 2 == 0, dtype="boolean"),
        d=pd.Categorical(["x", "z"] * 10),
        e=[Decimal(f"{one}.5") for one in whole],
        y=pd.Categorical(whole % 2 * 3),
    )
    rows = dataset.train.inputs[:, 0].numpy()
    wanted = np.stack([rows, rows, rows % 2 == 0, rows % 2 == 0, rows % 2 == 1, rows + 0.5], axis=1)
    assert np.array_equal(dataset.train.inputs.numpy(), wanted)
    assert dataset.train.targets.tolist() == (rows % 2 * 3).tolist()


def test_columns_of_parquet_may_have_numbers_as_names(tmp_path: Path) -> None:
    pd.DataFrame(np.arange(40).reshape(20, 2) % 4).to_parquet(tmp_path / "a.parquet")
    dataset = load_table(tmp_path / "a.parquet", "1")
    assert set(dataset.train.targets.tolist()) == {1, 3} and dataset.feature_shape == (1,)


TEN = "1,0\n2,1\n" * 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,y\n" + "1,0.5\n2,1\n" * 5, r"row 0 \(from 0\) has 0.5 in column 'y'; allowed: whole numbers or words"),
        ("a,y\n1,1e30\n" + TEN, r"row 0 \(from 0\) has 1e\+30 in column 'y'; allowed: whole numbers or words"),
        ("a,y\n1,-2\n" + TEN, "labels from -2 to 1; allowed: whole numbers from 0"),
        ("a,y,y\n" + "1,2,0\n" * 10, "has a column 'y' twice; allowed: different names"),
        ("a,y,a\n" + "1,2,0\n" * 10, "has a column 'a' twice; allowed: different names"),
        (",a,y\n" + lines(list(range(10)), [3] * 10, [0, 1] * 5), r"column 0 \(from 0\) has no name, as row numbers"),
        ("a,y\n" + "1,5,0\n" * 10, "has more cells in a line than its head has columns, a, y; allowed: a cell for"),
        ("a,y\n" + TEN + "inf,0\n", r"row 10 \(from 0\) has inf in column 'a'; allowed: finite numbers of single"),
        ("a,y\n" + TEN + "-1e39,0\n", r"row 10 \(from 0\) has -1e\+39 in column 'a'; allowed: finite numbers of"),
        (f"a,y\n1{'0' * 400},1\n{TEN}", r"row 0 \(from 0\) has 1000.* in column 'a'; allowed: finite numbers of"),
        ("a,y\n", "holds no sample; allowed: one row at least"),
        ("a;y\n1;0\n", "found 'y', which .* has not; allowed: one of its columns, a;y"),
        ("a,y\n1,NA\n", r"row 0 \(from 0\) has no value in column 'y'.*words such as NA"),
    ],
)
def test_tables_of_another_form_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        of_text(tmp_path, text)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([datetime(2020, 1, 1)] * 20, "datetime, such as 2020-01-01 00:00:00"),
        ([[1, 2]] * 20, r"mixed, such as \[1 2\]"),
        ([b"ab"] * 20, "bytes, such as b'ab'"),
        ([{"k": 1}] * 20, "mixed, such as {'k': 1}"),
    ],
)
def test_columns_of_other_types_are_refused(tmp_path: Path, values: list[Any], kind: str) -> None:
    for name in ("b", "y"):
        with pytest.raises(DataError, match=rf"a\.parquet: column '{name}' holds {kind}; allowed: numbers, truth"):
            of_columns(tmp_path, **{name: values})


def test_halves_of_different_kinds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"b\.csv: labels of the test half that are words; allowed: numbers"):
        of_text(tmp_path, "a,y\n" + TEN, "a,y\n1,0\n2,x\n")
    with pytest.raises(DataError, match=r"b\.csv: column 'a' holds words, in the training half numbers; allowed"):
        of_text(tmp_path, "a,y\n" + TEN, "a,y\nx,0\n")
    with pytest.raises(DataError, match=r"b\.csv: holds no sample"):
        of_text(tmp_path, "a,y\n" + TEN, "a,y\n")


def test_long_tables_have_one_type_for_each_column(tmp_path: Path) -> None:
    """Read in parts, the numbers of the first million rows would be other words than those beside a word."""
    count = 400_000
    words = ["1.0"] * (count - 1) + ["x"]
    dataset = of_text(tmp_path, "w,y\n" + lines(words, [0, 1] * (count // 2)))
    assert dataset.feature_shape == (2,)
    assert dataset.train.inputs[:, 0].sum() + dataset.test.inputs[:, 0].sum() == count - 1
