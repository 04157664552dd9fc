"""Large linear layers behind convolutions in the coordinates of the inputs that they have seen.

The gradient of a linear layer in step t is δ_tᵀ x_t, with its inputs x_t and the derivatives δ_t by its outputs, B rows
each. With SGD the change of its weights after some steps is therefore ΔW = Aᵀ X, where X (R, inputs) are the inputs of
all steps and A (R, outputs) coefficients, one row for each. So A is trained in place of W (outputs × inputs), of which
there are many more: its outputs are x W₀ᵀ + (x Xᵀ) A, the derivative by its inputs δ W₀ + (δ Aᵀ) X, and its gradient
by A is δ in the rows of its own step. W₀ is the same for all clients, and ΔW is formed once, at the end. In exact
arithmetic this is the same update; momentum and the proximal term are linear and act on A as they do on W.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.gradients import add_to
from wirelessfl.learning.cohort.products import add_product, product
from wirelessfl.learning.cohort.run import LocalModels
from wirelessfl.learning.cohort.stacked import layers
from wirelessfl.learning.cohort.stacked.convolution import Conv2d
from wirelessfl.learning.cohort.stacked.layers import FLOPS_PER_ELEMENT, Layer, Weights
from wirelessfl.learning.cohort.stacked.program import Program, Slot, Step, views

_LARGE = 2**18  # weights of a layer that a cache of a core does not hold beside gradient and images
_PASSES = 7  # over weights, gradient and update in a step: two products, accumulation, optimizer


class RecordedLinear(Layer):
    """A linear layer whose weights are coefficients A (k, R, outputs) and, if there is one, a bias.

    ``saved`` is the rows of X of the step.

    Args:
        weight: (outputs, inputs) W₀.
        rows: Of X that belong to each step.
        clients: k.
    """

    def __init__(self, weight: Tensor, rows: Sequence[slice], clients: int) -> None:
        self._weight, self._rows, self._step = weight, rows, -1
        self.inputs = weight.new_zeros(clients, rows[-1].stop, weight.shape[1])

    @override
    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, slice]:
        self._step += 1
        now, active = self._rows[self._step], len(inputs)
        self.inputs[:active, now] = inputs
        outputs = product(inputs.flatten(0, 1), self._weight.T).view(*inputs.shape[:2], -1)
        if now.start:
            seen = self.inputs[:active, : now.start]
            add_product(outputs, torch.bmm(inputs, seen.mT), weights[0][:, : now.start], 1.0)
        if len(weights) > 1:
            outputs += weights[1].unsqueeze(1)
        return outputs, now

    @override
    def backward(self, weights: Weights, saved: slice, delta: Tensor) -> Tensor:
        derivative = product(delta.flatten(0, 1), self._weight).view(*delta.shape[:2], -1)
        if saved.start:
            along = torch.bmm(delta, weights[0][:, : saved.start].mT)
            add_product(derivative, along, self.inputs[: len(delta), : saved.start], 1.0)
        return derivative

    def add_gradient(self, saved: slice, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """Gradient by the coefficients: δ in the rows of the step, whose coefficients are zero before it."""
        into[0][:, : saved.start].mul_(decay)
        into[0][:, saved] = deltas[0]
        if len(into) > 1:
            add_to(into[1], deltas[1].sum(1), decay)


@dataclass(frozen=True)
class ActivationSpace:
    """Training of a program, some of whose linear layers are in the coordinates of their inputs.

    Attributes:
        program: The program.
        chosen: Positions of these layers.
    """

    program: Program
    chosen: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, batch: int, steps: int) -> "ActivationSpace | None":
        """The layers where this takes less time than with the weights themselves, by counting operations.

        Only behind convolutions; None where there is no such layer.

        Args:
            program: The program.
            batch: Samples of a client in a step.
            steps: Local steps.
        """
        convolutional = any(isinstance(step.layer, Conv2d) for step in program.steps)
        chosen = tuple(
            position
            for position, step in enumerate(program.steps)
            if convolutional and isinstance(step.layer, layers.Linear) and _pays_off(step.slots[0].shape, batch, steps)
        )
        return cls(program, chosen) if chosen else None

    def numbers(self, dimension: int, batch: int, steps: int) -> int:
        """Numbers that a client takes for parameters, accumulated gradient and update, in place of 3d."""
        slots = [self.program.steps[position].slots[0] for position in self.chosen]
        coefficients = batch * steps * sum(inputs + 2 * outputs for outputs, inputs in (slot.shape for slot in slots))
        return 3 * dimension - 2 * sum(slot.size for slot in slots) + coefficients

    def models(self, start: Tensor, data: BlockData) -> "ActivationSpaceModels":
        """The local models of a block at the global model ``start`` (d,)."""
        # Before all else: where the updates of the last block lay there is room for these, until others take of it.
        updates = start.new_empty(data.clients, len(start))
        rows, first = [], 0
        for batch in data.batches:
            rows.append(slice(first, first + batch.rows.shape[1]))
            first = rows[-1].stop
        steps: list[Step] = []
        own: dict[int, Slot] = {}
        kept: list[Slot] = []
        width = 0
        for position, step in enumerate(self.program.steps):
            slots = []
            for index, slot in enumerate(step.slots):
                if position in self.chosen and index == 0:
                    own[position] = slot
                    slots.append(Slot(0, (first, slot.shape[0]), matrix=len(own)))
                else:
                    kept.append(slot)
                    slots.append(Slot(width, slot.shape))
                    width += slot.size
            layer = step.layer
            if position in own:
                layer = RecordedLinear(own[position].of([start[None]])[0], rows, data.clients)
            steps.append(Step(layer, tuple(slots)))
        rest = torch.cat([start[slot.first : slot.first + slot.size] for slot in kept])
        return ActivationSpaceModels(Program(tuple(steps)), own, kept, rest, updates, data)


def _pays_off(shape: Sequence[int], batch: int, steps: int) -> bool:
    outputs, inputs = shape
    weights, rows = outputs * inputs, batch * steps
    if weights < _LARGE:
        return False
    direct = steps * weights * (6 * batch + _PASSES * FLOPS_PER_ELEMENT)
    once = weights * (2 * rows + FLOPS_PER_ELEMENT)
    step = 4 * batch * weights + rows * (2 * batch * (inputs + outputs) + 3 * FLOPS_PER_ELEMENT * outputs)
    return once + steps * step < direct


class ActivationSpaceModels(LocalModels):
    """k local models with some linear layers in the coordinates of their inputs.

    Args:
        program: The layers; of the first matrix are all parameters but the weights of these.
        own: Place of these weights in the flat vector, by layer.
        kept: Places of the other parameters.
        rest: Those at the global model, one after the other.
        updates: (k, d) memory.
        data: Of the clients.
    """

    def __init__(
        self, program: Program, own: dict[int, Slot], kept: list[Slot], rest: Tensor, updates: Tensor, data: BlockData
    ) -> None:
        self.program, self.data, self._own, self._kept, self._updates = program, data, own, kept, updates
        clients = data.clients
        coefficients = [rest.new_zeros(clients, program.steps[position].slots[0].size) for position in own]
        self.trained = [rest.expand(clients, -1).clone(), *coefficients]
        self.accumulated = [torch.zeros_like(matrix) for matrix in self.trained]
        self.anchors = [rest, *(rest.new_zeros(()) for _ in own)]
        self._views = views(program, self)

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        weights, into = self._views(len(batch.rows))
        inputs = self.data.inputs_of(batch)
        return self.program.of_batch(batch).add_gradient(weights, inputs, batch.targets, batch.weights, into, decay)

    @override
    def updates(self) -> Tensor:
        matrix, *_ = self.trained
        change = matrix.sub_(self.anchors[0])
        parts = torch.split(change, [slot.size for slot in self._kept], dim=1)
        for slot, part in zip(self._kept, parts, strict=True):
            self._updates[:, slot.first : slot.first + slot.size] = part
        for position, slot in self._own.items():
            step = self.program.steps[position]
            assert isinstance(step.layer, RecordedLinear)
            coefficients = step.slots[0].of(self.trained).mT
            add_product(slot.of([self._updates]), coefficients, step.layer.inputs, 0.0)
        return self._updates
