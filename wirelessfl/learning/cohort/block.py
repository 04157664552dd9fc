"""The data of one block of clients, laid out so that a step takes a slice of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
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
        weights: (a, b), 1/divisor where present, else 0.
    """

    inputs: Tensor
    targets: Tensor
    present: Tensor
    weights: Tensor


@dataclass(frozen=True)
class BlockData:
    """Samples and batches of k clients, in order of descending steps, on the computing device.

    As clients only ever leave at the end, each step works on the first rows of every stacked matrix: nothing is
    computed for a client that has finished, and nothing is masked out.

    Attributes:
        inputs: (N, *feature) samples, in the dtype of the computation.
        targets: (N,) labels.
        own_rows: (k, n_max) rows of each client's samples, padded with its first.
        places: (S, k, B) samples of each batch as places in ``own_rows``, padded with 0.
        present: (S, k, B) bool, what is no padding.
        divisor: (S, k) what the sum over a batch is divided by.
        weights: (S, k, B), 1/divisor where present, else 0.
        active: Clients still training in each step.
        width: Largest batch in each step, at least 1.
    """

    inputs: Tensor
    targets: Tensor
    own_rows: Tensor
    places: Tensor
    present: Tensor
    divisor: Tensor
    weights: Tensor
    active: list[int]
    width: list[int]

    @classmethod
    def of(cls, shards: Shards, batches: Batches, like: Tensor) -> BlockData:
        """Lay out ``shards`` of k clients in their batches, on the device and in the dtype of ``like``."""
        there = shards.to(like.device)
        padding = torch.arange(there.index.shape[1], device=like.device) >= there.sizes[:, None]
        counts = torch.from_numpy(batches.counts).to(like.device)
        divisor = torch.from_numpy(batches.divisor).to(like)
        present = torch.arange(batches.index.shape[2], device=like.device) < counts[:, :, None]
        return cls(
            there.inputs.to(like.dtype),
            there.targets,
            torch.where(padding, there.index[:, :1], there.index),
            torch.from_numpy(batches.index).to(like.device),
            present,
            divisor,
            present / divisor[:, :, None],
            (np.arange(len(batches.index))[:, None] < batches.steps).sum(axis=1).tolist(),
            np.maximum(1, batches.counts.max(axis=1, initial=0)).tolist(),
        )

    @property
    def clients(self) -> int:
        """The number of clients k."""
        return len(self.own_rows)

    @property
    def steps(self) -> int:
        """S, the steps of the client with most."""
        return len(self.active)

    def of_step(self, step: int, values: Tensor) -> Tensor:
        """What of ``values`` (S, k, B) concerns ``step``: (a, b)."""
        return values[step, : self.active[step], : self.width[step]]

    def batch(self, step: int) -> Batch:
        """The batches of the clients that are active in ``step``."""
        places = self.of_step(step, self.places)
        rows = self.own_rows[: len(places)].gather(1, places)
        return Batch(
            self.inputs[rows],
            self.targets[rows],
            self.of_step(step, self.present),
            self.of_step(step, self.weights),
        )
