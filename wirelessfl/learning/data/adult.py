"""UCI Adult: persons with an income above 50,000 dollars or not, 32,561 + 16,281 rows of the 1994 census.

Where its files are not at hand, rows drawn at random in the same form stand in for them: as many rows, features and
positive labels as the published files have, so that sample numbers, and with them both ε, are those of the real set;
what can be learnt from the rows is of course something else.
"""

from functools import lru_cache
from pathlib import Path
from typing import Literal, assert_never

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.learning.data.files import data_roots, find_files, not_found, unpacked
from wirelessfl.streams import Streams

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
WEIGHT = "fnlwgt"
# Limits of an entry: adult.names has people above 16 with hours above 0 and names 16 kinds of education; the survey of
# the time codes 90 years and more as 90 and hours with two digits
LIMITS = {"age": (17.0, 90.0), "education-num": (1.0, 16.0), "hours-per-week": (1.0, 99.0)}
# Dollars of five and four digits; weights of the survey have up to seven
LARGEST_AMOUNT = {"capital-gain": 99_999.0, "capital-loss": 9_999.0, WEIGHT: 9_999_999.0}

NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
# Those that adult.names lists, and "?" in the three columns in which UCI says that entries are missing
CATEGORIES = {
    "workclass": (
        "?", "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
        "Without-pay",
    ),
    "education": (
        "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
        "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
    ),
    "marital-status": (
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated",
        "Widowed",
    ),
    "occupation": (
        "?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners",
        "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales",
        "Tech-support", "Transport-moving",
    ),
    "relationship": ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    "race": ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"),
    "sex": ("Female", "Male"),
    "native-country": (
        "?", "Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador", "El-Salvador",
        "England", "France", "Germany", "Greece", "Guatemala", "Haiti", "Holand-Netherlands", "Honduras", "Hong",
        "Hungary", "India", "Iran", "Ireland", "Italy", "Jamaica", "Japan", "Laos", "Mexico", "Nicaragua",
        "Outlying-US(Guam-USVI-etc)", "Peru", "Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South",
        "Taiwan", "Thailand", "Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
    ),
}  # fmt: skip

CLASS_NAMES = ("<=50K", ">50K")
FOLDERS = ("adult", "Adult", ".")
FILES = ("adult.data", "adult.test")

Table = dict[str, NDArray[np.str_]]
Scaling = Literal["public", "none"]
"""Of numeric features: by public constants, or none."""


def load_adult(
    root: str | Path | None = None, split_seed: int = 0, *, fnlwgt: bool = False, scaling: Scaling = "public"
) -> Dataset:
    """Adult as numbers, inputs (N, 107): 5 numeric features, then 102 indicators; each row by itself.

    Nothing is computed from the rows, which are private data of the clients: a statistic of all of them in the inputs
    would let one person move everybody's. The ends of ``LIMITS`` become −1 and 1; an amount a becomes
    ln(1 + a)/ln(1 + largest), in [0, 1]; beyond its limits an entry counts as the limit. A categorical feature becomes
    one indicator for each of ``CATEGORIES``; an entry that is not among them has no indicator set. The published
    division is kept, so ``split_seed`` changes nothing.

    Args:
        root: Folder of the files, else those of the environment variable WIRELESSFL_DATA.
        split_seed: Of no effect.
        fnlwgt: Whether the column of that name is a sixth numeric feature, scaled as an amount; inputs are (N, 108)
            then. It says how many people a row stands for, nothing about the person, and is left out otherwise.
        scaling: ``none`` leaves the numbers of numeric features as they are in the files, without limits.

    Raises:
        DataError: files are missing or hold a row that is not of this form.
    """
    roots = data_roots(root, "adult")
    paths = next(filter(None, (find_files(one, FOLDERS, FILES) for one in roots)), None)
    if paths is None:
        raise not_found("adult", roots, FOLDERS, FILES)
    train, test = (_encoded(path, path.stat().st_mtime_ns, _numeric(fnlwgt), scaling) for path in paths)
    return Dataset("adult", train, test, CLASS_NAMES)


def _numeric(fnlwgt: bool) -> tuple[str, ...]:
    return (*NUMERIC, WEIGHT) if fnlwgt else NUMERIC


@lru_cache(maxsize=2)
def _encoded(path: Path, changed_ns: int, numeric: tuple[str, ...], scaling: Scaling) -> Examples:
    # The examples of a file last changed at this time: the many runs of a study read both files once.
    return _examples(read_table(path), path, numeric, scaling)


