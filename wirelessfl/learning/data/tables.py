"""A dataset of one's own in a table: CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of

if TYPE_CHECKING:
    import pandas as pd

Scaling = Literal["none", "standard"]
_MOST_CATEGORIES = 1_000


def load_table(
    file: str | Path,
    label: str,
    test_file: str | Path | None = None,
    owner: str | None = None,
    scaling: Scaling = "none",
    split_seed: int = 0,
) -> Dataset:
    """A dataset from the rows of a table.

    Every column but those of labels and owners is a feature: numbers as they are, truth values as 0 and 1, words as
    one-hot vectors of the categories of the training half, in alphabetical order.

    Args:
        file: CSV with a head line (also packed as .gz), or Parquet.
        label: Column of the labels, whole numbers from 0 on or words.
        test_file: The test half; None takes a fifth of every class out of ``file``.
        owner: Column of the owners; None where there is none.
        scaling: none, or standard: numbers less their mean, over their standard deviation, of the training half. Both
            are taken from the samples of all clients; no ε covers that.
        split_seed: Decides which samples are the test half where there is no file of it.

    Raises:
        DataError: no such table, a missing column or value, or halves that do not go together.
    """
    train = _read(Path(file))
    test = None if test_file is None else _read(Path(test_file))
    tables = [(Path(file), train), *([] if test is None else [(Path(str(test_file)), test)])]
    for path, table in tables:
        _require_columns(
            path, table, {"label": label, **({} if owner is None else {"owner": owner})}, list(train.columns)
        )
    names = [name for name in train.columns if name not in (label, owner)]
    precondition(names, f"{file}: has no column beside {label}: no features; allowed: one at least", DataError)
    columns = {name: _categories(Path(file), train[name]) for name in names}
    blocks = [
        np.concatenate([_numbers(path, table[name], columns[name]) for name in names], axis=1) for path, table in tables
    ]
    if scaling == "standard":
        numeric = np.concatenate(
            [np.full(1 if kinds is None else len(kinds), kinds is None) for kinds in columns.values()]
        )
        mean, std = blocks[0].mean(axis=0), blocks[0].std(axis=0)
        shift, scale = np.where(numeric, mean, 0.0), np.where(numeric & (std > 0), std, 1.0)
        blocks = [(block - shift) / scale for block in blocks]
    halves = [
        Half(
            block.astype(np.float32), _column(table[label]), None if owner is None else _column(table[owner]), str(path)
        )
        for (path, table), block in zip(tables, blocks, strict=True)
    ]
    return dataset_of("table", halves[0], halves[1] if test is not None else None, split_seed)


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd  # takes half a second, and most runs read no table

    parquet = path.suffix.lower() in (".parquet", ".pq")
    try:
        return pd.read_parquet(path) if parquet else pd.read_csv(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # damage surfaces in the readers under many names
        kind = "Parquet" if parquet else "CSV"
        raise DataError(
            f"{path}: not a readable {kind} file: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from error


def _require_columns(path: Path, table: pd.DataFrame, wanted: dict[str, str], columns: list[str]) -> None:
    for key, name in wanted.items():
        precondition(
            name in table.columns,
            f"{key}: found {name!r}, which {path} has not; allowed: one of its columns, "
            f"{', '.join(map(str, table.columns))}",
            DataError,
        )
    same = sorted(map(str, table.columns)) == sorted(map(str, columns))
    precondition(
        same,
        f"{path}: has the columns {', '.join(map(str, table.columns))}; allowed: {', '.join(map(str, columns))}",
        DataError,
    )
    empty = table.isna()
    if empty.to_numpy().any():
        row, column = (int(at[0]) for at in np.nonzero(empty.to_numpy()))
        raise DataError(
            f"{path}: row {row} (from 0) has no value in column {table.columns[column]!r}; allowed: a "
            "value in every row and column"
        )


def _categories(path: Path, column: pd.Series) -> list[str] | None:
    # The words of a column; None where it holds numbers
    if column.dtype.kind in "iufb":
        return None
    found = sorted(set(column.astype(str)))
    precondition(
        len(found) <= _MOST_CATEGORIES,
        f"{path}: column {column.name!r} has {len(found)} different words; allowed: at most {_MOST_CATEGORIES}",
        DataError,
    )
    return found


def _numbers(path: Path, column: pd.Series, categories: list[str] | None) -> NDArray[np.float64]:
    # (N, features) of a column
    if categories is None:
        precondition(
            column.dtype.kind in "iufb",
            f"{path}: column {column.name!r} holds words, in the training half numbers; allowed: numbers in both",
            DataError,
        )
        return np.asarray(column, dtype=np.float64)[:, None]
    words = np.asarray(column.astype(str).to_numpy(dtype=str))
    place = np.searchsorted(categories, words)
    known = np.array(categories)[np.minimum(place, len(categories) - 1)] == words
    return np.eye(len(categories) + 1)[
        np.where(known, place, len(categories)), :-1
    ]  # a word of the test half alone: zeros


def _column(column: pd.Series) -> NDArray[np.generic]:
    return np.asarray(column if column.dtype.kind in "iub" else column.astype(str).to_numpy(dtype=str))
