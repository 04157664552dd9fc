"""First layers in the coordinates of a client's own samples.

The gradient of a linear layer that sees the data is Xᵀδ: with SGD the change of its weights never leaves the span
of the client's samples, ΔWᵀ = Xᵀ A. So A (n × outputs), one row a sample, is trained in place of W (inputs ×
outputs). The layer's outputs for the samples of a batch are then rows of X W₀ᵀ + (X Xᵀ) A + b, its gradient by A
is δ placed in the rows of the batch, and X itself is touched three times a round instead of twice a step. In exact
arithmetic both forms give the same update; momentum and the proximal term are linear and act on A as they do on W.
A correction C, added to every gradient of W, leaves the span by a multiple of itself: ΔWᵀ = Xᵀ A + s Cᵀ, the gradient
by s is 1 in every step, and the outputs have s X Cᵀ more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.products import add_product, product, takes_onednn
from wirelessfl.learning.cohort.run import LocalModels
from wirelessfl.learning.cohort.stacked import layers
from wirelessfl.learning.cohort.stacked.layers import FLOPS_PER_ELEMENT, Layer, Weights
from wirelessfl.learning.cohort.stacked.program import Program, Slot, Step, views

# With fewer, a product of MKL for each client is faster than a long, thin one for all: measured by a quarter for 10
# outputs, and slower for 196.
_FEW_OUTPUTS = 32


@dataclass(frozen=True)
class SampleSpaceLinear(Layer):
    """A first linear layer whose weights are coefficients A (k, n, outputs), a bias if there is one, and s (k, 1).

    Its inputs are rows (a, B) of the k · n samples of the block, client after client.

    Attributes:
        base: (k · n, outputs), X W₀ᵀ.
        gram: (k · n, n), X Xᵀ; None where A is never used before the end, in a round of one step.
        has_bias: whether there is one.
        along: (k · n, outputs), X Cᵀ; None without a correction, and then there is no s.
    """

    base: Tensor
    gram: Tensor | None
    has_bias: bool
    along: Tensor | None = None

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self._rows(self.base, inputs)
        if self.gram is not None:
            outputs = torch.baddbmm(outputs, self._rows(self.gram, inputs), weights[0])
        if self.has_bias:
            outputs += weights[1].unsqueeze(1)
        if self.along is not None and self.gram is not None:
            outputs.addcmul_(self._rows(self.along, inputs), weights[-1].unsqueeze(2))
        return outputs, inputs

    @staticmethod
    def _rows(matrix: Tensor, rows: Tensor) -> Tensor:
        return matrix.index_select(0, rows.flatten()).view(*rows.shape, -1)

    @override
    def backward(self, weights: Weights, saved: Tensor, delta: Tensor) -> Tensor:
        raise NotImplementedError("there is no layer before the data")

    def add_gradient(self, saved: Tensor, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """Gradient in sample space: δ in the rows of the batch, as ∂(X W₀ᵀ + X Xᵀ A)/∂W = δᵀX = (Xᵀδ)ᵀ."""
        coefficients = into[0].flatten(0, 1)
        coefficients.mul_(decay).index_add_(0, saved.flatten(), deltas[0].flatten(0, 1).to(coefficients.dtype))
        if self.has_bias:
            add_to(into[1], deltas[1].sum(1), decay)
        if self.along is not None:
            into[-1].mul_(decay).add_(1.0)


class SampleSpace:
    """Training in sample space of a program that begins with a linear layer on the data.

    Attributes:
        weight: Where the first weights (outputs, inputs) lie in the flat vector.
        behind: The other parameters' layers, on the flat vector without these weights as second matrix.
        bias: The slot of the first layer's bias, likewise; empty where there is none.
    """

    def __init__(self, program: Program) -> None:
        first = program.steps[program.first_trained]
        self.weight = first.slots[0]
        self.bias = tuple(self._moved(slot) for slot in first.slots[1:])
        self.behind = tuple(
            Step(step.layer, tuple(self._moved(slot) for slot in step.slots))
            for step in program.steps[program.first_trained + 1 :]
        )

    @staticmethod
    def fits(program: Program) -> bool:
        """Whether the first layer with parameters is linear and sees the data itself."""
        *before, first = [step.layer for step in program.steps[: program.first_trained + 1]]
        return isinstance(first, layers.Linear) and all(isinstance(layer, layers.Flatten) for layer in before)

    def _moved(self, slot: Slot) -> Slot:
        # A slot behind the first weights, once these are gone
        return Slot(slot.first - self.weight.size, slot.shape, matrix=1)

    def pays_off(self, data: BlockData) -> bool:
        """Whether training here takes less time than with the weights themselves, by counting operations."""
        direct = len(data.batches) * self.weight.size * (4 * data.largest_batch + 2 * FLOPS_PER_ELEMENT)
        return self.operations(data) < direct

    def operations(self, data: BlockData) -> int:
        """Operations of a client here, those that pass over memory counted as the products that take as long."""
        outputs, inputs = self.weight.shape
        samples, steps = data.own_rows.shape[1], len(data.batches)
        once = 4 * samples * self.weight.size + 2 * samples**2 * inputs * (steps > 1)
        step = samples * outputs * (2 * data.largest_batch * (steps > 1) + 3 * FLOPS_PER_ELEMENT)
        return once + steps * step

    def models(self, start: Tensor, data: BlockData, correction: Tensor | None = None) -> LocalModels:
        """The local models of a block at the global model ``start`` (d,), with a correction (k, d) of gradients."""
        # Before all else: where the updates of the last block lay there is room for these, until others take of it.
        updates = start.new_empty(data.clients, len(start))
        outputs, features = self.weight.shape
        first_weight, rest = start[: self.weight.size], start[self.weight.size :]
        inputs = data.own_inputs().flatten(2)
        base = _outputs(inputs, first_weight.view(outputs, features))
        several = len(data.batches) > 1
        gram = torch.bmm(inputs, inputs.transpose(1, 2)).flatten(0, 1) if several else None
        slots, along = (Slot(0, (inputs.shape[1], outputs)), *self.bias), None
        if correction is not None:
            slots, own = (*slots, Slot(0, (1,), matrix=2)), self.weight.of([correction])
            along = torch.bmm(inputs, own.transpose(1, 2)).flatten(0, 1) if several else base
        first = Step(SampleSpaceLinear(base, gram, len(self.bias) > 0, along), slots)
        return SampleSpaceModels(Program((first, *self.behind)), inputs, rest, updates, correction)


def _outputs(inputs: Tensor, weight: Tensor) -> Tensor:
    # (k · n, outputs) the products of ``inputs`` (k, n, inputs) with a ``weight`` (outputs, inputs) that all share
    rows = inputs.flatten(0, 1)
    if len(weight) < _FEW_OUTPUTS and not takes_onednn(rows, weight.T):
        return torch.matmul(weight, inputs.transpose(1, 2)).transpose(1, 2).flatten(0, 1)
    return product(rows, weight.T)


class SampleSpaceModels(LocalModels):
    """k local models with the first layer in sample space, whose update is ΔW = Aᵀ X + s C."""

    def __init__(
        self, program: Program, inputs: Tensor, rest: Tensor, updates: Tensor, correction: Tensor | None
    ) -> None:
        self.program, self.inputs, self._updates, self._correction = program, inputs, updates, correction
        clients, samples = inputs.shape[:2]
        coefficients = inputs.new_zeros(clients, program.steps[0].slots[0].size)
        self.trained = [coefficients, rest.expand(clients, -1).clone()]
        self.anchors = [inputs.new_zeros(()), rest]
        if correction is not None:
            self.trained.append(inputs.new_zeros(clients, 1))
            self.anchors.append(inputs.new_zeros(()))
            self.corrections = [None, correction[:, -len(rest) :] if len(rest) else None, None]
        self.accumulated = [torch.zeros_like(matrix) for matrix in self.trained]
        self._first_rows = torch.arange(0, clients * samples, samples, device=inputs.device)[:, None]
        self._views = views(program, self)

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        weights, into = self._views(len(batch.rows))
        rows = batch.places + self._first_rows[: len(batch.rows)]
        return self.program.add_gradient(weights, rows, batch.targets, batch.weights, into, decay)

    @override
    def updates(self) -> Tensor:
        coefficients, rest, *along = self.trained
        outputs = self.program.steps[0].slots[0].shape[1]
        features = self.inputs.shape[2]
        updates, size = self._updates, outputs * features
        first_weight, others = updates[:, :size], updates[:, size:]
        transposed = coefficients.view(len(rest), -1, outputs).transpose(1, 2)
        add_product(first_weight.view(-1, outputs, features), transposed, self.inputs, 0.0)
        if self._correction is not None:  # a product that adds to what is there takes longer than both
            first_weight.addcmul_(self._correction[:, :size], along[0])
        torch.sub(rest, self.anchors[1], out=others)
        return updates
