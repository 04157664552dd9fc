"""A module as a list of stacked layers, where all its layers are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from wirelessfl.learning.cohort.stacked import dense, spatial
from wirelessfl.learning.cohort.stacked.layer import Layer, Saved, TrainedLayer, Weights
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import TemperedSigmoid
from wirelessfl.learning.objective import losses_and_derivative


@dataclass(frozen=True)
class Slot:
    """Where one parameter lies: in which of the matrices of a block, from which column on."""

    first: int
    shape: tuple[int, ...]
    matrix: int = 0

    @property
    def size(self) -> int:
        """Numbers in the parameter."""
        return math.prod(self.shape)

    def of(self, matrices: Sequence[Tensor]) -> Tensor:
        """The parameter (k, *shape) as a view of its matrix."""
        matrix = matrices[self.matrix]
        return matrix.narrow(1, self.first, self.size).view(len(matrix), *self.shape)


@dataclass(frozen=True)
class Step:
    """One layer and its parameters."""

    layer: Layer | TrainedLayer
    slots: tuple[Slot, ...]


class Record(NamedTuple):
    """What a trained layer saw in one pass: enough for its gradient under any weighting of the samples."""

    layer: TrainedLayer
    position: int
    saved: Saved
    delta: Tensor


@dataclass(frozen=True)
class Program:
    """The layers of a model, first to last."""

    steps: tuple[Step, ...]

    @property
    def first_trained(self) -> int:
        """The first layer with parameters: the backward pass ends there."""
        return next(index for index, step in enumerate(self.steps) if step.slots)

    def weights(self, matrices: Sequence[Tensor]) -> list[Weights]:
        """Of each layer the parameters (k, *shape), views of ``matrices`` (k, m_j)."""
        return [[slot.of(matrices) for slot in step.slots] for step in self.steps]

    def forward(self, weights: list[Weights], inputs: Tensor) -> tuple[Tensor, list[Saved]]:
        """(k, B, num_classes) logits of inputs (k, B, *feature), and what each layer saved."""
        saved: list[Saved] = []
        outputs = inputs
        for step, own in zip(self.steps, weights, strict=True):
            outputs, keep = step.layer.forward(own, outputs)
            saved.append(keep)
        return outputs, saved

    def add_gradient(
        self,
        weights: list[Weights],
        inputs: Tensor,
        targets: Tensor,
        sample_weights: Tensor,
        into: list[Weights],
        decay: float,
    ) -> Tensor:
        """One pass: sets into ← decay · into + the gradient of Σ_b sample_weights_b ℓ_b.

        Args:
            weights: As for ``forward``.
            inputs: (k, B, *feature).
            targets: (k, B).
            sample_weights: (k, B).
            into: Of each layer the accumulated gradients by its parameters.
            decay: What they are multiplied by.

        Returns:
            (k, B) unweighted losses ℓ.
        """
        logits, saved = self.forward(weights, inputs)
        losses, delta = losses_and_derivative(logits, targets, sample_weights)
        for record in self.backward(weights, saved, delta):
            own = into[record.position]
            record.layer.add_gradient(record.saved, [record.delta] * len(own), own, decay)
        return losses

    def backward(self, weights: list[Weights], saved: list[Saved], delta: Tensor) -> Iterator[Record]:
        """The trained layers, last to first, each with the derivative by its outputs.

        Args:
            weights: As for ``forward``.
            saved: What ``forward`` saved.
            delta: (k, B, num_classes) derivative by the logits.
        """
        first = self.first_trained
        for index in reversed(range(first, len(self.steps))):
            layer, slots = self.steps[index].layer, self.steps[index].slots
            if slots:
                yield Record(cast(TrainedLayer, layer), index, saved[index], delta)
            if index > first:
                delta = layer.backward(weights[index], saved[index], delta)


class Views:
    """The parameters in some matrices, by layer, for as many clients as are active."""

    def __init__(self, program: Program, matrices: Sequence[Tensor]) -> None:
        self._program = program
        self._matrices = matrices
        self._clients = 0
        self._latest: list[Weights] = []

    def first(self, clients: int) -> list[Weights]:
        """Of each layer the parameters of the first ``clients``; made anew only when their number changes."""
        if clients != self._clients:
            self._clients = clients
            self._latest = self._program.weights([matrix[:clients] for matrix in self._matrices])
        return self._latest


@lru_cache(maxsize=8)
def compile_program(model: FlatModel) -> Program | None:
    """The program of a sequence of known layers; None where anything else occurs."""
    steps = []
    first = 0
    for module in _sequence(model.module):
        layer = _layer(module)
        if layer is None:
            return None
        slots = []
        for parameter in module.parameters():
            slots.append(Slot(first, tuple(parameter.shape)))
            first += parameter.numel()
        steps.append(Step(layer, tuple(slots)))
    program = Program(tuple(steps))
    return program if first == model.dimension and _computes_the_same(program, model) else None


def _computes_the_same(program: Program, model: FlatModel) -> bool:
    """Whether the program gives the module's logits, on two random samples in double precision."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(1, 2, *model.feature_shape, generator=generator, dtype=torch.float64)
    parameters = model.initial(0).double()
    try:
        logits, _ = program.forward(program.weights([parameters[None]]), inputs)
    except RuntimeError:  # shapes that a layer cannot take, such as features of two dimensions in a linear layer
        return False
    return torch.allclose(logits[0], model.logits(parameters, inputs[0]), rtol=1e-9, atol=1e-12)


