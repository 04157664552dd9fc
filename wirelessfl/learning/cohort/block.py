"""The data of one block of clients, laid out step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.augmentation import Augmentation
from wirelessfl.learning.batches import Batches
from wirelessfl.learning.population import Shards
from wirelessfl.transfers import upload


class Batch(NamedTuple):
    """The mini-batches of one step, of the first a clients of a block: those that have not finished.

    Attributes:
        places: (a, b) which of its own samples each client takes, as columns of ``BlockData.own_rows``.
        rows: (a, b) the same as rows of ``BlockData.inputs``.
        targets: (a, b).
        present: (a, b) bool; False where a client's batch is smaller than the largest. Such places repeat a
            sample of the same client.
        weights: (a, b), 1/divisor where present, else 0.
        divisor: (a,) what the sum over a batch is divided by.
        changes: (a, b, 4) of the samples, where these are augmented; else None.
        counts: (a,) int64 samples of each client, in the memory of the host, for kernels in C; None where all are
            present, and on another device.
    """

    places: Tensor
    rows: Tensor
    targets: Tensor
    present: Tensor
    weights: Tensor
    divisor: Tensor
    changes: Tensor | None = None
    counts: Tensor | None = None


@dataclass(frozen=True)
class BlockData:
    """Samples and batches of k clients, in order of descending steps, on the computing device.

    As clients only ever leave at the end, each step works on the first rows of every stacked matrix: nothing is
    computed for a client that has finished, and nothing is masked out.

    Attributes:
        inputs: (N, *feature) samples, in the dtype of the computation.
        targets: (N,) labels.
        own_rows: (k, n_max) rows of each client's samples, padded with its first.
        batches: One entry a step.
        seen: (k,) samples in all batches of a client.
        consecutive: The first of ``inputs`` where the clients hold equally many samples that lie there one after the
            other, client after client; else None.
        augmentation: What is done with the samples of a batch; None for nothing.
    """

    inputs: Tensor
    targets: Tensor
    own_rows: Tensor
    batches: Sequence[Batch]
    seen: Tensor
    consecutive: int | None = None
    augmentation: Augmentation | None = None

    @classmethod
    def of(
        cls,
        shards: Shards,
        batches: Batches,
        like: Tensor,
        augmentation: Augmentation | None = None,
        changes: Sequence[NDArray[np.float32]] = (),
    ) -> Self:
        """Layout of the ``shards`` of k clients in their batches, on the device and in the dtype of ``like``.

        Args:
            shards: The clients' samples.
            batches: Their batches.
            like: Of the dtype of the computation, on the device.
            augmentation: What is done with the samples; None for nothing.
            changes: With it, one array (S, k, B, 4) of what it draws.
        """
        device = like.device
        index, sizes = shards.index.numpy(), shards.sizes.numpy()
        made_here = shards.targets.device.type == "cpu"
        samples = [shards.inputs.numpy(), shards.targets.numpy()] if made_here else []
        sent = upload([index, sizes, batches.index, batches.counts, batches.divisor, *changes, *samples], device)
        lying_there = [] if made_here else [shards.inputs, shards.targets]
        return cls.laid_out([*sent, *lying_there], batches, like, _consecutive(index, sizes), augmentation)

    @classmethod
    def laid_out(
        cls,
        sent: Sequence[Tensor],
        batches: Batches,
        like: Tensor,
        consecutive: int | None,
        augmentation: Augmentation | None = None,
    ) -> Self:
        """The data from what lies on the device: nothing more is sent.

        Args:
            sent: Of the k clients: (k, n_max) rows of their samples, (k,) numbers of samples; places, counts and
                divisors of ``batches``; with an augmentation its changes; (N, *feature) inputs and (N,) targets.
            batches: The same on the host.
            like: Of the dtype of the computation, on the device.
            consecutive: See the attribute.
            augmentation: Likewise.
        """
        rows_of, sizes, places, counts, divisor, *changes, inputs, targets = sent
        device = like.device
        padding = torch.arange(rows_of.shape[1], device=device) >= sizes[:, None]
        own_rows = torch.where(padding, rows_of[:, :1], rows_of)
        divisor = divisor.to(like.dtype)
        rows = own_rows.expand(len(places), -1, -1).gather(2, places)
        present = torch.arange(places.shape[2], device=device) < counts[:, :, None]
        whole = (places, rows, targets[rows], present, present / divisor[:, :, None], divisor, *changes)
        steps = _per_step(whole, batches)
        return cls(inputs.to(like.dtype), targets, own_rows, steps, counts.sum(dim=0), consecutive, augmentation)

    @property
    def clients(self) -> int:
        """The number of clients k."""
        return len(self.own_rows)

    @property
    def largest_batch(self) -> int:
        """Samples in the largest batch of a step, padding included; 1 where there is no step."""
        return max((batch.rows.shape[1] for batch in self.batches), default=1)

    def own_inputs(self) -> Tensor:
        """(k, n_max, *feature) the samples of each client as they are; a view where they lie one after the other."""
        if self.consecutive is None:
            return self._inputs_at(self.own_rows)
        samples = self.inputs[self.consecutive : self.consecutive + self.own_rows.numel()]
        return samples.view(*self.own_rows.shape, *self.inputs.shape[1:])

    def inputs_of(self, batch: Batch, clients: slice = slice(None)) -> Tensor:
        """(a, b, *feature) the samples of a step as a model sees them, of all or of some of its clients."""
        samples = self._inputs_at(batch.rows[clients])
        if self.augmentation is None or batch.changes is None:
            return samples
        return self.augmentation(samples, batch.changes[clients])

    def _inputs_at(self, rows: Tensor) -> Tensor:
        # (a, b, *feature) the samples in ``rows`` (a, b)
        flat = self.inputs.index_select(0, rows.flatten())
        return flat.view(*rows.shape, *flat.shape[1:])


def _consecutive(index: NDArray[np.int64], sizes: NDArray[np.int64]) -> int | None:
    # The first row where ``index`` (k, n_max) counts up from it and nobody's samples are padded; else None
    rows = index.ravel()
    if len(rows) == 0 or rows[-1] - rows[0] != len(rows) - 1 or np.any(sizes != index.shape[1]):
        return None
    return int(rows[0]) if np.all(np.diff(rows) == 1) else None


def _per_step(whole: Sequence[Tensor], batches: Batches) -> list[Batch]:
    # Division of (S, k, B, ...) tensors, and (S, k) ones, by steps, active clients and the largest batch
    steps = [Batch(*parts) for parts in zip(*(values.unbind(0) for values in whole), strict=True)]
    active = (np.arange(len(steps))[:, None] < batches.steps).sum(axis=1)
    width = np.maximum(1, batches.counts.max(axis=1, initial=0))
    uneven = (active < len(batches.steps)) | (width < batches.index.shape[2])
    for step in np.flatnonzero(uneven).tolist():
        a, b = int(active[step]), int(width[step])
        parts = (values for values in steps[step] if values is not None)
        steps[step] = Batch(*(values[:a, :b] if values.ndim >= 2 else values[:a] for values in parts))
    return _with_counts(steps, batches.counts, active, width) if whole[0].device.type == "cpu" else steps


def _with_counts(
    steps: list[Batch], counts: NDArray[np.int64], active: NDArray[np.int64], width: NDArray[np.int64]
) -> list[Batch]:
    # Counts (S, k) of the clients of a step, where some of them have fewer samples than others
    padded = (counts < width[:, None]) & (np.arange(counts.shape[1]) < active[:, None])
    for step in np.flatnonzero(padded.any(axis=1)).tolist():
        own = np.ascontiguousarray(counts[step, : int(active[step])])
        steps[step] = steps[step]._replace(counts=torch.from_numpy(own))
    return steps
