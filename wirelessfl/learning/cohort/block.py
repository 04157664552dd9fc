"""The data of one block of clients, laid out so that a step takes a slice of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.batches import Batches
from wirelessfl.learning.population import Shards


@dataclass(frozen=True)
class Batch:
    """The mini-batches of one step.

    Attributes:
        inputs: (a, b, *feature) for the first a clients of the block, those that have not finished.
        targets: (a, b).
        present: (a, b) bool; False where a client's batch is smaller than the largest.
        divisor: (a, 1) what the sum over a batch is divided by.
    """

    inputs: Tensor
    targets: Tensor
    present: Tensor
    divisor: Tensor


@dataclass(frozen=True)
class BlockData:
    """Samples and batches of k clients, in order of descending steps, on the computing device.

    As clients only ever leave at the end, each step works on the first rows of every stacked matrix: nothing is
    computed for a client that has finished, and nothing is masked out.

    Attributes:
        inputs: (N, *feature) samples.
        targets: (N,) labels.
        rows: (S, k, B) rows of each batch; padding repeats a sample of the same client.
        counts: (S, k) samples in each batch.
        divisor: (S, k).
        active: Clients still training in each step.
        width: Largest batch in each step, at least 1.
    """

    inputs: Tensor
    targets: Tensor
    rows: Tensor
    counts: Tensor
    divisor: Tensor
    active: list[int]
    width: list[int]

    @classmethod
    def of(cls, shards: Shards, batches: Batches, like: Tensor) -> BlockData:
        """Lay out ``shards`` of k clients in their batches, on the device and in the dtype of ``like``."""
        own = shards.index.cpu().numpy()
        rows: NDArray[np.int64] = own[np.arange(len(own))[None, :, None], batches.index]
        active = (np.arange(len(batches.index))[:, None] < batches.steps).sum(axis=1)
        width = np.maximum(1, batches.counts.max(axis=1, initial=0))
        device = like.device
        there = shards.to(device)
        return cls(
            there.inputs.to(like.dtype),
            there.targets,
            torch.from_numpy(rows).to(device),
            torch.from_numpy(batches.counts).to(device),
            torch.from_numpy(batches.divisor).to(like),
            active.tolist(),
            width.tolist(),
        )

    def batch(self, step: int) -> Batch:
        """The batches of the clients that are active in ``step``."""
        active, width = self.active[step], self.width[step]
        rows = self.rows[step, :active, :width]
        present = torch.arange(width, device=rows.device) < self.counts[step, :active, None]
        return Batch(self.inputs[rows], self.targets[rows], present, self.divisor[step, :active, None])
