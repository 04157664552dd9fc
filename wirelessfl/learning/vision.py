"""The one place that imports torchvision, when something of it is asked for."""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, cast

import torch

from wirelessfl.errors import DataError


def torchvision_module(name: Literal["datasets", "models", "transforms"]) -> ModuleType:
    """``torchvision.datasets`` or another part, also beside a torch that torchvision's compiled part does not fit.

    A CPU build of torch beside torchvision from the package index is such a pair: the import then ends in "operator
    torchvision::nms does not exist". Declaring the two operators is enough, for what is used here calls neither.

    Raises:
        DataError: torchvision is not installed.
    """
    try:
        return import_module(f"torchvision.{name}")
    except ImportError as error:
        raise DataError(f"torchvision.{name} is needed and not installed: pip install torchvision") from error
    except RuntimeError:
        _declare_operators()
        return import_module(f"torchvision.{name}")


@cache  # a declaration lives as long as its library object
def _declare_operators() -> torch.library.Library:
    make_library: Any = torch.library.Library  # untyped in torch
    library = make_library("torchvision", "FRAGMENT")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return cast(torch.library.Library, library)
