"""Gradients of any module: their protocol, the local models that use them, and their stacking over clients."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.func import grad, vmap
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.gradients import SampleGradients, add_to, formed_in_parts
from wirelessfl.learning.cohort.run import MatrixModels
from wirelessfl.learning.flat import FlatModel, sample_losses

_FORMED_BYTES = 64 * 2**20  # per-sample gradients held at a time on a CPU


class GeneralGradients(Protocol):
    """Batch and per-sample gradients of a module at the parameters of k clients.

    Attributes:
        model: The model.
    """

    model: FlatModel

    def weighted(self, flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """From parameters (k, d), inputs (k, B, *feature), targets and weights (k, B).

        Returns:
            The gradients (k, d) of the weighted batch losses Σ_b weights_b ℓ_b, and the unweighted losses (k, B).
        """

    def losses(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """(k, B) the losses."""

    def of_sample(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """(k, B, d) the gradients of the samples' losses."""


class StackedGradients(GeneralGradients):
    """``GeneralGradients`` by vmap over clients of grad of the loss."""

    def __init__(self, model: FlatModel) -> None:
        self.model = model
        self._weighted: Callable[..., tuple[Tensor, Tensor]] = vmap(grad(self._weighted_loss, has_aux=True))
        self._losses: Callable[..., Tensor] = vmap(self._batch_losses)
        self._of_sample: Callable[..., Tensor] = vmap(vmap(grad(self._sample_loss), in_dims=(None, 0, 0)))

    @override
    def weighted(self, flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return self._weighted(flat, inputs, targets, weights)

    @override
    def losses(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        return self._losses(flat, inputs, targets)

    @override
    def of_sample(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        return self._of_sample(flat, inputs, targets)

    def _batch_losses(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        return sample_losses(self.model.logits(flat, inputs), targets)

    def _weighted_loss(self, flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        losses = self._batch_losses(flat, inputs, targets)
        return (losses * weights).sum(), losses

    def _sample_loss(self, flat: Tensor, sample: Tensor, target: Tensor) -> Tensor:
        return self._batch_losses(flat, sample[None], target[None])[0]


class GeneralModels(MatrixModels):
    """k local models by the gradients of any module."""

    def __init__(
        self, gradients: GeneralGradients, start: Tensor, data: BlockData, correction: Tensor | None = None
    ) -> None:
        super().__init__(start, data, correction)
        self.gradients = gradients

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        active = len(batch.rows)
        gradient, losses = self.gradients.weighted(
            self.matrix[:active], self.data.inputs_of(batch), batch.targets, batch.weights
        )
        self.accumulated[0][:active].mul_(decay).add_(gradient)
        return losses

    @override
    def samples(self, batch: Batch) -> SampleGradients:
        parameters = self.matrix[: len(batch.rows)]
        inputs = self.data.inputs_of(batch)
        return GeneralSampleGradients(self.gradients, parameters, inputs, batch.targets, batch.present)


class GeneralSampleGradients(SampleGradients):
    """``SampleGradients`` of any module: norms from gradients formed in chunks, sums from one weighted backward."""

    def __init__(
        self, gradients: GeneralGradients, parameters: Tensor, inputs: Tensor, targets: Tensor, present: Tensor
    ) -> None:
        self._gradients = gradients
        self._batch = (parameters, inputs, targets)
        self.present = present
        self.losses = gradients.losses(*self._batch)

    @property
    @override
    def sizes(self) -> Sequence[int]:
        return self._gradients.model.sizes

    @override
    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        parameters, inputs, targets = self._batch

        def form(part: slice) -> Tensor:
            return self._gradients.of_sample(parameters, inputs[:, part], targets[:, part])

        each = parameters.element_size() * parameters.numel()
        return formed_in_parts(form, targets.shape[1], each, parameters.device, _FORMED_BYTES)

    @override
    def squared_norms(self) -> Tensor:
        sizes = self._gradients.model.sizes
        return torch.cat(
            [
                torch.stack([piece.square().sum(-1) for piece in torch.split(part, sizes, dim=-1)], dim=-1)
                for _, part in self.formed()
            ],
            dim=1,
        )

    @override
    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        if weights.ndim == 2:
            return add_to(into, self._gradients.weighted(*self._batch, weights.where(self.present, 0.0))[0], decay)
        return add_to(into, self._sum_by_parameter(weights.where(self.present[:, :, None], 0.0)), decay)

    def _sum_by_parameter(self, weights: Tensor) -> Tensor:
        # The sums with weights (k, B, L)
        total = torch.zeros_like(self._batch[0])
        sizes = self._gradients.model.sizes
        pieces = torch.split(total, sizes, dim=-1)
        for samples, part in self.formed():
            for layer, (piece, of_layer) in enumerate(zip(pieces, torch.split(part, sizes, dim=-1), strict=True)):
                piece += torch.einsum("kb,kbp->kp", weights[:, samples, layer], of_layer)
        return total
