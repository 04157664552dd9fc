"""Layers of the stacked engine, and those of dense networks.

Of k clients each has parameters of its own and a batch of B samples.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.products import add_product, batched_product

Saved: TypeAlias = Any  # what a layer keeps from forward for backward; its own business
Weights: TypeAlias = Sequence[Tensor]  # its parameters (k, *shape), in the module's order


FLOPS_PER_ELEMENT = 25
"""Operations of a matrix product that take as long as a pass over one number in memory."""


class HeldGradients(NamedTuple):
    """Per-sample gradients by one parameter that are held between their norms and their weighted sum.

    Attributes:
        rows: (k, B, n), the elements in any order.
        arranged: From (..., n) to (..., *shape) of the parameter.
    """

    rows: Tensor
    arranged: Callable[[Tensor], Tensor]

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """(k, *shape) Σ_b of client i's sample b times ``weights[i, b]``."""
        return self.arranged(torch.bmm(weights.unsqueeze(1), self.rows).squeeze(1))


class Layer(Protocol):
    """A layer without parameters, or the part of any layer that concerns its inputs.

    Samples are stacked as (k, B, ...), or as images in the layout of ``spatial``. Nothing is changed in place but
    what a layer with parameters gave, which does not keep it: any other may keep its outputs for the backward pass.
    """

    def of_counts(self, counts: Tensor) -> Self:
        """The layer for a batch of so many samples of each client, (k,), the others absent; by default the same.

        Outputs of absent samples may be zero; derivatives by them are.
        """
        return self

    @property
    def takes_zeros(self) -> bool:
        """Whether outputs of inputs that are all zero are finite, and derivatives by them; by default they are."""
        return True

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Saved]:
        """The outputs, and what the backward pass needs."""

    def backward(self, weights: Weights, saved: Saved, delta: Tensor) -> Tensor:
        """The derivative by the inputs, from ``delta``, that by the outputs.

        A layer without parameters may overwrite ``delta``: nobody else holds it.
        """


class TrainedLayer(Layer, Protocol):
    """A layer with parameters.

    ``deltas`` holds one derivative by the outputs for each parameter. They are the same where samples are
    weighted alike in all parameters.
    """

    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        """A new ``delta`` with client i's sample b times ``weights[i, b]`` (k, B)."""

    def add_gradient(self, saved: Saved, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """Sets into ← decay · into + Σ_b gradient of sample b, for each parameter."""

    def add_weighted_gradients(
        self, saved: Saved, delta: Tensor, weights: Sequence[Tensor], into: Weights, decay: float
    ) -> None:
        """Sets into ← decay · into + Σ_b weights_b · the gradient of sample b, the one that has the ``squared_norms``.

        Args:
            saved: Of ``forward``.
            delta: The derivative by the outputs.
            weights: (k, B) for each parameter, one and the same where samples are weighted alike in all.
            into: Of each parameter (k, *shape).
            decay: What it is multiplied by.
        """
        distinct = {id(each): each for each in weights}
        deltas = {name: self.weighted(delta, each) for name, each in distinct.items()}
        self.add_gradient(saved, [deltas[id(each)] for each in weights], into, decay)

    def squared_norms(self, saved: Saved, delta: Tensor) -> list[Tensor]:
        """(k, B) squared norm of each sample's gradient by each parameter (Goodfellow 2015 for linear layers)."""

    def held_gradients(self, saved: Saved, delta: Tensor) -> list[HeldGradients] | None:
        """The gradients by each parameter, where norms need them anyway and memory has room; by default None."""
        return None

    def inner_products(self, saved: Saved, delta: Tensor, vectors: Weights) -> list[Tensor]:
        """Inner products (k, B) of each sample's gradient with ``vectors``, of the parameters' shapes; to be added up.

        Outputs are linear in the parameters: what counts is those at ``vectors``, times the derivatives by the outputs.
        """

    @property
    def has_factors(self) -> bool:
        """Whether ``pieces`` gives factors of the gradients, which are not formed; by default it does not."""
        return False

    def pieces(self, saved: Saved, delta: Tensor, part: slice) -> list[tuple[Tensor, Tensor | None]]:
        """Of each parameter the gradients (k, b, n) of samples in ``part``, or outer products (k, b, m), (k, b, n)."""
        return [(gradient.flatten(2), None) for gradient in self.sample_gradients(saved, delta, part)]

    def sample_gradients(self, saved: Saved, delta: Tensor, part: slice) -> list[Tensor]:
        """(k, b, *shape) gradient by each parameter of each sample in ``part``."""


def squared_norm(rows: Tensor) -> Tensor:
    """(k, B) squared norms of (k, B, n)."""
    # Kept and then taken away: without values torch 2.11 keeps an axis of length 1 of its own accord
    return cast(Tensor, torch.linalg.vector_norm(rows, dim=-1, keepdim=True)).squeeze(-1).square_()


class FrozenLayers(Layer):
    """Layers before the first that is trained: the same for all clients, of any kind, and nobody asks for derivatives.

    Args:
        module: Of samples (N, ...) to their outputs (N, ...), on a CPU.
    """

    def __init__(self, module: nn.Module) -> None:
        self._modules = {torch.device("cpu"): module}

    def like(self, inputs: Tensor) -> nn.Module:
        """The module on the device and in the dtype of ``inputs``; kept in single precision, in which runs compute."""
        device = inputs.device
        if device not in self._modules:
            self._modules[device] = copy.deepcopy(self._modules[torch.device("cpu")]).to(device)
        module = self._modules[device]
        return module if inputs.dtype == torch.float32 else copy.deepcopy(module).to(inputs.dtype)

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, None]:
        outputs = self.like(inputs)(inputs.flatten(0, 1))
        return outputs.view(*inputs.shape[:2], *outputs.shape[1:]), None

    @override
    def backward(self, weights: Weights, saved: None, delta: Tensor) -> Tensor:
        raise NotImplementedError("no layer before the first that is trained has derivatives")


