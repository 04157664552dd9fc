"""Halves of published sets, and their pixels."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

from tests.learning.data.writers import write_batch, write_idx_pair
from wirelessfl.errors import DataError
from wirelessfl.learning.data import Dataset, load_adult, load_cifar10, load_mnist
from wirelessfl.learning.data.files import halves_of_first, normalised
from wirelessfl.learning.data.mnist import KMNIST
from wirelessfl.learning.data.svhn import load_svhn


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({}, None),
        ({"b": "train"}, ("b/train", None)),
        ({"a": "test", "b": "train"}, (None, "a/test")),
        ({"b": "train test"}, ("b/train", "b/test")),
    ],
)
def test_halves_are_those_of_the_first_folder_that_has_one(
    there: dict[str, str], found: tuple[str | None, str | None] | None
) -> None:
    def read(root: Path, name: str) -> str | None:
        return f"{root}/{name}" if name in there.get(str(root), "").split() else None

    assert halves_of_first([Path("a"), Path("b")], read, ("train", "test")) == found


def test_pixels_are_normalised_channel_by_channel() -> None:
    images = np.arange(2 * 3 * 4 * 5).astype(np.uint8).reshape(2, 3, 4, 5)
    mean, std = np.array([1, 20, 300], np.float32), np.array([3, 7, 11], np.float32)
    for one in (images, np.asfortranarray(images)):
        found = normalised(one, torch.from_numpy(mean), torch.from_numpy(std)).numpy()
        expected = (images.astype(np.float32) - mean[:, None, None]) / std[:, None, None]
        np.testing.assert_array_equal(found, expected)


def test_the_bits_of_images_stay(tmp_path: Path) -> None:
    """Runs are verified against the fingerprint of their data: KMNIST's constants round differently in other orders."""
    write_idx_pair(tmp_path, "train", [0, 1, 2])
    half = KMNIST.read(tmp_path, "train")
    assert half is not None
    raw = half.inputs.numpy() * np.float32(255 * 0.3483) + np.float32(255 * 0.1918)
    pixels = np.rint(raw).astype(np.float32)
    expected = (pixels - np.float32(255 * 0.1918)) / np.float32(255 * 0.3483)
    assert half.inputs.numpy().tobytes() == expected.tobytes()


def write_adult(folder: Path) -> None:
    row = "20, Private, 7, Masters, 14, Divorced, Sales, Wife, White, Female, 0, 0, 30, Cuba, <=50K"
    for name in ("adult.data", "adult.test"):
        (folder / name).write_text(f"{row}\n{row.replace('<=', '>')}\n")


def write_svhn(folder: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (32, 32, 3, 20), dtype=np.uint8)
    for name in ("train_32x32.mat", "test_32x32.mat"):
        savemat(folder / name, {"X": images, "y": np.full((20, 1), 3, dtype=np.uint8)})


@pytest.mark.parametrize(
    ("write", "load"),
    [
        (write_adult, load_adult),
        (write_svhn, load_svhn),
        (lambda folder: write_batch(folder / "data_batch_1", [1] * 10), load_cifar10),
        (lambda folder: write_idx_pair(folder, "train", [1] * 10, ""), load_mnist),
    ],
)
def test_packed_files_are_read_as_plain_ones(
    tmp_path: Path, write: Callable[[Path], None], load: Callable[[Path], Dataset]
) -> None:
    """Those of Adult, SVHN and CIFAR were found with .gz, and then refused as no text, MATLAB file or batch."""
    write(tmp_path)
    plain = load(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert load(tmp_path).fingerprint() == plain.fingerprint()
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"\.gz: damaged gzip file"):
        load(tmp_path)


def test_one_half_that_is_too_small_to_be_divided_is_refused(tmp_path: Path) -> None:
    """The test half was empty, and the accuracy of the run 0/0."""
    write_idx_pair(tmp_path, "train", [0, 0, 1, 1], "")
    with pytest.raises(DataError, match="mnist: found files of one half with 4 samples, too few of each class"):
        load_mnist(tmp_path)


def test_a_file_of_svhn_without_images_is_refused(tmp_path: Path) -> None:
    empty = {"X": np.zeros((32, 32, 3, 0), dtype=np.uint8), "y": np.zeros((0, 1), dtype=np.uint8)}
    savemat(tmp_path / "train_32x32.mat", empty)
    with pytest.raises(DataError, match=r"not a file of SVHN: X must be .*, N at least 1"):
        load_svhn(tmp_path)