def read_table(path: Path) -> Table:
    """The columns of one file as text; ``income`` without the full stop that the test file sets behind it.

    Raises:
        DataError: unreadable, empty, or a line without 15 fields or with an unknown income.
    """
    try:
        lines = unpacked(path).decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: cannot be read: it is no ASCII text") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("|"):  # the test file opens with a remark
            continue
        fields = [field.strip() for field in line.split(",")]
        precondition(
            len(fields) == len(COLUMNS),
            f"{path}, line {number}: {len(COLUMNS)} fields are needed, found {len(fields)}",
            DataError,
        )
        fields[-1] = fields[-1].removesuffix(".")
        precondition(
            fields[-1] in CLASS_NAMES,
            f"{path}, line {number}: income is {' or '.join(CLASS_NAMES)}, found another word",
            DataError,
        )
        rows.append(fields)
    precondition(rows, f"{path}: holds no rows", DataError)
    return dict(zip(COLUMNS, np.array(rows).T, strict=True))


def _numbers(column: NDArray[np.str_], name: str, path: Path) -> NDArray[np.float64]:
    try:
        values = column.astype(np.float64)
    except ValueError:
        raise DataError(f"{path}: {name} must be a number in every line") from None
    precondition(np.isfinite(values).all(), f"{path}: {name} must be finite", DataError)
    return values


def _scaled(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    # A numeric column by public constants, see `load_adult`.
    if name in LARGEST_AMOUNT:
        largest = LARGEST_AMOUNT[name]
        return np.asarray(np.log1p(np.clip(values, 0, largest)) / np.log1p(largest))
    low, high = LIMITS[name]
    return 2 * (np.clip(values, low, high) - low) / (high - low) - 1


def _examples(table: Table, path: Path, numeric: tuple[str, ...], scaling: Scaling) -> Examples:
    numbers = {name: _numbers(table[name], name, path) for name in numeric}
    match scaling:
        case "public":
            numbers = {name: _scaled(values, name) for name, values in numbers.items()}
        case "none":
            for name, values in numbers.items():
                in_range = np.abs(values).max() <= np.finfo(np.float32).max
                precondition(in_range, f"{path}: {name} has a number beyond single precision", DataError)
        case _:
            assert_never(scaling)
    columns = [values[:, None] for values in numbers.values()]
    indicators = [table[name][:, None] == np.array(categories) for name, categories in CATEGORIES.items()]
    inputs = torch.from_numpy(np.concatenate([*columns, *indicators], axis=1, dtype=np.float32))
    return Examples(inputs, torch.from_numpy((table["income"] == CLASS_NAMES[1]).astype(np.int64)))


_TRAIN_ROWS, _TEST_ROWS = 32_561, 16_281
_POSITIVE_SHARE = 7_841 / 32_561  # of the training file
_SIGNAL = 3.0  # standard deviation of the linear score over the scale of the logistic noise on it


def load_adult_stand_in(split_seed: int = 0, *, fnlwgt: bool = False, scaling: Scaling = "public") -> Dataset:
    """Inputs (32561, 107) and (16281, 107) in the form of `load_adult`, from a law of our own.

    Numeric features are standard normal; the categories of a column have probabilities in proportion to 1/rank; the
    label is positive where a random linear score plus logistic noise is among the largest 24 %. ``fnlwgt`` is one more
    normal feature, on which no label depends. Without scaling a normal z becomes the number that `load_adult` would
    scale to 2Φ(z) − 1, of an amount to Φ(z).
    """
    generator = Streams(split_seed).generator("adult/stand-in")
    rows = _TRAIN_ROWS + _TEST_ROWS
    columns: list[NDArray[np.float64] | NDArray[np.bool_]] = [generator.standard_normal((rows, len(NUMERIC)))]
    for count in map(len, CATEGORIES.values()):
        share = 1.0 / np.arange(1, count + 1)
        columns.append(generator.choice(count, (rows, 1), p=share / share.sum()) == np.arange(count))
    inputs = np.concatenate(columns, axis=1, dtype=np.float32)
    score = inputs @ generator.standard_normal(inputs.shape[1])
    score = _SIGNAL * (score - score.mean()) / score.std() + generator.logistic(size=rows)
    targets = (score > np.quantile(score[:_TRAIN_ROWS], 1 - _POSITIVE_SHARE)).astype(np.int64)
    if fnlwgt:
        weight = Streams(split_seed).generator("adult/stand-in/fnlwgt").standard_normal((rows, 1), dtype=np.float32)
        inputs = np.insert(inputs, [len(NUMERIC)], weight, axis=1)
    if scaling == "none":
        for column, name in enumerate(_numeric(fnlwgt)):
            inputs[:, column] = _unscaled(inputs[:, column].astype(np.float64), name)
    examples = Examples(torch.from_numpy(inputs), torch.from_numpy(targets))
    train, test = np.split(np.arange(rows), [_TRAIN_ROWS])
    return Dataset("adult", examples.take(train), examples.take(test), CLASS_NAMES)


def _unscaled(normal: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    # The numbers of which `_scaled` makes 2Φ(z) − 1, of an amount Φ(z)
    share = torch.special.ndtr(torch.from_numpy(normal)).numpy()
    if name in LARGEST_AMOUNT:
        return np.asarray(np.expm1(share * np.log1p(LARGEST_AMOUNT[name])))
    low, high = LIMITS[name]
    return np.asarray(low + (high - low) * share)
