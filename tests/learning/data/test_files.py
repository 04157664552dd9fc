"""Halves of published sets, and their pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.learning.data.writers import write_idx_pair
from wirelessfl.learning.data.files import halves_of_first, normalised
from wirelessfl.learning.data.mnist import KMNIST


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
