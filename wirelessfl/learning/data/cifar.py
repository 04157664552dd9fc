"""CIFAR-10 and CIFAR-100 from their Python batches, or from any of them."""

import io
import pickle
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.examples import Dataset, Examples, from_halves
from wirelessfl.learning.data.files import data_roots, find_files, halves_of_first, normalised, not_found, unpacked

FOLDERS = ("cifar-10-batches-py", "CIFAR10/cifar-10-batches-py", "CIFAR10", ".")
TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_BATCH = "test_batch"
CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHAPE = (3, 32, 32)

# Of the red, green and blue of all training pixels, black 0 and white 1.
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)

FINE_NAMES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip


@dataclass(frozen=True)
class BatchForm:
    """The batches of one of the sets.

    Attributes:
        name: Of the set, in messages.
        folders: Where its files may lie below the root.
        labels: Key of the labels in a batch.
        classes: How many there are.
        mean: Of each colour of the training pixels, black 0 and white 1.
        std: Likewise.
    """

    name: str = "CIFAR-10"
    folders: tuple[str, ...] = FOLDERS
    labels: str = "labels"
    classes: int = 10
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD


_CIFAR10 = BatchForm()
# Means and deviations are those that its users give.
_CIFAR100 = BatchForm(
    "CIFAR-100",
    ("cifar-100-python", "CIFAR100/cifar-100-python", "CIFAR100", "."),
    "fine_labels",
    100,
    (0.5071, 0.4865, 0.4409),
    (0.2673, 0.2564, 0.2762),
)


def _dtype(name: str, *_: object) -> np.dtype[Any]:
    # ``np.dtype`` without its truth values, which Python 2 pickled as 0 and 1 and NumPy no longer takes as such.
    return np.dtype(name)


_RECONSTRUCT: Any = np.empty(0).__reduce__()[0]
_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
}


class _NotPlain(Exception):
    """A pickle that names something to be imported."""


class _ArraysOnly(pickle.Unpickler):
    """Unpickler of the plain values and numeric arrays of which the batches consist, and of no other global."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _NotPlain from None


def load_cifar10(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """CIFAR-10 (Krizhevsky 2009), inputs (N, 3, 32, 32).

    Training batches that are missing are left out. Where the test batch is missing, or all training batches are, a
    fixed fifth of what is there becomes the test set.

    Raises:
        DataError: there is no batch at all, or one is damaged.
    """
    roots, names = data_roots(root, "cifar10"), [*TRAIN_BATCHES, TEST_BATCH]
    folder = next((one for one in roots if any(find_files(one, FOLDERS, [name]) for name in names)), None)
    if folder is None:
        raise not_found("cifar10", roots, FOLDERS, names)
    training = [batch for name in TRAIN_BATCHES if (batch := _read_if_there(folder, name)) is not None]
    test = _read_if_there(folder, TEST_BATCH)
    train = None
    if training:
        train = Examples(torch.cat([batch.inputs for batch in training]), torch.cat([b.targets for b in training]))
    return from_halves("cifar10", train, test, CLASS_NAMES, split_seed)


def load_cifar100(root: str | Path | None = None, split_seed: int = 0) -> Dataset:
    """CIFAR-100 with its 100 fine classes (Krizhevsky 2009), inputs (N, 3, 32, 32).

    Where one of the halves is missing, a fixed fifth of the other becomes the test set.

    Raises:
        DataError: neither is there, or one is damaged.
    """
    roots = data_roots(root, "cifar100")
    halves = halves_of_first(roots, partial(_read_if_there, form=_CIFAR100), ("train", "test"))
    if halves is None:
        raise not_found("cifar100", roots, _CIFAR100.folders, ["train", "test"])
    return from_halves("cifar100", *halves, FINE_NAMES, split_seed)


def _read_if_there(root: Path, name: str, form: BatchForm = _CIFAR10) -> Examples | None:
    paths = find_files(root, form.folders, [name])
    return None if paths is None else read_batch(paths[0], form)


def read_batch(path: Path, form: BatchForm = _CIFAR10) -> Examples:
    """One batch, each colour normalised; rows are pixels of red, then green, then blue.

    Raises:
        DataError: not a batch, damaged, or a pickle that wants more than numbers and text.
    """
    content = io.BytesIO(unpacked(path))
    try:
        # latin1 is what NumPy needs for arrays pickled by Python 2, as the published batches were.
        batch = _ArraysOnly(content, encoding="latin1").load()
    except _NotPlain:
        raise DataError(
            f"{path}: contains objects other than numbers, text and arrays; a {form.name} batch does not"
        ) from None
    except Exception as error:  # damage surfaces in the unpickler as whatever the damaged opcodes happen to mean
        raise DataError(f"{path}: not a readable {form.name} batch") from error
    data, labels = (batch.get("data"), batch.get(form.labels)) if isinstance(batch, dict) else (None, None)
    if not (isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 2 and len(data)):
        raise DataError(f"{path}: not a {form.name} batch: `data` must be an array of unsigned bytes, one row an image")
    precondition(
        data.shape[1] == np.prod(SHAPE),
        f"{path}: a {form.name} image has {np.prod(SHAPE)} bytes, found {data.shape[1]}",
        DataError,
    )
    precondition(
        isinstance(labels, list) and len(labels) == len(data) and all(label in range(form.classes) for label in labels),
        f"{path}: `{form.labels}` must be a list of {len(data)} numbers 0 to {form.classes - 1}, one for each image",
        DataError,
    )
    mean, std = (255 * torch.tensor(constants) for constants in (form.mean, form.std))
    images = normalised(data.reshape(-1, *SHAPE), mean, std)
    return Examples(images, torch.tensor(labels, dtype=torch.int64))
