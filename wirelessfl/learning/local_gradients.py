"""Gradients of the local losses of clients at one model, over all their samples."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.execution import full_precision
from wirelessfl.learning.flat import FlatModel, sample_losses
from wirelessfl.learning.population import Population

_CHUNK = 1024  # samples at a time; fixed, so that the sums have one order


def local_gradients(model: FlatModel, parameters: Tensor, population: Population, clients: NDArray[np.int64]) -> Tensor:
    """∇F_i(w) (k, d) of the mean loss F_i over all samples of each client, on the device of ``parameters``.

    A client without samples has the gradient 0.

    Args:
        model: the model.
        parameters: (d,) w.
        population: the clients' samples.
        clients: (k,) their numbers.
    """
    own, shards = model.on(parameters.device), population.shards(clients)
    gradients = torch.zeros(len(clients), len(parameters), device=parameters.device, dtype=parameters.dtype)
    with full_precision(parameters.device):
        for place, size in enumerate(shards.sizes[: len(clients)].tolist()):
            for chunk in torch.split(shards.index[place, :size], _CHUNK if size else 1):
                rows, at = chunk.to(shards.inputs.device), parameters.detach().requires_grad_()
                logits = own.logits(at, shards.inputs[rows].to(parameters.device))
                loss = sample_losses(logits, shards.targets[rows].to(parameters.device)).sum() / size
                gradients[place] += torch.autograd.grad(loss, at)[0]
    return gradients
