"""From a module to a program, where all its layers are known."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn import functional

from wirelessfl.learning.cohort.pooling import Maxima, Means
from wirelessfl.learning.cohort.stacked import layers, spatial
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.cohort.stacked.layers import Layer, TrainedLayer
from wirelessfl.learning.cohort.stacked.pooling import MaxPool2d, MeanPool, Pool
from wirelessfl.learning.cohort.stacked.program import Program, Slot, Step
from wirelessfl.learning.cohort.stacked.spatial import aten
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.kernel_geometry import KernelGeometry
from wirelessfl.learning.models import TemperedSigmoid


@lru_cache(maxsize=8)
def compile_program(model: FlatModel) -> Program | None:
    """The program of a sequence of known layers; None where anything else occurs.

    Layers that are frozen may be of any kind where all that are trained come after them.
    """
    steps: list[Step] = []
    first = 0
    sample = torch.zeros(1, *model.feature_shape)
    as_images = False
    frozen, modules = _divided(list(_sequence(model.module)))
    if frozen:
        before = nn.Sequential(*frozen)
        steps.append(Step(layers.FrozenLayers(before), ()))
        with torch.no_grad():
            sample = before(sample)
    for module in modules:
        if type(module) in _SPATIAL and sample.ndim == 4 and not as_images:
            steps.append(Step(spatial.ToImages(arranges=type(module) is not nn.Conv2d), ()))
            as_images = True
        layer = _layer(module, sample.shape[1:], as_images)
        if layer is None:
            return None
        if layer is layers.RELU and steps and steps[-1].slots:
            layer = layers.RELU_IN_PLACE
        if isinstance(layer, Pool) and steps and steps[-1].layer in (layers.RELU, layers.RELU_IN_PLACE):
            layer = replace(layer, relu=steps.pop().layer)
        as_images = as_images and type(module) is not nn.Flatten
        slots = []
        for parameter in module.parameters():
            slots.append(Slot(first, tuple(parameter.shape)))
            first += parameter.numel()
        steps.append(Step(layer, tuple(slots)))
        with torch.no_grad():
            sample = module(sample)
    program = Program(tuple(steps))
    return program if first == model.dimension and _computes_the_same(program, model) else None


def _computes_the_same(program: Program, model: FlatModel) -> bool:
    # Whether the program gives the module's logits, on two random samples in double precision
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(1, 2, *model.feature_shape, generator=generator, dtype=torch.float64)
    parameters = model.initial(0).double()
    try:
        logits, _ = program.forward(program.weights([parameters[None]]), inputs)
    except RuntimeError:  # shapes that a layer cannot take, such as features of two dimensions in a linear layer
        return False
    return torch.allclose(logits[0], model.logits(parameters, inputs[0]), rtol=1e-9, atol=1e-12)


def _divided(modules: list[nn.Module]) -> tuple[list[nn.Module], list[nn.Module]]:
    # What comes before the first module that is trained, where any of it is frozen, and the others
    first = next(i for i, one in enumerate(modules) if any(p.requires_grad for p in one.parameters()))
    frozen = any(True for one in modules[:first] for _ in one.parameters())
    return (modules[:first], modules[first:]) if frozen else ([], modules)


def _sequence(module: nn.Module) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for part in module:
            yield from _sequence(part)
    elif type(module) is not nn.Identity:
        yield module


def _layer(module: nn.Module, shape: Sequence[int], as_images: bool) -> Layer | TrainedLayer | None:
    """The stacked layer for ``module``, matched by exact type: a subclass may compute anything.

    Args:
        module: Of the sequence.
        shape: Of a sample that it receives.
        as_images: Whether samples are in the layout of ``spatial``.
    """
    kind = type(module)
    if module._forward_hooks or module._forward_pre_hooks:
        return None
    if kind is nn.Flatten:
        return _flatten(module, shape[0] if as_images else None)
    if kind not in _ELEMENTWISE and (kind in _SPATIAL) != as_images:
        return None
    make = (_ELEMENTWISE | _SPATIAL | _DENSE).get(kind)
    return None if make is None else make(module, shape)


def _flatten(module: Any, channels: int | None) -> Layer | None:
    flat = layers.Flatten() if channels is None else spatial.FlattenImages(channels)
    return flat if module.start_dim == 1 and module.end_dim == -1 else None


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _conv2d(module: nn.Conv2d, shape: Sequence[int]) -> Layer | None:
    if module.groups != 1 or module.padding_mode != "zeros" or isinstance(module.padding, str):
        return None
    return Conv2d(
        module.in_channels,
        module.out_channels,
        KernelGeometry(*map(_pair, (module.kernel_size, module.stride, module.padding, module.dilation))),
        module.bias is not None,
    )


def _max_pool(module: nn.MaxPool2d, shape: Sequence[int]) -> Layer | None:
    if module.return_indices:
        return None
    pairs = _pair(module.kernel_size), _pair(module.stride), _pair(module.padding), _pair(module.dilation)
    pool = MaxPool2d((*pairs, module.ceil_mode))
    return pool if module.ceil_mode else Pool(Maxima, KernelGeometry(*pairs), pool)


def _avg_pool(module: nn.AvgPool2d, shape: Sequence[int]) -> Layer | None:
    pairs = _pair(module.kernel_size), _pair(module.stride), _pair(module.padding)
    settings: dict[str, Any] = dict(zip(("kernel_size", "stride", "padding"), pairs, strict=True))
    settings |= {"ceil_mode": module.ceil_mode, "count_include_pad": module.count_include_pad}
    derivative = partial(aten.avg_pool2d_backward, **settings, divisor_override=None)
    if module.divisor_override is not None:
        return None
    pool = MeanPool(partial(functional.avg_pool2d, **settings), derivative)
    of_all_places = not module.ceil_mode and (module.count_include_pad or pairs[2] == (0, 0))
    return Pool(Means, KernelGeometry(*pairs, dilation=(1, 1)), pool) if of_all_places else pool


def _adaptive_pool(module: nn.AdaptiveAvgPool2d, shape: Sequence[int]) -> Layer | None:
    # The kernel takes windows that are alike and do not overlap. With these numbers of places it rounds as torch does,
    # where the channels of all clients are a multiple of 32: torch adds up more places in another order, and divides
    # derivatives by both sides of a window
    size = _pair(module.output_size)
    if None in size:
        return None
    pool = MeanPool(partial(functional.adaptive_avg_pool2d, output_size=size), aten._adaptive_avg_pool2d_backward)
    window = shape[1] // max(1, size[0]), shape[2] // max(1, size[1])
    whole = (window[0] * size[0], window[1] * size[1]) == tuple(shape[1:])
    if not whole or math.prod(window) not in _EXACT_PLACES:
        return pool
    return Pool(Means, KernelGeometry(window, window, (0, 0), (1, 1)), pool)


_EXACT_PLACES = (1, 2, 4, 8, 16)

_Makers: TypeAlias = dict[type[nn.Module], Callable[[Any, Sequence[int]], Layer | None]]

_ELEMENTWISE: _Makers = {
    nn.ReLU: lambda module, shape: layers.RELU,
    nn.Tanh: lambda module, shape: layers.TANH,
    TemperedSigmoid: lambda module, shape: layers.TemperedSigmoid(module.scale, module.temperature, module.offset),
}
_DENSE: _Makers = {nn.Linear: lambda module, shape: layers.Linear(module.bias is not None)}
_SPATIAL: _Makers = {
    nn.Conv2d: _conv2d,
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _avg_pool,
    nn.AdaptiveAvgPool2d: _adaptive_pool,
    nn.GroupNorm: lambda module, shape: spatial.GroupNorm(module.num_groups, module.eps) if module.affine else None,
}
