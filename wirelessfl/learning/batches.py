"""Batches: the samples that a client trains on in each local step, for many clients at once.

A client's batches follow from the seed, the round, its number and its number of samples alone, never from who
else is trained.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.streams import NodeStream

Sampling = Literal["shuffle", "poisson"]


@dataclass(frozen=True)
class Batches:
    """The mini-batches of k clients over S steps, padded to the largest batch B.

    Attributes:
        index: (S, k, B) int64, positions among the client's own samples; 0 in padding.
        counts: (S, k) int64, samples in each batch; entries of ``index`` from here on are padding.
        divisor: (S, k) float64, what the sum over a batch is divided by: the number of samples in it
            when shuffled, the expected number under Poisson sampling. It depends on n_i alone.
        steps: (k,) int64, local steps of each client.
    """

    index: NDArray[np.int64]
    counts: NDArray[np.int64]
    divisor: NDArray[np.float64]
    steps: NDArray[np.int64]

    def __post_init__(self) -> None:
        precondition(not np.any(np.diff(self.steps) > 0), "clients must be in order of descending steps")


def local_steps(sizes: NDArray[np.int64], batch_size: int, epochs: int | None, steps: int | None) -> NDArray[np.int64]:
    """(k,) local steps: ``steps``, or ``epochs`` times ⌈n_i / batch_size⌉; none for a client without samples."""
    fixed = np.where(sizes > 0, np.int64(steps or 0), np.int64(0))
    return fixed if epochs is None else epochs * -(-sizes // batch_size)


def plan_batches(
    sampling: Sampling,
    stream: NodeStream,
    sizes: NDArray[np.int64],
    steps: NDArray[np.int64],
    batch_size: int,
) -> Batches:
    """The batches of k clients, by ``shuffled_batches`` or ``poisson_batches``."""
    return {"shuffle": shuffled_batches, "poisson": poisson_batches}[sampling](stream, sizes, steps, batch_size)


def shuffled_batches(
    stream: NodeStream, sizes: NDArray[np.int64], steps: NDArray[np.int64], batch_size: int
) -> Batches:
    """Epochs of fresh permutations, cut into batches; the last batch of an epoch may be smaller.

    An epoch is reshuffled in every round. A client whose samples all fit into one batch is not shuffled: order
    within a batch changes nothing.

    Args:
        stream: The stream of the purpose ``batch_order`` for the k clients.
        sizes: (k,) samples n_i.
        steps: (k,) local steps, descending.
        batch_size: Samples in a full batch.
    """
    batch = np.minimum(batch_size, sizes)
    per_epoch = np.maximum(1, -(-sizes // batch_size))
    last_step = int(steps.max(initial=0))
    width = int(batch.max(initial=1))
    order = _permutations(stream, sizes, -(-steps // per_epoch), batch_size)
    step = np.arange(last_step)[:, None]
    epoch, place = step // per_epoch, step % per_epoch
    counts = np.clip(sizes - place * batch_size, 0, batch_size) * (step < steps)
    column = place[:, :, None] * batch_size + np.arange(width)
    present = np.arange(width) < counts[:, :, None]
    rows = np.arange(len(sizes))[None, :, None]
    index = np.where(present, order[rows, epoch[:, :, None] * present, column * present], 0)
    return Batches(index, counts, np.maximum(counts, 1).astype(np.float64), steps)


def _permutations(
    stream: NodeStream, sizes: NDArray[np.int64], epochs: NDArray[np.int64], batch_size: int
) -> NDArray[np.int64]:
    # (k, most epochs, n_max) permutations of each client's samples; arbitrary beyond its epochs and samples.
    longest, last_epoch = int(sizes.max(initial=1)), int(epochs.max(initial=0))
    if longest <= batch_size:
        return np.broadcast_to(np.arange(longest), (len(sizes), last_epoch, longest))
    keys = stream.uniform(int((epochs * sizes).max()))
    epoch = np.arange(last_epoch)[None, :, None]
    sample = np.arange(longest)[None, None, :]
    own = sizes[:, None, None]
    place = np.minimum(epoch * own + sample, keys.shape[1] - 1)
    key = np.where(sample < own, keys[np.arange(len(sizes))[:, None, None], place], np.inf)
    order = np.argsort(key, axis=-1, kind="stable")
    return np.where(own <= batch_size, np.broadcast_to(sample, order.shape), order)


def poisson_batches(stream: NodeStream, sizes: NDArray[np.int64], steps: NDArray[np.int64], batch_size: int) -> Batches:
    """Every sample is in every batch with probability q_i = min(1, batch_size / n_i), independently.

    The n_i S_i Bernoulli trials of a client lie on one line, step after step; the gaps between successes are
    geometric, ⌊ln u / ln(1 − q)⌋ failures (Devroye, "Non-uniform random variate generation", 1986, §X.2), so
    that a draw costs the samples chosen and not the samples there are.

    Args:
        stream: The stream of the purpose ``batch_order`` for the k clients.
        sizes: (k,) samples n_i.
        steps: (k,) local steps, descending.
        batch_size: Expected samples in a batch.
    """
    clients, trial = _successes(stream, sizes * steps, np.minimum(1.0, batch_size / np.maximum(sizes, 1)))
    step, sample = np.divmod(trial, sizes[clients])
    last_step = int(steps.max(initial=0))
    batch = step * len(sizes) + clients
    counts = np.bincount(batch, minlength=last_step * len(sizes)).reshape(last_step, len(sizes))
    by_batch = np.argsort(batch, kind="stable")
    place = np.arange(len(batch)) - (np.cumsum(counts.ravel()) - counts.ravel())[batch[by_batch]]
    width = max(1, int(counts.max(initial=0)))
    index = np.zeros((last_step * len(sizes), width), dtype=np.int64)
    index[batch[by_batch], place] = sample[by_batch]
    expected = np.minimum(batch_size, sizes).astype(np.float64)
    return Batches(index.reshape(last_step, len(sizes), width), counts, np.tile(expected, (last_step, 1)), steps)


def _successes(
    stream: NodeStream, trials: NDArray[np.int64], rate: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Row and number of every successful trial, of ``trials[i]`` trials at ``rate[i]`` in row i, in order.
    expected = float((trials * rate).max(initial=0.0))
    draws = int(expected + 6 * np.sqrt(expected)) + 10
    with np.errstate(divide="ignore"):
        log_failure = np.log1p(-rate)[:, None]  # −∞ at rate 1: every gap is then 0
    while True:
        gaps = np.floor(np.log(stream.uniform(draws)) / log_failure)
        place = np.cumsum(np.minimum(gaps, trials.max(initial=0)) + 1, axis=1) - 1
        if np.all(place[:, -1] >= trials):
            row, column = np.nonzero(place < trials[:, None])
            return row, place[row, column].astype(np.int64)
        draws *= 2
