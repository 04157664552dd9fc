"""MNIST and the datasets published in its form: Fashion-MNIST, EMNIST. All images are (1, 28, 28)."""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset, Examples, from_halves
from wirelessfl.learning.data.files import data_roots, find_files, halves_of_first, normalised, not_found, read_idx

SIDE = 28

DIGITS = tuple(string.digits)
CLOTHES = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
CURSIVE = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
LETTERS = tuple(string.ascii_lowercase)
CHARACTERS = DIGITS + tuple(string.ascii_uppercase) + LETTERS


@dataclass(frozen=True)
class IdxSource:
    """One dataset in IDX files.

    Attributes:
        name: The dataset.
        folders: Where its files may lie below the root.
        train: File name prefix of the training half.
        test: File name prefix of the test half.
        class_names: In the order of the labels.
        first_label: What the files call the first class.
        mean: Of the pixels, black 0 and white 1.
        std: Of the pixels.
        transposed: Whether the files hold images with rows and columns exchanged.
    """

    name: str
    folders: tuple[str, ...]
    train: str
    test: str
    class_names: tuple[str, ...]
    mean: float
    std: float
    first_label: int = 0
    transposed: bool = False

    def files(self, half: str) -> tuple[str, str]:
        """Names of the image and the label file of a half, ``self.train`` or ``self.test``."""
        return f"{half}-images-idx3-ubyte", f"{half}-labels-idx1-ubyte"

    def read(self, root: Path, half: str) -> Examples | None:
        """One half, normalised and upright; None where its files are not there."""
        paths = find_files(root, self.folders, self.files(half))
        if paths is None:
            return None
        images, labels = read_idx(paths[0], 3), read_idx(paths[1], 1)
        precondition(
            images.shape[1:] == (SIDE, SIDE) and len(images) != 0,
            f"{paths[0]}: holds images of shape {images.shape}, not N × {SIDE} × {SIDE}",
            DataError,
        )
        precondition(
            len(images) == len(labels), f"{paths[1]}: holds {len(labels)} labels for {len(images)} images", DataError
        )
        targets = labels.astype(np.int64) - self.first_label
        precondition(
            targets.min() >= 0 and targets.max() < len(self.class_names),
            f"{paths[1]}: labels of {self.name} are {self.first_label} to "
            f"{self.first_label + len(self.class_names) - 1}, found {labels.min()} to {labels.max()}",
            DataError,
        )
        upright = images.transpose(0, 2, 1) if self.transposed else images
        mean, std = (torch.tensor([255 * one]) for one in (self.mean, self.std))
        return Examples(normalised(upright[:, None], mean, std), torch.from_numpy(targets))


# Mean and standard deviation are those of the training images; tests compute them again from the files, of KMNIST not.
MNIST = IdxSource("mnist", ("MNIST/raw", "MNIST", "raw", "."), "train", "t10k", DIGITS, mean=0.1307, std=0.3081)
FASHION_MNIST = IdxSource(
    "fashion_mnist", ("FashionMNIST/raw", "FashionMNIST", "raw", "."), "train", "t10k", CLOTHES, mean=0.2860, std=0.3530
)
KMNIST = IdxSource("kmnist", ("KMNIST/raw", "KMNIST", "raw", "."), "train", "t10k", CURSIVE, mean=0.1918, std=0.3483)
_EMNIST_FOLDERS = ("EMNIST/raw", "EMNIST", "raw", "gzip", ".")
# One pair of constants for all of EMNIST: those of the lower case letters a to j in the test files of by-class.
_EMNIST_MEAN, _EMNIST_STD = 0.1847, 0.3390
EMNIST_BYCLASS = IdxSource(
    "emnist_byclass", _EMNIST_FOLDERS, "emnist-byclass-train", "emnist-byclass-test", CHARACTERS,
    mean=_EMNIST_MEAN, std=_EMNIST_STD, transposed=True,
)  # fmt: skip
EMNIST_LETTERS = IdxSource(
    "emnist_letters", _EMNIST_FOLDERS, "emnist-letters-train", "emnist-letters-test", LETTERS,
    mean=_EMNIST_MEAN, std=_EMNIST_STD, first_label=1, transposed=True,
)  # fmt: skip


def load_mnist(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """MNIST, 60,000 + 10,000 handwritten digits (LeCun et al. 1998)."""
    return _load(MNIST, data_roots(root, "mnist"), split_seed)


def load_fashion_mnist(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """Fashion-MNIST, 60,000 + 10,000 pieces of clothing (Xiao et al. 2017)."""
    return _load(FASHION_MNIST, data_roots(root, "fashion_mnist"), split_seed)


def load_kmnist(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """KMNIST, 60,000 + 10,000 cursive Japanese characters (Clanuwat et al. 2018).

    Mean and standard deviation are those that its users give for the training images, 0.1918 and 0.3483.
    """
    return _load(KMNIST, data_roots(root, "kmnist"), split_seed)


def load_emnist_byclass(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """EMNIST by class: digits, capitals and lower case letters (Cohen et al. 2017), images upright.

    All 62 classes count, also where the files hold fewer; a class filter leaves out the others.
    """
    return _load(EMNIST_BYCLASS, data_roots(root, "emnist_byclass"), split_seed)


def load_emnist_letters(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """EMNIST letters, capitals and lower case in one class each, images upright.

    Where the folder holds no letters files, the letters among its by-class files are taken instead; those are
    not balanced. All 26 classes count, also where the files hold fewer; a class filter leaves out the others.
    """
    roots = data_roots(root, "emnist_letters")
    halves = _halves(EMNIST_LETTERS, roots) or tuple(map(_letters, _halves(EMNIST_BYCLASS, roots) or (None, None)))
    if halves == (None, None):
        wanted = [EMNIST_LETTERS.train, EMNIST_LETTERS.test, EMNIST_BYCLASS.train, EMNIST_BYCLASS.test]
        raise not_found("emnist_letters", roots, _EMNIST_FOLDERS, [EMNIST_LETTERS.files(half)[0] for half in wanted])
    return from_halves("emnist_letters", halves[0], halves[1], LETTERS, split_seed)


def _load(source: IdxSource, roots: Sequence[Path], split_seed: int) -> Dataset:
    halves = _halves(source, roots)
    if halves is None:
        raise not_found(source.name, roots, source.folders, source.files(source.train) + source.files(source.test))
    return from_halves(source.name, *halves, source.class_names, split_seed)


def _halves(source: IdxSource, roots: Sequence[Path]) -> tuple[Examples | None, Examples | None] | None:
    return halves_of_first(roots, source.read, (source.train, source.test))


def _letters(examples: Examples | None) -> Examples | None:
    # The letters of by-class examples, A and a both 0; None where there is none.
    if examples is None:
        return None
    letters = examples.take(np.flatnonzero(examples.targets.numpy() >= len(DIGITS)))
    return Examples(letters.inputs, (letters.targets - len(DIGITS)) % len(LETTERS)) if len(letters) else None