@dataclass(frozen=True)
class Linear(TrainedLayer):
    """y = x Wᵀ + b with weights (k, out, in) and biases (k, out); ``saved`` is x (k, B, in)."""

    has_bias: bool

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        transposed = weights[0].transpose(1, 2)
        bias = weights[1].unsqueeze(1) if self.has_bias else None
        return torch.bmm(inputs, transposed) if bias is None else torch.baddbmm(bias, inputs, transposed), inputs

    @override
    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        return batched_product(delta, weights[0])

    @override
    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        return delta * weights.unsqueeze(-1)

    @override
    def add_gradient(self, saved: Tensor, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        add_product(into[0], deltas[0].transpose(1, 2), saved, decay)
        if self.has_bias:
            add_to(into[1], deltas[1].sum(1), decay)

    @override
    def squared_norms(self, saved: Tensor, delta: Tensor) -> list[Tensor]:
        of_delta = squared_norm(delta)  # ‖δ_b xᵀ_b‖² = ‖δ_b‖² ‖x_b‖²
        of_weight = of_delta * squared_norm(saved)
        return [of_weight, of_delta] if self.has_bias else [of_weight]

    @override
    def inner_products(self, saved: Tensor, delta: Tensor, vectors: Weights) -> list[Tensor]:
        of_weight = (torch.bmm(saved, vectors[0].mT) * delta).sum(-1)
        return [of_weight, (vectors[1].unsqueeze(1) * delta).sum(-1)] if self.has_bias else [of_weight]

    @property
    @override
    def has_factors(self) -> bool:
        return True

    @override
    def pieces(self, saved: Tensor, delta: Tensor, part: slice) -> list[tuple[Tensor, Tensor | None]]:
        delta = delta[:, part]
        of_weight = delta, saved[:, part]  # δ_b xᵀ_b
        return [of_weight, (delta, None)] if self.has_bias else [of_weight]

    @override
    def sample_gradients(self, saved: Tensor, delta: Tensor, part: slice) -> list[Tensor]:
        delta = delta[:, part]
        of_weight = delta[..., :, None] * saved[:, part, None, :]
        return [of_weight, delta] if self.has_bias else [of_weight]


@dataclass(frozen=True)
class Elementwise(Layer):
    """A function of each number whose derivative follows from its value; ``saved`` is the output y.

    Attributes:
        function: y of x.
        derivative: From δ and y the derivative by x; may overwrite δ.
    """

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor, Tensor], Tensor]

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.function(inputs)
        return outputs, outputs

    @override
    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        return self.derivative(delta, saved)


RELU = Elementwise(
    torch.relu, lambda delta, output: torch.ops.aten.threshold_backward(delta, output, 0, grad_input=delta)
)
RELU_IN_PLACE = replace(RELU, function=torch.relu_)
"""The same in the memory of its inputs, which no layer needs where a layer with parameters made them."""
TANH = Elementwise(torch.tanh, torch.ops.aten.tanh_backward)


@dataclass(frozen=True)
class TemperedSigmoid(Layer):
    """s · sigmoid(T x) − o; ``saved`` is p = sigmoid(T x), the derivative s T p (1 − p)."""

    scale: float
    temperature: float
    offset: float

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        probability = torch.sigmoid(inputs * self.temperature)
        return probability * self.scale - self.offset, probability

    @override
    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        return cast(Tensor, torch.ops.aten.sigmoid_backward(delta, saved)).mul_(self.scale * self.temperature)


@dataclass(frozen=True)
class Flatten(Layer):
    """All dimensions of a sample become one; ``saved`` is the shape that they had."""

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, torch.Size]:
        return inputs.flatten(2), inputs.shape

    @override
    def backward(self, weights: Weights, saved: torch.Size, delta: Tensor) -> Tensor:
        return delta.reshape(saved)
