"""CIFAR-10: batches of both Pythons, foreign pickles, the shared subset."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.learning.data.writers import python2_batch, write_batch
from tests.statistics import standard_errors
from wirelessfl.errors import DataError
from wirelessfl.learning.data import load_cifar10
from wirelessfl.learning.data.cifar import MEAN, STD, read_batch

LABELS = [label for label in range(10) for _ in range(5)]


def pixels(inputs: torch.Tensor) -> np.ndarray:
    """The bytes behind normalised inputs, (N, 3, 32, 32)."""
    mean, std = (torch.tensor(constants)[:, None, None] for constants in (MEAN, STD))
    return np.asarray(torch.round((inputs * std + mean) * 255).to(torch.uint8))


@pytest.mark.parametrize("folder", ["cifar-10-batches-py", "CIFAR10/cifar-10-batches-py", "."])
def test_any_batches_in_any_layout(tmp_path: Path, folder: str) -> None:
    rows = [write_batch(tmp_path / folder / f"data_batch_{k}", LABELS, seed=k) for k in (2, 5)]
    test_rows = write_batch(tmp_path / folder / "test_batch", LABELS[::-1])
    dataset = load_cifar10(tmp_path)
    np.testing.assert_array_equal(pixels(dataset.train.inputs).reshape(100, 3072), np.concatenate(rows))
    np.testing.assert_array_equal(pixels(dataset.test.inputs).reshape(50, 3072), test_rows)
    assert dataset.train.targets.tolist() == LABELS * 2
    assert dataset.test.targets.tolist() == LABELS[::-1]


@pytest.mark.parametrize("name", ["data_batch_1", "test_batch"])
def test_one_half_alone_is_divided(tmp_path: Path, name: str) -> None:
    write_batch(tmp_path / name, LABELS)
    dataset = load_cifar10(tmp_path)
    assert torch.bincount(dataset.train.targets).tolist() == [4] * 10
    assert torch.bincount(dataset.test.targets).tolist() == [1] * 10


def test_no_batch_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data_batch_1.*test_batch.*cifar-10-batches-py"):
        load_cifar10(tmp_path)


def test_python_2_pickles_are_read(tmp_path: Path) -> None:
    data = np.arange(2 * 3072).astype(np.uint8).reshape(2, 3072)
    (tmp_path / "data_batch_1").write_bytes(python2_batch(data, [3, 9]))
    batch = read_batch(tmp_path / "data_batch_1")
    np.testing.assert_array_equal(pixels(batch.inputs).reshape(2, 3072), data)
    assert batch.targets.tolist() == [3, 9]


class Burglar:
    """A pickle of it runs a command when loaded by anyone but us."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    loot = tmp_path / "loot"
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({"data": Burglar(loot), "labels": []}, protocol=3))
    with pytest.raises(DataError, match="contains objects other than numbers, text and arrays"):
        read_batch(path)
    assert not loot.exists()
    pickle.loads(path.read_bytes())  # noqa: S301 - our own, to see that it bites
    assert loot.exists(), "the test's own burglar does not work"


DATA = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([1, 2], "must be an array"),
        ({"labels": [0, 1]}, "must be an array"),
        ({"data": DATA.astype(np.float32), "labels": [0, 1]}, "must be an array"),
        ({"data": DATA[0], "labels": [0]}, "must be an array"),
        ({"data": DATA[:0], "labels": []}, "must be an array"),
        ({"data": DATA[:, 1:], "labels": [0, 1]}, "has 3072 bytes, found 3071"),
        ({"data": DATA, "labels": [0]}, "list of 2 numbers"),
        ({"data": DATA, "labels": [0, 10]}, "numbers 0 to 9"),
        ({"data": DATA, "labels": "01"}, "list of 2 numbers"),
        ({"data": DATA}, "list of 2 numbers"),
    ],
)
def test_other_contents_are_refused(tmp_path: Path, content: object, says: str) -> None:
    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps(content, protocol=3))
    with pytest.raises(DataError, match=says):
        read_batch(path)


def test_every_truncation_is_a_data_error(tmp_path: Path) -> None:
    whole = python2_batch(DATA[:1], [0])
    path = tmp_path / "data_batch_1"
    for length in [*range(300), *range(len(whole) - 60, len(whole))]:
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="not a readable CIFAR-10 batch"):
            read_batch(path)


def test_a_folder_is_no_batch(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_batch(tmp_path)


@pytest.mark.slow
def test_the_shared_subset_and_the_constants(shared_data: Path) -> None:
    dataset = load_cifar10(shared_data)
    assert (len(dataset.train), len(dataset.test), dataset.feature_shape) == (10_000, 2_000, (3, 32, 32))
    images = dataset.train.inputs.double().flatten(2)  # the constants are those of all five batches
    error = images.mean(2).std(0) / np.sqrt(len(images))
    assert (images.mean((0, 2)).abs() <= standard_errors() * error).all()
    power = images.square().mean(2)
    assert ((power.mean(0) - 1).abs() <= standard_errors() * power.std(0) / np.sqrt(len(images))).all()
