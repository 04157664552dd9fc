"""A dataset of one's own in a table: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of, in_single_precision

if TYPE_CHECKING:
    import pandas as pd

Scaling = Literal["none", "standard"]
_MOST_CATEGORIES = 1_000
_LARGEST = float(np.finfo(np.float32).max)


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
    one-hot vectors of the categories of the training half, in alphabetical order. A column of CSV that holds words in
    the training half holds words in the test half as well, whatever they look like.

    Args:
        file: CSV with a head line (also packed as .gz), or Parquet.
        label: Column of the labels, whole numbers from 0 on (also written as 1.0), truth values as 0 and 1, or words.
        test_file: The test half; None takes a fifth of every class out of ``file``.
        owner: Column of the owners, whole numbers or words; None where there is none.
        scaling: none, or standard: numbers less their mean, over their standard deviation, of the training half; those
            that are all equal there are not divided. Both are taken from the samples of all clients; no ε covers that.
        split_seed: Decides which samples are the test half where there is no file of it.

    Raises:
        DataError: no such table, a missing column or value, values of another kind, or halves that do not go together.
    """
    path = Path(file)
    train = _read(path, ())
    tables = [(path, train)]
    if test_file is not None:
        tables.append((Path(test_file), _read(Path(test_file), [name for name in train if _is_words(train[name])])))
    wanted = {"label": label, **({} if owner is None else {"owner": owner})}
    for where, table in tables:
        _require_columns(where, table, wanted, list(train.columns))
    names = [name for name in train.columns if name not in (label, owner)]
    precondition(names, f"{file}: has no column beside {label}: no features; allowed: one at least", DataError)
    columns = {name: _categories(path, train[name]) for name in names}
    blocks = [
        np.concatenate([_features(where, table[name], columns[name]) for name in names], axis=1)
        for where, table in tables
    ]
    if scaling == "standard":
        numeric = np.concatenate(
            [np.full(1 if kinds is None else len(kinds), kinds is None) for kinds in columns.values()]
        )
        mean, std = blocks[0].mean(axis=0), blocks[0].std(axis=0)
        # The deviation of equal numbers may be rounded up from 0
        varies = blocks[0].min(axis=0) < blocks[0].max(axis=0)
        shift, scale = np.where(numeric, mean, 0.0), np.where(numeric & varies & (std > 0), std, 1.0)
        blocks = [(block - shift) / scale for block in blocks]
    halves = [
        Half(
            in_single_precision(block),
            _column(where, table[label]),
            None if owner is None else _column(where, table[owner]),
            str(where),
        )
        for (where, table), block in zip(tables, blocks, strict=True)
    ]
    return dataset_of("table", halves[0], halves[1] if test_file is not None else None, split_seed)


