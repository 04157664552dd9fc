"""The one door to torchvision: downloads of the published files."""

from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from wirelessfl.errors import DataError

_PUBLISHED_AS: dict[str, tuple[str, dict[str, Any]]] = {
    "mnist": ("MNIST", {}),
    "fashion_mnist": ("FashionMNIST", {}),
    "emnist_letters": ("EMNIST", {"split": "letters"}),
    "emnist_byclass": ("EMNIST", {"split": "byclass"}),
    "cifar10": ("CIFAR10", {}),
}


def import_datasets() -> ModuleType:
    """``torchvision.datasets``, also where torchvision's compiled part does not fit the torch that is installed.

    A CPU build of torch beside torchvision from the package index is such a pair: the import then ends in "operator
    torchvision::nms does not exist". Declaring the two operators is enough, for datasets call neither.

    Raises:
        DataError: torchvision is not installed.
    """
    try:
        return _import()
    except ImportError as error:
        raise DataError("downloads need torchvision: pip install 'wirelessfl[vision]'") from error
    except RuntimeError:
        _declare_operators()
        return _import()


def _import() -> ModuleType:
    from torchvision import datasets

    module: ModuleType = datasets
    return module


_LIBRARY: list[torch.library.Library] = []  # a declaration lives as long as its library object


def _declare_operators() -> None:
    if _LIBRARY:
        return
    make_library: Any = torch.library.Library  # untyped in torch
    library = make_library("torchvision", "FRAGMENT")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _LIBRARY.append(library)


def download(name: str, root: str | Path) -> None:
    """Download of the published files of a dataset into ``root``, where `load_dataset` then finds them.

    Args:
        name: mnist, fashion_mnist, emnist_letters, emnist_byclass or cifar10.
        root: A folder that can be written; what is already there is not fetched again.

    Raises:
        DataError: the dataset cannot be downloaded, or the network, the server or the folder fails.
    """
    if name not in _PUBLISHED_AS:
        raise DataError(f"download: allowed are {', '.join(_PUBLISHED_AS)}, found {name!r}")
    kind, options = _PUBLISHED_AS[name]
    make = getattr(import_datasets(), kind)
    try:
        make(str(root), download=True, **options)
    except (OSError, RuntimeError) as error:
        raise DataError(f"{name}: the download into {root} failed: {error}") from error
