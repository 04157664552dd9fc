"""Datasets of the LEAF benchmark (Caldas et al. 2018) from its JSON files, with its users as owners."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.halves import Half, dataset_of, in_single_precision

Task = Literal["femnist", "shakespeare", "sent140", "synthetic"]

LETTERS = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""The 80 letters of LEAF's ``language_utils``; others count as a space."""

SHAKESPEARE_LENGTH, TWEET_LENGTH = 80, 25
"""Letters and words of an input, as LEAF's models take them."""

_CHARACTERS = tuple(map(str, range(62)))
_PIXELS = 28 * 28
_TEXT_OF_A_TWEET = 4
_WORDS = re.compile(r"[\w']+|[.,!?;]")


@dataclass(frozen=True, eq=False)
class _Reader:
    """How a task's inputs and labels are read.

    Attributes:
        inputs: From the ``x`` of a user to (n, *feature).
        labels: From its ``y`` to (n,) numbers.
        classes: Names of all classes.
        vocabulary: Words or letters behind the inputs; None where inputs are quantities.
    """

    inputs: Callable[[list[Any]], NDArray[np.float32]]
    labels: Callable[[list[Any]], NDArray[np.int64]]
    classes: tuple[str, ...] | None
    vocabulary: tuple[str, ...] | None = None


def load_leaf(root: str | Path, task: Task, vocabulary: str | Path | None = None) -> Dataset:
    """A dataset as LEAF's ``preprocess.sh`` leaves it: JSON files of users and their samples, with a test half.

    femnist: images (1, 28, 28), 62 classes. shakespeare: 80 letters, the next of which is the class. sent140: the
    first 25 words of a tweet, positive or negative. synthetic: vectors and classes as they are.

    Args:
        root: Folder with ``train`` and ``test``, or with ``data/train`` and ``data/test``; files may be packed as .gz.
        task: Which of the four.
        vocabulary: Text file with a word in each line, of sent140 alone; words that it lacks count as its first.

    Raises:
        DataError: files that are missing, damaged or of another task; words without a vocabulary.
    """
    folder = next((one for one in (Path(root), Path(root) / "data") if (one / "train").is_dir()), None)
    if folder is None or not (folder / "test").is_dir():
        raise DataError(
            f"{root}: holds no folders train and test; allowed: as LEAF's preprocess.sh makes them (-t sample or user)"
        )
    reader = _reader(task, vocabulary)
    train, test = (_half(folder / half, task, reader) for half in ("train", "test"))
    dataset = dataset_of(f"leaf_{task}", train, test, 0, reader.vocabulary)
    if reader.classes is None:
        return dataset
    return Dataset(
        dataset.name,
        dataset.train,
        dataset.test,
        reader.classes,
        dataset.owners,
        dataset.test_owners,
        reader.vocabulary,
    )


def _reader(task: Task, vocabulary: str | Path | None) -> _Reader:
    words = vocabulary is not None
    precondition(
        words == (task == "sent140"),
        f"data.dataset.vocabulary: found {vocabulary if words else 'null'} with the task {task}; allowed: "
        f"{'null' if words else 'a text file with a word in each line'}",
        DataError,
    )
    match task:
        case "femnist":
            return _Reader(_images, _numbers, _CHARACTERS)
        case "shakespeare":
            return _Reader(_letters, _next_letters, tuple(LETTERS), tuple(LETTERS))
        case "sent140":
            known = _vocabulary(Path(str(vocabulary)))
            return _Reader(
                partial(_tweets, {word: at for at, word in enumerate(known)}), _numbers, ("negative", "positive"), known
            )
        case "synthetic":
            return _Reader(_vectors, _numbers, None)


