"""All datasets by the name they have in a scenario, the digits of scikit-learn, and downloads of published files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.adult import load_adult
from wirelessfl.learning.data.cifar import load_cifar10, load_cifar100
from wirelessfl.learning.data.examples import Dataset, Examples, from_halves
from wirelessfl.learning.data.mnist import (
    load_emnist_byclass,
    load_emnist_letters,
    load_fashion_mnist,
    load_kmnist,
    load_mnist,
)
from wirelessfl.learning.data.svhn import load_svhn
from wirelessfl.learning.data.synthetic import load_synthetic
from wirelessfl.learning.vision import torchvision_module

DIGITS = Path(__file__).with_name("digits.npz")
"""Images (1797, 8, 8) and labels (1797,) of ``sklearn.datasets.load_digits``, as bytes."""


def load_digits(split_seed: int = 0) -> Dataset:
    """The 8 × 8 digits of scikit-learn, inputs (N, 1, 8, 8), pixels 0 … 16 divided by 16.

    A fifth of every class is the test set (Optical Recognition of Handwritten Digits, Alpaydin and Kaynak 1998;
    scikit-learn ships its test half, of which this is a split of our own).
    """
    with np.load(DIGITS, allow_pickle=False) as file:  # importing scikit-learn takes a second
        inputs = torch.from_numpy(file["images"]).float()[:, None] / 16.0
        images = Examples(inputs, torch.from_numpy(file["labels"].astype("int64")))
    return from_halves("digits", images, None, tuple(map(str, range(10))), split_seed)


Loader = Callable[[str | Path | None, int], Dataset]  # (root, split_seed) → dataset

LOADERS: dict[str, Loader] = {
    "digits": lambda root, split_seed: load_digits(split_seed),
    "synthetic": lambda root, split_seed: load_synthetic(split_seed=split_seed),
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "emnist_letters": load_emnist_letters,
    "emnist_byclass": load_emnist_byclass,
    "kmnist": load_kmnist,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
    "svhn": load_svhn,
    "adult": load_adult,
}


def load_dataset(
    name: str,
    *,
    root: str | Path | None = None,
    classes: Sequence[int | str] | None = None,
    limit: int | None = None,
    split_seed: int = 0,
) -> Dataset:
    """The dataset of a scenario, filtered and cut.

    Args:
        name: One of `LOADERS`.
        root: Folder of the dataset's files, else those of the environment variable WIRELESSFL_DATA; `digits` and
            `synthetic` need none.
        classes: Keep these only, labelled 0, 1, … in this order.
        limit: Keep only the first ``limit`` training samples (of those classes).
        split_seed: Fixes the division into train and test where the source has none, and all of ``synthetic``.

    Raises:
        DataError: unknown name, missing or damaged files, or a filter that leaves nothing.
    """
    precondition(name in LOADERS, f"data.dataset.name: allowed are {', '.join(LOADERS)}, found {name!r}", DataError)
    dataset = LOADERS[name](root, split_seed)
    if classes is not None:
        dataset = dataset.only(classes)
    return dataset if limit is None else dataset.head(limit)


_TWO_HALVES: tuple[dict[str, Any], ...] = ({"split": "train"}, {"split": "test"})
_PUBLISHED_AS: dict[str, tuple[str, tuple[dict[str, Any], ...]]] = {
    "mnist": ("MNIST", ({},)),
    "fashion_mnist": ("FashionMNIST", ({},)),
    "kmnist": ("KMNIST", ({},)),
    "emnist_letters": ("EMNIST", ({"split": "letters"},)),
    "emnist_byclass": ("EMNIST", ({"split": "byclass"},)),
    "cifar10": ("CIFAR10", ({},)),
    "cifar100": ("CIFAR100", ({},)),
    "svhn": ("SVHN", _TWO_HALVES),
}


def download(name: str, root: str | Path) -> None:
    """Download of the published files of a dataset into ``root``, where `load_dataset` then finds them.

    Args:
        name: mnist, fashion_mnist, kmnist, emnist_letters, emnist_byclass, cifar10, cifar100 or svhn.
        root: A folder that can be written; what is already there is not fetched again.

    Raises:
        DataError: the dataset cannot be downloaded, or the network, the server or the folder fails.
    """
    precondition(name in _PUBLISHED_AS, f"download: allowed are {', '.join(_PUBLISHED_AS)}, found {name!r}", DataError)
    kind, calls = _PUBLISHED_AS[name]
    make = getattr(torchvision_module("datasets"), kind)
    try:
        for options in calls:
            make(str(root), download=True, **options)
    except (OSError, RuntimeError) as error:
        raise DataError(f"{name}: the download into {root} failed: {error}") from error