def _sequence(module: nn.Module) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for part in module:
            yield from _sequence(part)
    elif type(module) is not nn.Identity:
        yield module


def _layer(module: nn.Module) -> Layer | TrainedLayer | None:
    """The stacked layer for ``module``, matched by exact type: a subclass may compute anything."""
    if module._forward_hooks or module._forward_pre_hooks:
        return None
    make = _MAKERS.get(type(module))
    return None if make is None else make(module)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _flatten(module: nn.Flatten) -> dense.Flatten | None:
    return dense.Flatten() if (module.start_dim, module.end_dim) == (1, -1) else None


def _conv2d(module: nn.Conv2d) -> spatial.Conv2d | None:
    if module.groups != 1 or module.padding_mode != "zeros" or isinstance(module.padding, str):
        return None
    return spatial.Conv2d(
        _pair(module.kernel_size),
        _pair(module.stride),
        _pair(module.padding),
        _pair(module.dilation),
        module.bias is not None,
    )


def _max_pool(module: nn.MaxPool2d) -> spatial.MaxPool2d | None:
    if module.return_indices:
        return None
    return spatial.MaxPool2d(
        _pair(module.kernel_size),
        _pair(module.stride),
        _pair(module.padding),
        _pair(module.dilation),
        module.ceil_mode,
    )


def _avg_pool(module: nn.AvgPool2d) -> spatial.AvgPool2d | None:
    if module.divisor_override is not None:
        return None
    return spatial.AvgPool2d(
        _pair(module.kernel_size),
        _pair(module.stride),
        _pair(module.padding),
        module.ceil_mode,
        module.count_include_pad,
    )


def _adaptive_pool(module: nn.AdaptiveAvgPool2d) -> spatial.AdaptiveAvgPool2d | None:
    size = _pair(module.output_size)
    return None if None in size else spatial.AdaptiveAvgPool2d(size)


def _group_norm(module: nn.GroupNorm) -> spatial.GroupNorm | None:
    return spatial.GroupNorm(module.num_groups, module.eps) if module.affine else None


_MAKERS: dict[type[nn.Module], Any] = {
    nn.Linear: lambda module: dense.Linear(module.bias is not None),
    nn.ReLU: lambda module: dense.Relu(),
    nn.Tanh: lambda module: dense.Tanh(),
    TemperedSigmoid: lambda module: dense.TemperedSigmoid(module.scale, module.temperature, module.offset),
    nn.Flatten: _flatten,
    nn.Conv2d: _conv2d,
    nn.MaxPool2d: _max_pool,
    nn.AvgPool2d: _avg_pool,
    nn.AdaptiveAvgPool2d: _adaptive_pool,
    nn.GroupNorm: _group_norm,
}
