"""How many clients to train together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wirelessfl.learning.cohort.training import LocalTraining
from wirelessfl.learning.flat import FlatModel

_CPU_BYTES = 32 * 2**20  # measured: below, dispatch dominates; above, matrices leave the cache
_CUDA_BYTES = 8 * 2**30
_MOST_ON_CPU = 256


def automatic_chunk(
    model: FlatModel, training: LocalTraining, clients: int, device: str = "cpu", threads: int = 1
) -> int:
    """A good ``ExecutionPlan.chunk``: as many clients as fit a budget of memory, and equal work for every thread.

    It depends on its arguments alone, not on the machine, so that equal scenarios run under equal plans.

    Args:
        model: The model; d floats for each of parameters, accumulated gradient and gradient or update.
        training: For the batch size; the layers' outputs of one batch count too.
        clients: The clients of a round.
        device: A torch device name.
        threads: Worker threads.
    """
    floats = 3 * model.dimension + training.batch_size * _floats_per_sample(model)
    on_cpu = torch.device(device).type == "cpu"
    fits = (_CPU_BYTES if on_cpu else _CUDA_BYTES) // (4 * floats)
    largest = max(1, min(fits, _MOST_ON_CPU) if on_cpu else fits)
    # Every thread computes equally many blocks, of equal sizes: the round ends with the last of them.
    turns = -(-clients // (largest * threads)) if on_cpu else -(-clients // largest)
    blocks = max(1, turns * threads if on_cpu else turns)
    return max(1, -(-clients // blocks))


def _floats_per_sample(model: FlatModel) -> int:
    """Numbers that one sample leaves in memory on its way through the model, the sample included."""
    sample = torch.zeros(1, *model.feature_shape)
    total = sample.numel()

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal total
        total += output.numel()
        if isinstance(module, nn.Conv2d):  # the patches under its kernel
            total += output[0, 0].numel() * module.weight[0].numel()

    module = model.replica(torch.device("cpu")).module
    for part in module.modules():
        if not list(part.children()):
            part.register_forward_hook(count)
    with torch.no_grad():
        module(sample)
    return total
