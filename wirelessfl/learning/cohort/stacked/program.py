"""A model as a list of stacked layers, the passes through it, and a block's local models in its closed forms."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, cast

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.gradients import Formed, Pieces, SampleGradients, add_to, formed_in_parts
from wirelessfl.learning.cohort.run import LocalModels, MatrixModels
from wirelessfl.learning.cohort.stacked.layers import HeldGradients, Layer, Saved, TrainedLayer, Weights, squared_norm
from wirelessfl.learning.flat import losses_and_derivative


@dataclass(frozen=True)
class Slot:
    """Place of one parameter: a matrix of the block, and the first column."""

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
    """One pass through a trained layer: enough for its gradient under any weighting of the samples."""

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

    def of_batch(self, batch: Batch) -> "Program":
        """The program for a batch, of whose absent samples some layers compute nothing."""
        counts = batch.counts
        if counts is None or not all(step.layer.takes_zeros for step in self.steps):
            return self
        return Program(tuple(replace(step, layer=step.layer.of_counts(counts)) for step in self.steps))

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


def views(program: Program, models: LocalModels) -> Callable[[int], list[list[Weights]]]:
    """Parameters and accumulated gradients by layer, from the number of clients; made anew only when that changes."""
    both = models.trained, models.accumulated  # not the models: with them, memory would be freed a collection later

    @lru_cache(maxsize=1)
    def of_first(clients: int) -> list[list[Weights]]:
        return [program.weights([matrix[:clients] for matrix in matrices]) for matrices in both]

    return of_first


_FORMED_BYTES = 8 * 2**20  # per-sample gradients held at a time on a CPU: its cache holds them until norms are taken


class StackedModels(MatrixModels):
    """k local models by the closed forms of a program's layers."""

    def __init__(self, program: Program, start: Tensor, data: BlockData, correction: Tensor | None = None) -> None:
        super().__init__(start, data, correction)
        self.program = program
        self._views = views(program, self)

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        weights, into = self._views(len(batch.rows))
        inputs = self.data.inputs_of(batch)
        program = self.program.of_batch(batch)
        return program.add_gradient(weights, inputs, batch.targets, batch.weights, into, decay)

    @override
    def samples(self, batch: Batch) -> SampleGradients:
        weights, _ = self._views(len(batch.rows))
        program = self.program.of_batch(batch)
        logits, saved = program.forward(weights, self.data.inputs_of(batch))
        losses, delta = losses_and_derivative(logits, batch.targets, batch.present.to(self.matrix.dtype))
        passed = program.backward(weights, saved, delta)
        # Norms and sums are formed in the precision of the parameters, also where products are not.
        records = [r._replace(saved=_cast(r.saved, delta.dtype), delta=r.delta.to(delta.dtype)) for r in passed]
        return StackedSampleGradients(program, self.matrix.shape[1], records[::-1], batch.present, losses)


@dataclass
class StackedSampleGradients(SampleGradients):
    """``SampleGradients`` from one pass: as a sample's loss is weighted, so is its derivative by every output."""

    program: Program
    dimension: int
    records: list[Record]
    present: Tensor
    losses: Tensor
    _held: dict[int, list[HeldGradients]] = field(default_factory=dict, init=False)

    @property
    @override
    def sizes(self) -> list[int]:
        return [slot.size for step in self.program.steps for slot in step.slots]

    @override
    def squared_norms(self) -> Tensor:
        norms: list[Tensor] = []
        for record in self.records:
            held = record.layer.held_gradients(record.saved, record.delta)
            if held is None:
                norms += record.layer.squared_norms(record.saved, record.delta)
            else:
                self._held[record.position] = held
                norms += [squared_norm(gradients.rows) for gradients in held]
        return torch.stack(norms, dim=-1)

    @override
    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        weights = weights.where(self.present if weights.ndim == 2 else self.present[..., None], 0.0)
        total = weights.new_empty(len(weights), self.dimension) if into is None else into
        columns = None if weights.ndim == 2 else iter(weights.unbind(-1))
        for record, own in zip(self.records, filter(None, self.program.weights([total])), strict=True):
            by_parameter = [weights] * len(own) if columns is None else list(islice(columns, len(own)))
            if (held := self._held.get(record.position)) is not None:
                for gradients, each, place in zip(held, by_parameter, own, strict=True):
                    add_to(place, gradients.weighted_sum(each), decay)
            else:
                record.layer.add_weighted_gradients(record.saved, record.delta, by_parameter, own, decay)
        return total

    @override
    def inner_products(self, vectors: Tensor) -> Tensor:
        total = self.losses.new_zeros(self.present.shape, dtype=vectors.dtype)
        for record, own in zip(self.records, filter(None, self.program.weights([vectors])), strict=True):
            for products in record.layer.inner_products(record.saved, record.delta, own):
                total += products
        return total

    @override
    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        def form(part: slice) -> Tensor:
            of_layers = [self._formed(record, part) for record in self.records]
            return torch.cat([gradient.flatten(2) for of_layer in of_layers for gradient in of_layer], dim=2)

        return self._in_parts(form, self.dimension)

    @override
    def pieces(self) -> Iterator[Pieces]:
        def form(part: slice) -> Pieces:
            of_layers = [record.layer.pieces(record.saved, record.delta, part) for record in self.records]
            return [piece for of_layer in of_layers for piece in of_layer]

        formed = [record.position for record in self.records if not record.layer.has_factors]
        numbers = sum(slot.size for position in formed for slot in self.program.steps[position].slots)
        return (pieces for _, pieces in self._in_parts(form, numbers))

    def _in_parts(self, form: Callable[[slice], Formed], numbers: int) -> Iterator[tuple[slice, Formed]]:
        # Where so many numbers of every sample are formed
        clients, samples = self.present.shape
        each = self.losses.element_size() * clients * numbers
        return formed_in_parts(form, samples, each, self.losses.device, _FORMED_BYTES)

    def _formed(self, record: Record, part: slice) -> list[Tensor]:
        # Those that norms were taken of, where they are held: others may be rounded in another way
        if (held := self._held.get(record.position)) is None:
            return record.layer.sample_gradients(record.saved, record.delta, part)
        return [gradients.arranged(gradients.rows[:, part]) for gradients in held]


def _cast(saved: Saved, dtype: torch.dtype) -> Saved:
    # What a layer saved, with floating-point numbers in another precision
    if isinstance(saved, Tensor):
        return saved.to(dtype) if saved.is_floating_point() else saved
    if isinstance(saved, tuple) and not isinstance(saved, torch.Size):
        return tuple(_cast(part, dtype) for part in saved)
    return saved
