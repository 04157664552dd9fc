"""Networks of torchvision, drawn anew or with weights from a file, made fit for gradients of single samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from wirelessfl.errors import DataError, ScenarioError, precondition
from wirelessfl.learning.models.convolutional import image_shape
from wirelessfl.learning.vision import torchvision_module

_COLOURS = 3
_STATE_DICT = "allowed: a state dict of this network, as torch.save writes it"
_RUNNING = ("running_mean", "running_var", "num_batches_tracked")


def torchvision_model(
    feature_shape: Sequence[int],
    num_classes: int,
    architecture: str,
    weights: str | None = None,
    norm: Literal["as_published", "group"] = "as_published",
    groups: int = 32,
    head: Literal["kept", "new"] = "kept",
    channels: Literal["kept", "summed"] = "kept",
) -> nn.Module:
    """A network of ``torchvision.models`` for images, without dropout and stochastic depth, which depend on chance.

    Args:
        feature_shape: (channels, height, width).
        num_classes: Number of logits.
        architecture: Name of the function in ``torchvision.models``.
        weights: File of a state dict as ``torch.save`` writes it, read with ``weights_only``; None for random ones.
        norm: ``group`` puts group norm in the place of batch norm, with its factors and offsets.
        groups: Most groups of a group norm; it has the largest number that divides both this and the channels.
        head: ``new`` draws the last layer anew, whatever the file has.
        channels: ``summed`` sums the kernels of the first convolution over the colours, so that a grey image counts as
            one whose colours are all equal to it.

    Raises:
        ScenarioError: the network does not fit the data, the file or gradients of single samples.
        DataError: the file cannot be read, or torchvision is not installed.
        ValueError: the samples are no images.
    """
    colours, _, _ = image_shape(feature_shape, 1, architecture)
    module: nn.Module = getattr(torchvision_module("models"), architecture)(num_classes=num_classes)
    _switch_off_chance(module)
    normalised = {name for name, layer in module.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    precondition(
        norm == "group" or not normalised,
        f"model.norm: found {norm} with {architecture}, whose batch norm mixes the samples of a batch, so that "
        "gradients of single samples do not exist, and keeps running statistics, which nobody sends; allowed: group",
        ScenarioError,
    )
    for name in normalised:
        _replace(module, name, _as_group_norm(module.get_submodule(name), groups))
    if weights is not None:
        _load(module, weights, normalised, head, num_classes)
    if colours != _COLOURS:
        precondition(
            channels == "summed" and colours == 1,
            f"model.channels: found {channels} with {architecture} and images of {colours} channels; allowed: images "
            f"of {_COLOURS} channels, or summed with images of one",
            ScenarioError,
        )
        _sum_colours(module)
    return module


def _switch_off_chance(module: nn.Module) -> None:
    for layer in module.modules():
        if type(layer).__name__ in ("Dropout", "StochasticDepth"):
            layer.p = 0.0  # type: ignore[assignment]


def _as_group_norm(layer: nn.Module, groups: int) -> nn.GroupNorm:
    assert isinstance(layer, nn.BatchNorm2d)
    made = nn.GroupNorm(math.gcd(groups, layer.num_features), layer.num_features, layer.eps, layer.affine)
    made.load_state_dict({name: value for name, value in layer.state_dict().items() if name not in _RUNNING})
    return made


def _replace(module: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, own = name.rpartition(".")
    setattr(module.get_submodule(parent), own, layer)


def _sum_colours(module: nn.Module) -> None:
    name, first = next((name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Conv2d))
    kernel = first.weight.detach().sum(dim=1, keepdim=True)
    geometry: dict[str, Any] = {one: getattr(first, one) for one in ("kernel_size", "stride", "padding", "dilation")}
    grey = nn.Conv2d(1, first.out_channels, bias=first.bias is not None, **geometry)
    grey.load_state_dict({**first.state_dict(), "weight": kernel})
    _replace(module, name, grey)


def _load(module: nn.Module, file: str, normalised: set[str], head: Literal["kept", "new"], num_classes: int) -> None:
    # The file's values in the module, but for running statistics of norms that were replaced, and for a new last layer
    found = _read(file)
    dropped = {f"{name}.{statistic}" for name in normalised for statistic in _RUNNING}
    wanted = module.state_dict()
    last = list(wanted)[-1].rpartition(".")[0]
    of_last = {name for name in wanted if name.rpartition(".")[0] == last}
    kept = {name: value for name, value in found.items() if name not in dropped}
    if head == "new":
        kept |= {name: wanted[name] for name in of_last}
    missing, unknown = wanted.keys() - kept.keys(), kept.keys() - wanted.keys()
    precondition(
        not missing and not unknown,
        f"model.weights: found {file}: lacks {_some(missing)}, and has {_some(unknown)} beside; {_STATE_DICT}",
        DataError,
    )
    others = {name for name in wanted if wanted[name].shape != kept[name].shape}
    precondition(
        not others or not others <= of_last,
        f"model.head: found {head} with weights for {len(kept[max(of_last)])} classes in {file} and {num_classes} in "
        "the data; allowed: new, or weights for as many classes",
        ScenarioError,
    )
    precondition(
        not others,
        f"model.weights: found {file}: {_some(others)} of another shape than the network has; {_STATE_DICT}",
        DataError,
    )
    broken = {name for name, value in kept.items() if not value.isfinite().all()}
    precondition(
        not broken,
        f"model.weights: found {file}: {_some(broken)} has values that are not finite; allowed: finite ones",
        DataError,
    )
    module.load_state_dict(kept)


def _read(file: str) -> Mapping[str, Tensor]:
    try:
        found = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise DataError(
            f"model.weights: found {file}: cannot be read: {error.strerror or error}; {_STATE_DICT}"
        ) from error
    except Exception as error:  # damage surfaces in the unpickler under many names
        raise DataError(f"model.weights: found {file}: not a file of tensors alone; {_STATE_DICT}") from error
    precondition(
        isinstance(found, Mapping) and all(isinstance(value, Tensor) for value in found.values()),
        f"model.weights: found {file}: holds no state dict, names with tensors; {_STATE_DICT}",
        DataError,
    )
    return dict(found)


def _some(names: set[str]) -> str:
    ordered = sorted(map(str, names))
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "") or "nothing"
