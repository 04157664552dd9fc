"""A model as a list of stacked layers, and the passes through it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from torch import Tensor

from wirelessfl.learning.cohort.stacked.layer import Layer, Saved, TrainedLayer, Weights
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
