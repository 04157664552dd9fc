"""MNIST and its relatives: layouts, labels, orientation, constants."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.learning.data.writers import write_idx, write_idx_pair
from wirelessfl.errors import DataError
from wirelessfl.learning.data import (
    Dataset,
    load_emnist_byclass,
    load_emnist_letters,
    load_fashion_mnist,
    load_mnist,
)
from wirelessfl.learning.data.mnist import EMNIST_BYCLASS, FASHION_MNIST, MNIST, IdxSource

LABELS = [digit for digit in range(10) for _ in range(5)]

# shared/data/README.md: rows of each lower case letter in the test files of EMNIST by class.
LETTER_COUNTS = dict(zip("abcdefghij", (1644, 853, 432, 1683, 4092, 400, 589, 1479, 427, 317), strict=True))


def pixels(source: IdxSource, inputs: torch.Tensor) -> np.ndarray:
    """The bytes behind normalised inputs."""
    return np.asarray(torch.round((inputs * source.std + source.mean) * 255).to(torch.uint8)[:, 0])


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("folder", ["MNIST/raw", "MNIST", "raw", "."])
def test_published_halves_in_any_layout(tmp_path: Path, folder: str, suffix: str) -> None:
    train = write_idx_pair(tmp_path / folder, "train", LABELS, suffix, seed=1)
    test = write_idx_pair(tmp_path / folder, "t10k", LABELS[::-1], suffix, seed=2)
    dataset = load_mnist(tmp_path)
    np.testing.assert_array_equal(pixels(MNIST, dataset.train.inputs), train)
    np.testing.assert_array_equal(pixels(MNIST, dataset.test.inputs), test)
    assert dataset.train.targets.tolist() == LABELS
    assert dataset.test.targets.tolist() == LABELS[::-1]
    assert dataset.feature_shape == (1, 28, 28)


def test_emnist_is_upright_and_one_half_alone_is_divided_by_the_split_seed(tmp_path: Path) -> None:
    labels = [36 + letter for letter in range(3) for _ in range(10)]
    stored = write_idx_pair(tmp_path / "EMNIST/raw", "emnist-byclass-test", labels, ".gz")
    dataset = load_emnist_byclass(tmp_path, split_seed=3)
    assert dataset.num_classes == 62
    assert dataset.class_names[36:39] == ("a", "b", "c")
    assert torch.bincount(dataset.train.targets).tolist() == [0] * 36 + [8, 8, 8]
    assert torch.bincount(dataset.test.targets).tolist() == [0] * 36 + [2, 2, 2]
    assert dataset.only([37, "a"]).class_names == ("b", "a")
    both = np.concatenate([pixels(EMNIST_BYCLASS, half.inputs) for half in (dataset.train, dataset.test)])
    assert {image.tobytes() for image in both} == {image.T.tobytes() for image in stored}
    assert torch.equal(load_emnist_byclass(tmp_path, split_seed=3).test.inputs, dataset.test.inputs)
    assert not torch.equal(load_emnist_byclass(tmp_path, split_seed=4).test.inputs, dataset.test.inputs)


def test_letters_have_labels_from_one_in_their_own_files(tmp_path: Path) -> None:
    write_idx_pair(tmp_path, "emnist-letters-train", [1, 2, 26])
    write_idx_pair(tmp_path, "emnist-letters-test", [26, 1, 2])
    dataset = load_emnist_letters(tmp_path)
    assert [dataset.class_names[label] for label in dataset.train.targets] == ["a", "b", "z"]
    assert [dataset.class_names[label] for label in dataset.test.targets] == ["z", "a", "b"]


def test_letters_come_from_by_class_files_where_there_are_no_others(tmp_path: Path) -> None:
    write_idx_pair(tmp_path, "emnist-byclass-train", [0, 9, 10, 35, 36, 61])
    write_idx_pair(tmp_path, "emnist-byclass-test", [36, 35, 5])
    dataset = load_emnist_letters(tmp_path)
    assert dataset.num_classes == 26
    assert [dataset.class_names[label] for label in dataset.train.targets] == ["a", "z", "a", "z"]
    assert [dataset.class_names[label] for label in dataset.test.targets] == ["a", "z"]


@pytest.mark.parametrize("load", [load_mnist, load_fashion_mnist, load_emnist_byclass, load_emnist_letters])
def test_missing_files_are_named_with_their_places(tmp_path: Path, load: Callable[[Path], Dataset]) -> None:
    with pytest.raises(DataError, match=r"-images-idx3-ubyte.*raw.*data\.dataset\.root"):
        load(tmp_path)


def test_half_of_a_pair_is_not_enough(tmp_path: Path) -> None:
    write_idx_pair(tmp_path, "train", LABELS)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="train-labels-idx1-ubyte"):
        load_mnist(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("train-labels-idx1-ubyte", np.zeros(49, np.uint8), "49 labels for 50 images"),
        ("train-labels-idx1-ubyte", np.full(50, 10, np.uint8), "labels of mnist are 0 to 9, found 10 to 10"),
        ("train-images-idx3-ubyte", np.zeros((50, 28, 27), np.uint8), "28 × 28"),
        ("train-images-idx3-ubyte", np.zeros((0, 28, 28), np.uint8), "28 × 28"),
    ],
)
def test_halves_that_do_not_fit(tmp_path: Path, name: str, array: np.ndarray, says: str) -> None:
    write_idx_pair(tmp_path, "train", LABELS)
    write_idx(tmp_path / name, array)
    with pytest.raises(DataError, match=says):
        load_mnist(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "load"), [(MNIST, load_mnist), (FASHION_MNIST, load_fashion_mnist)])
def test_full_sets_and_their_constants(shared_data: Path, source: IdxSource, load: Callable[[Path], Dataset]) -> None:
    dataset = load(shared_data)
    assert (len(dataset.train), len(dataset.test), dataset.num_classes) == (60_000, 10_000, 10)
    raw = gzip.decompress((shared_data / source.folders[0] / f"{source.train}-images-idx3-ubyte.gz").read_bytes())[16:]
    levels = np.bincount(np.frombuffer(raw, np.uint8), minlength=256) / len(raw)
    grey = np.arange(256) / 255
    mean = levels @ grey
    assert source.mean == pytest.approx(mean, abs=5e-5)  # given to four decimals
    assert source.std == pytest.approx(np.sqrt(levels @ (grey - mean) ** 2), abs=5e-5)
    assert hashlib.md5(pixels(source, dataset.train.inputs).tobytes()).digest() == hashlib.md5(raw).digest()
    if source is FASHION_MNIST:
        assert torch.bincount(dataset.train.targets).tolist() == [6000] * 10


@pytest.mark.parametrize("load", [load_emnist_byclass, load_emnist_letters])
def test_the_letters_of_the_shared_cut(shared_data: Path, load: Callable[[Path], Dataset]) -> None:
    whole = load(shared_data)
    dataset = whole.only(list(LETTER_COUNTS))
    assert (len(dataset.train), len(dataset.test)) == (len(whole.train), len(whole.test))
    counts = torch.bincount(torch.cat([dataset.train.targets, dataset.test.targets]))
    assert dict(zip(dataset.class_names, counts.tolist(), strict=True)) == LETTER_COUNTS
    test_counts = torch.bincount(dataset.test.targets).tolist()
    assert test_counts == [round(0.2 * count) for count in LETTER_COUNTS.values()]


def test_emnist_constants_are_those_of_the_shared_cut(shared_data: Path) -> None:
    raw = gzip.decompress((shared_data / "EMNIST/raw/emnist-byclass-test-images-idx3-ubyte.gz").read_bytes())[16:]
    grey = np.frombuffer(raw, np.uint8) / 255
    assert EMNIST_BYCLASS.mean == pytest.approx(grey.mean(), abs=5e-5)
    assert EMNIST_BYCLASS.std == pytest.approx(grey.std(), abs=5e-5)
