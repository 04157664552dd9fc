"""The built-in digits against scikit-learn."""

from __future__ import annotations

import numpy as np
import torch
from sklearn import datasets

from wirelessfl.learning.data import load_digits
from wirelessfl.learning.data.catalogue import DIGITS


def test_the_file_holds_what_scikit_learn_ships_bit_for_bit() -> None:
    bunch = datasets.load_digits()
    with np.load(DIGITS, allow_pickle=False) as file:
        assert set(file) == {"images", "labels"}
        assert np.array_equal(file["images"].astype(bunch.images.dtype), bunch.images)
        assert np.array_equal(file["labels"].astype(bunch.target.dtype), bunch.target)


def test_all_images_once_and_a_fifth_of_each_class_held_out() -> None:
    dataset = load_digits()
    bunch = datasets.load_digits()
    both = torch.cat([dataset.train.inputs, dataset.test.inputs]).numpy() * 16
    assert both.shape == (1797, 1, 8, 8)
    assert sorted(image.tobytes() for image in both) == sorted(
        image.tobytes() for image in bunch.images.astype(np.float32)
    )
    counts = np.bincount(bunch.target)
    assert torch.bincount(dataset.test.targets).tolist() == [round(0.2 * count) for count in counts.tolist()]


def test_labels_belong_to_their_images() -> None:
    label_of = {
        image.tobytes(): label
        for image, label in zip(*datasets.load_digits(return_X_y=True), strict=True)
    }  # fmt: skip
    dataset = load_digits(split_seed=5)
    for half in (dataset.train, dataset.test):
        rows = half.inputs.double().flatten(1).numpy() * 16
        assert [label_of[row.tobytes()] for row in rows] == half.targets.tolist()


def test_the_split_seed_alone_decides() -> None:
    assert torch.equal(load_digits(1).test.inputs, load_digits(1).test.inputs)
    assert not torch.equal(load_digits(1).test.inputs, load_digits(2).test.inputs)
