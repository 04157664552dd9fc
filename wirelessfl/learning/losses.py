"""Losses of the current model on the samples of clients, as they report them for the selection."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.execution import full_precision
from wirelessfl.learning.flat import FlatModel, sample_losses
from wirelessfl.learning.population import Population
from wirelessfl.streams import Streams

_CHUNK = 1024  # samples at a time; fixed, so that the sums have one order


@dataclass(frozen=True, eq=False)
class LocalLosses:
    """Losses of k clients.

    Attributes:
        mean: (k,) mean loss.
        rms: (k,) √(mean ℓ²).
    """

    mean: NDArray[np.float64]
    rms: NDArray[np.float64]


def local_losses(
    model: FlatModel,
    parameters: Tensor,
    population: Population,
    clients: NDArray[np.int64],
    clip: float | None,
    batch: tuple[int, int, Streams] | None = None,
) -> LocalLosses:
    """Losses of a model on the samples of clients, client after client, on the device of ``parameters`` (d,).

    Args:
        model: the model.
        parameters: (d,).
        population: the clients' samples.
        clients: (k,) their numbers.
        clip: bound on the loss of each sample, which one that is not a number counts as; None for none.
        batch: samples of a mini-batch of each client, drawn without replacement, the round, and randomness of the run;
            None for all samples.
    """
    shards = population.shards(clients)
    rows = []
    for place, client in enumerate(clients.tolist()):
        own = shards.index[place, : int(shards.sizes[place])]
        drawn = None if batch is None else drawn_samples(len(own), client, *batch)
        rows.append(own if drawn is None else own[torch.from_numpy(drawn)])
    counts = np.array([len(own) for own in rows])
    if not len(counts):
        return LocalLosses(np.zeros(0), np.zeros(0))
    losses = _losses(model, parameters, shards.inputs, shards.targets, torch.cat(rows))
    if clip is not None:
        # One that is not a number alone would make the whole report such a one, however many samples there are
        losses = np.minimum(np.where(np.isnan(losses), clip, losses), clip)
    begins = np.cumsum(counts) - counts
    squares = np.add.reduceat(losses**2, begins) / counts
    return LocalLosses(np.add.reduceat(losses, begins) / counts, np.sqrt(squares))


def drawn_samples(samples: int, client: int, size: int, round_index: int, streams: Streams) -> NDArray[np.int64] | None:
    """(size,) ascending places of the mini-batch of a client in a round; None where it has no more samples."""
    if samples <= size:
        return None
    generator = streams.generator("selection_batch", round_index, client)
    return np.sort(generator.choice(samples, size=size, replace=False))


def _losses(model: FlatModel, parameters: Tensor, inputs: Tensor, targets: Tensor, rows: Tensor) -> NDArray[np.float64]:
    own, parts = model.on(parameters.device), []
    with torch.no_grad(), full_precision(parameters.device):
        for chunk in torch.split(rows, _CHUNK):
            chunk = chunk.to(inputs.device)
            logits = own.logits(parameters, inputs[chunk].to(parameters.device))
            parts.append(sample_losses(logits, targets[chunk].to(parameters.device)).double().cpu())
    return np.asarray(torch.cat(parts).numpy())