def _half(folder: Path, task: Task, reader: _Reader) -> Half:
    inputs, labels, owners = [], [], []
    for path, user, samples in _users(folder):
        try:
            own, classes = reader.inputs(samples["x"]), reader.labels(samples["y"])
            precondition(len(own) == len(classes), f"{len(own)} inputs and {len(classes)} labels")
            allowed = 2**31 if reader.classes is None else len(reader.classes)
            precondition(len(classes) == 0 or 0 <= classes.min() <= classes.max() < allowed, "labels of another task")
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise DataError(f"{path}: user {user!r}: not samples of LEAF's {task}: {error}") from error
        if len(own):
            inputs.append(own)
            labels.append(classes)
            owners.append(np.full(len(own), user))
    precondition(inputs, f"{folder}: holds no sample", DataError)
    precondition(len({one.shape[1:] for one in inputs}) == 1, f"{folder}: inputs of different shapes", DataError)
    return Half(np.concatenate(inputs), np.concatenate(labels), np.concatenate(owners), str(folder))


def _users(folder: Path) -> Iterator[tuple[Path, str, Any]]:
    # Every user with its samples, file by file
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".json.gz")))
    precondition(files, f"{folder}: holds no JSON file", DataError)
    for path in files:
        try:
            text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            content = json.loads(text)
            users = [(str(user), content["user_data"][user]) for user in content["users"]]
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, EOFError, RecursionError, zlib.error) as error:
            raise DataError(f"{path}: not a JSON file of LEAF, with users and user_data") from error
        named = [user for user, _ in users]
        twice = [user for user in named if named.count(user) > 1] if len(set(named)) < len(named) else []
        precondition(not twice, f"{path}: names user {min(twice, default='')!r} twice; allowed: each once", DataError)
        yield from ((path, user, samples) for user, samples in users)


def _vectors(x: list[Any]) -> NDArray[np.float32]:
    vectors = in_single_precision(np.array(x, dtype=np.float64))
    precondition(vectors.ndim == 2, f"inputs of shape {vectors.shape[1:]}, not vectors")
    return vectors


def _images(x: list[Any]) -> NDArray[np.float32]:
    pixels = _vectors(x)
    precondition(pixels.shape[1] == _PIXELS, f"images of {pixels.shape[1]} pixels, not {_PIXELS}")
    return pixels.reshape(-1, 1, 28, 28)


def _numbers(y: list[Any]) -> NDArray[np.int64]:
    numbers = np.array(y, dtype=np.float64)
    precondition(
        numbers.ndim == 1 and bool(np.all((numbers == np.floor(numbers)) & (abs(numbers) < 2**31))),
        "labels that are no whole numbers",
    )
    return numbers.astype(np.int64)


_NUMBER_OF = {letter: at for at, letter in enumerate(LETTERS)}
_SPACE = LETTERS.index(" ")


def _letters(x: list[Any]) -> NDArray[np.float32]:
    precondition(
        all(isinstance(one, str) and len(one) == SHAKESPEARE_LENGTH for one in x),
        f"inputs that are not {SHAKESPEARE_LENGTH} letters",
    )
    rows = [[_NUMBER_OF.get(letter, _SPACE) for letter in one] for one in x]
    return np.array(rows, dtype=np.float32).reshape(-1, SHAKESPEARE_LENGTH)


def _next_letters(y: list[Any]) -> NDArray[np.int64]:
    precondition(all(isinstance(one, str) and len(one) == 1 for one in y), "labels that are not single letters")
    return np.array([_NUMBER_OF.get(letter, _SPACE) for letter in y], dtype=np.int64)


def _vocabulary(path: Path) -> tuple[str, ...]:
    try:
        words = tuple(line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a text with a word in each line: {error}") from error
    precondition(
        len(words) >= 2 and len(set(words)) == len(words),
        f"{path}: {len(words)} lines; allowed: at least 2 different words",
        DataError,
    )
    return words


def _tweets(number_of: dict[str, int], x: list[Any]) -> NDArray[np.float32]:
    # A tweet is a list of id, date, query, user and text; what is shorter is filled with the first word
    rows = np.zeros((len(x), TWEET_LENGTH), dtype=np.float32)
    for row, tweet in zip(rows, x, strict=True):
        words = _WORDS.findall(str(tweet[_TEXT_OF_A_TWEET]))[:TWEET_LENGTH]
        row[: len(words)] = [number_of.get(word, number_of.get(word.lower(), 0)) for word in words]
    return rows
