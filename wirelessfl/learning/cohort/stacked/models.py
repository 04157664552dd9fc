"""The local models of one block in a program's closed forms."""

from collections.abc import Iterator

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.forming import formed_in_parts
from wirelessfl.learning.cohort.local import MatrixModels
from wirelessfl.learning.cohort.stacked.layer import Saved, Weights
from wirelessfl.learning.cohort.stacked.program import Program, Record, Views
from wirelessfl.learning.cohort.transform import SampleGradients
from wirelessfl.learning.objective import losses_and_derivative

_FORMED_BYTES = 8 * 2**20  # per-sample gradients held at a time on a CPU: its cache holds them until norms are taken


class StackedModels(MatrixModels):
    """k local models by the closed forms of a program's layers."""

    def __init__(self, program: Program, start: Tensor, data: BlockData) -> None:
        super().__init__(start, data)
        self.program = program
        self._weights = Views(program, self.trained)
        self._gradients = Views(program, self.accumulated)

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        active = len(batch.rows)
        weights, into = self._weights.first(active), self._gradients.first(active)
        inputs = self.data.inputs_at(batch.rows)
        return self.program.add_gradient(weights, inputs, batch.targets, batch.weights, into, decay)

    @override
    def samples(self, batch: Batch) -> SampleGradients:
        weights = self._weights.first(len(batch.rows))
        logits, saved = self.program.forward(weights, self.data.inputs_at(batch.rows))
        losses, delta = losses_and_derivative(logits, batch.targets, batch.present.to(self.matrix.dtype))
        passed = self.program.backward(weights, saved, delta)
        # Norms and sums are formed in the precision of the parameters, also where products are not.
        records = [r._replace(saved=_cast(r.saved, delta.dtype), delta=r.delta.to(delta.dtype)) for r in passed]
        return StackedSampleGradients(self.program, self.matrix.shape[1], records[::-1], batch.present, losses)


class StackedSampleGradients(SampleGradients):
    """``SampleGradients`` from one pass: as a sample's loss is weighted, so is its derivative by every output."""

    def __init__(
        self, program: Program, dimension: int, records: list[Record], present: Tensor, losses: Tensor
    ) -> None:
        self._program = program
        self._dimension = dimension
        self._records = records
        self.present = present
        self.losses = losses

    @property
    @override
    def sizes(self) -> list[int]:
        return [slot.size for step in self._program.steps for slot in step.slots]

    @override
    def squared_norms(self) -> Tensor:
        columns = [norm for r in self._records for norm in r.layer.squared_norms(r.saved, r.delta)]
        return torch.stack(columns, dim=-1)

    @override
    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        weights = weights.where(self.present if weights.ndim == 2 else self.present[..., None], 0.0)
        total = weights.new_empty(len(weights), self._dimension) if into is None else into
        column = 0
        for record, own in zip(self._records, self._own(total), strict=True):
            if weights.ndim == 2:
                deltas = [record.layer.weighted(record.delta, weights)] * len(own)
            else:
                deltas = [record.layer.weighted(record.delta, weights[..., column + i]) for i in range(len(own))]
            record.layer.add_gradient(record.saved, deltas, own, decay)
            column += len(own)
        return total

    def _own(self, matrix: Tensor) -> list[Weights]:
        # Of each recorded layer its parameters in ``matrix`` (k, d)
        return [views for views in self._program.weights([matrix]) if views]

    @override
    def products(self) -> list[tuple[Tensor, Tensor]] | None:
        of_layers = [record.layer.products(record.saved, record.delta) for record in self._records]
        known = [products for products in of_layers if products is not None]
        return None if len(known) < len(of_layers) else [product for products in known for product in products]

    @override
    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        clients, samples = self.present.shape
        each = self.losses.element_size() * clients * self._dimension

        def form(part: slice) -> Tensor:
            pieces = [
                gradient.flatten(2)
                for r in self._records
                for gradient in r.layer.sample_gradients(r.saved, r.delta, part)
            ]
            return torch.cat(pieces, dim=2)

        return formed_in_parts(form, samples, each, self.losses.device, _FORMED_BYTES)


def _cast(saved: Saved, dtype: torch.dtype) -> Saved:
    # What a layer saved, with floating-point numbers in another precision
    if isinstance(saved, Tensor):
        return saved.to(dtype) if saved.is_floating_point() else saved
    if isinstance(saved, tuple) and not isinstance(saved, torch.Size):
        parts = [_cast(part, dtype) for part in saved]
        return type(saved)._make(parts) if hasattr(saved, "_make") else tuple(parts)
    return saved
