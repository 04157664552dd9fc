"""Gradients of a module client after client, by autograd: for modules that gain nothing from stacked clients on a CPU.

A grouped convolution, or a step of a recurrent layer in k small products, is slower there than k calls of the kernels
for one client, whose images and weights stay in the caches.
"""

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.general import GeneralGradients, GeneralModels
from wirelessfl.learning.flat import FlatModel, sample_losses
from wirelessfl.learning.layout import arranged
from wirelessfl.learning.winograd.modules import MinimallyFiltered


def trains_client_by_client(model: FlatModel) -> bool:
    """Whether a model without closed forms is trained client by client on a CPU.

    All are that have parameters elsewhere than in linear layers, adapted ones included: k clients' linear layers are
    one batched product, which spares the calls of k small ones.
    """
    holders = (part for part in model.module.modules() if list(part.parameters(recurse=False)))
    return not all(isinstance(part, nn.Linear) for part in holders)


class LoopedGradients(GeneralGradients):
    """``GeneralGradients`` by one backward pass for each client.

    Args:
        model: The model, around a module that no other thread uses.
        layout: Memory format of the inputs where they are images.
    """

    def __init__(self, model: FlatModel, layout: torch.memory_format) -> None:
        self.model, self.layout = model, layout

    def add(self, flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor, into: Tensor, decay: float) -> Tensor:
        """Sets into ← decay · into + the gradient of Σ_b weights_b ℓ_b, of one client.

        Args:
            flat: (d,) its parameters.
            inputs: (B, *feature).
            targets: (B,).
            weights: (B,).
            into: (d,).
            decay: What it is multiplied by; where it is 0, nothing that it held matters.

        Returns:
            (B,) unweighted losses.
        """
        own = {name: value.detach().requires_grad_() for name, value in self.model.unflatten(flat).items()}
        with torch.enable_grad():
            losses = self._losses(own, inputs, targets)
            found = torch.autograd.grad((losses * weights).sum(), list(own.values()), materialize_grads=True)
        for gradient, place in zip(found, self.model.unflatten(into).values(), strict=True):
            if decay:
                torch.add(gradient, place, alpha=decay, out=place)  # one pass, where the model is larger than caches
            else:
                place.copy_(gradient)
        return losses.detach()

    @override
    def weighted(self, flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        gradients = torch.empty_like(flat)
        batches = zip(flat, inputs, targets, weights, gradients, strict=True)
        return gradients, torch.stack([self.add(*batch, decay=0.0) for batch in batches])

    @override
    def losses(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        batches = zip(flat, inputs, targets, strict=True)
        with torch.no_grad():
            return torch.stack([self._losses(self.model.unflatten(row), *batch) for row, *batch in batches])

    @override
    def of_sample(self, flat: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        each = vmap(grad(self._sample_loss), in_dims=(None, 0, 0))
        return torch.stack([each(*batch) for batch in zip(flat, inputs, targets, strict=True)])

    def _losses(self, parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        images = arranged(inputs, self.layout) if inputs.ndim == 4 else inputs
        return sample_losses(self.model.logits_at(parameters, images), targets)

    def _sample_loss(self, flat: Tensor, sample: Tensor, target: Tensor) -> Tensor:
        return sample_losses(self.model.logits(flat, sample[None]), target[None])[0]


class LoopedModels(GeneralModels):
    """k local models whose gradients are taken client after client, and added where they are accumulated."""

    gradients: LoopedGradients

    def __init__(
        self, gradients: LoopedGradients, start: Tensor, data: BlockData, correction: Tensor | None = None
    ) -> None:
        super().__init__(gradients, start, data, correction)

    @override
    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        active = len(batch.rows)
        batches = zip(self.matrix[:active], batch.targets, batch.weights, self.accumulated[0][:active], strict=True)
        # Not where samples are weighted by their norms: these are those of direct sums
        with MinimallyFiltered():
            losses = [
                self.gradients.add(flat, self.data.inputs_of(batch, slice(i, i + 1))[0], targets, weights, into, decay)
                for i, (flat, targets, weights, into) in enumerate(batches)
            ]
        return torch.stack(losses)