def _read(path: Path, words: Sequence[str]) -> pd.DataFrame:
    # The table, with columns of plain numbers and of words alone; those of CSV named in ``words`` are words
    import pandas as pd  # takes half a second, and most runs read no table

    parquet = path.suffix.lower() in (".parquet", ".pq")
    try:
        if parquet:
            table = pd.read_parquet(path)
            names = [str(name) for name in table.columns]
        else:
            names = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
            table = pd.read_csv(path, dtype=dict.fromkeys(words, str), low_memory=False)  # in parts types would differ
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # damage surfaces in the readers under many names
        kind = "Parquet" if parquet else "CSV"
        raise DataError(
            f"{path}: not a readable {kind} file: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from error
    _require_names(path, names)
    precondition(
        parquet or isinstance(table.index, pd.RangeIndex),  # what pandas takes the first cells for, if there are more
        f"{path}: has more cells in a line than its head has columns, {', '.join(names)}; allowed: a cell for each, "
        "and decimal points, no commas",
        DataError,
    )
    precondition(len(table), f"{path}: holds no sample; allowed: one row at least", DataError)
    table.columns = pd.Index(names)
    _require_values(path, table)
    return pd.DataFrame({name: _plain(path, table[name]) for name in names})


def _require_names(path: Path, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    precondition(
        "" not in names,
        f"{path}: column {names.index('') if '' in names else 0} (from 0) has no name, as row numbers have none; "
        "allowed: columns with names",
        DataError,
    )
    precondition(
        not twice, f"{path}: has a column {twice[0] if twice else ''!r} twice; allowed: different names", DataError
    )


def _require_values(path: Path, table: pd.DataFrame) -> None:
    empty = table.isna().to_numpy()
    if empty.any():
        row, column = (int(at[0]) for at in np.nonzero(empty))
        raise DataError(
            f"{path}: row {row} (from 0) has no value in column {table.columns[column]!r}; allowed: a "
            "value in every row and column (words such as NA and None count as none)"
        )


def _plain(path: Path, column: pd.Series) -> pd.Series:
    # The column as numbers or words, also where it is one of objects or categories
    from pandas.api.types import infer_dtype

    if column.dtype.kind == "b":
        return column.astype(np.int64)
    if column.dtype.kind in "iuf":
        return _bounded(path, column)
    objects = column.astype(object)
    match infer_dtype(objects, skipna=False):
        case "string":
            return column.astype(str)
        case "boolean":
            return objects.astype(np.int64)
        case "integer" | "floating" | "mixed-integer-float" | "decimal":
            return _bounded(path, objects)
        case kind:
            raise DataError(
                f"{path}: column {column.name!r} holds {kind}, such as {str(objects.iloc[0])[:40]}; allowed: numbers, "
                "truth values or words"
            )


def _bounded(path: Path, column: pd.Series) -> pd.Series:
    # Numbers that single precision has
    try:
        values = column.to_numpy(dtype=np.float64)
        outside = ~(np.abs(values) <= _LARGEST)
    except OverflowError:
        outside = np.array([abs(value) > _LARGEST for value in column])
    row = int(np.argmax(outside))
    precondition(
        not outside.any(),
        f"{path}: row {row} (from 0) has {str(column.iloc[row])[:40]} in column {column.name!r}; allowed: finite "
        "numbers of single precision",
        DataError,
    )
    return column if column.dtype.kind in "iu" else column.astype(np.float64)


def _is_words(column: pd.Series) -> bool:
    return column.dtype.kind not in "iuf"


def _require_columns(path: Path, table: pd.DataFrame, wanted: dict[str, str], columns: list[str]) -> None:
    for key, name in wanted.items():
        precondition(
            name in table.columns,
            f"{key}: found {name!r}, which {path} has not; allowed: one of its columns, {', '.join(table.columns)}",
            DataError,
        )
    precondition(
        sorted(table.columns) == sorted(columns),
        f"{path}: has the columns {', '.join(table.columns)}; allowed: {', '.join(columns)}",
        DataError,
    )


def _categories(path: Path, column: pd.Series) -> list[str] | None:
    # The words of a column; None where it holds numbers
    if not _is_words(column):
        return None
    found = sorted(set(column))
    precondition(
        len(found) <= _MOST_CATEGORIES,
        f"{path}: column {column.name!r} has {len(found)} different words; allowed: at most {_MOST_CATEGORIES}",
        DataError,
    )
    return found


def _features(path: Path, column: pd.Series, categories: list[str] | None) -> NDArray[np.float64]:
    # (N, features) of a column
    here, wanted = ("words" if one else "numbers" for one in (_is_words(column), categories is not None))
    precondition(
        here == wanted,
        f"{path}: column {column.name!r} holds {here}, in the training half {wanted}; allowed: {wanted} in both",
        DataError,
    )
    if categories is None:
        return np.asarray(column, dtype=np.float64)[:, None]
    words = column.to_numpy(dtype=str)
    place = np.searchsorted(categories, words)
    known = np.array(categories)[np.minimum(place, len(categories) - 1)] == words
    return np.eye(len(categories) + 1)[
        np.where(known, place, len(categories)), :-1
    ]  # a word of the test half alone: zeros


def _column(path: Path, column: pd.Series) -> NDArray[np.generic]:
    # Labels or owners: whole numbers or words
    if _is_words(column):
        return np.asarray(column.to_numpy(dtype=str))
    values = column.to_numpy()
    whole = (values == np.floor(values)) & ((values.dtype.kind in "iu") | (np.abs(values.astype(np.float64)) < 2.0**63))
    precondition(
        whole.all(),
        f"{path}: row {int(np.argmin(whole))} (from 0) has {values[int(np.argmin(whole))]} in column {column.name!r}; "
        "allowed: whole numbers or words, for labels and owners",
        DataError,
    )
    return np.asarray(values if values.dtype.kind in "iu" else values.astype(np.int64))
