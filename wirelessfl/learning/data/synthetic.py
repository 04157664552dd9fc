"""FedProx's synthetic(α, β): every client labels its own inputs with its own random linear model.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, §5.1: client k has labels
y = argmax(softmax(W_k x + b_k)) with the elements of W_k (60 × 10) and b_k (10) drawn from N(u_k, 1), u_k ~ N(0, α),
and inputs x ~ N(v_k, Σ), Σ diagonal with Σ_jj = j^−1.2, the elements of v_k drawn from N(B_k, 1), B_k ~ N(0, β).
α sets how much the models differ, β how much the inputs do. As in the authors' program, α and β are standard
deviations (at the published settings (0, 0) and (1, 1) it makes no difference). In the iid variant all clients share
one W and b of standard normal elements, and v = 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.normals import add_normal
from wirelessfl.streams import Streams

FEATURES = 60
NUM_CLASSES = 10
_INPUT_STD = (np.arange(1.0, FEATURES + 1) ** -0.6).astype(np.float32)  # (60,) square roots of the diagonal of Σ
_OF_A_MODEL = FEATURES * NUM_CLASSES + NUM_CLASSES  # numbers of W_k and b_k
_TILE_SAMPLES = 2_000  # about a MiB in double precision
_SIZES_AT_ONCE = 1 << 16  # clients; the words of their draws stay in a cache
_POOLED_CLIENTS = 30  # natural owners in the pooled dataset, as many as in the paper


@dataclass(frozen=True)
class LabelledSources:
    """Linear models and mean inputs of the samples of k clients.

    Attributes:
        weights: (k, 60, 10) W.
        biases: (k, 10) b.
        means: (k, 60) v.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    means: NDArray[np.float64]


class SyntheticLaw(Protocol):
    """Law of the clients' sources."""

    def sources(self, streams: Streams, clients: NDArray[np.int64]) -> LabelledSources:
        """The sources of ``clients`` (k,), each a function of the seed of ``streams`` and of its client alone."""


@dataclass(frozen=True)
class SkewedSources(SyntheticLaw):
    """synthetic(α, β): every client its own model and its own mean input.

    Attributes:
        alpha: Standard deviation of u_k, how much the models differ beyond N(0, 1) elements.
        beta: Standard deviation of B_k, how much the mean inputs differ.
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            precondition(np.isfinite(value) and value >= 0, f"{name} must be a finite number ≥ 0, found {value}")

    @override
    def sources(self, streams: Streams, clients: NDArray[np.int64]) -> LabelledSources:
        drawn = _normals(streams, "synthetic/source", clients, 2 + _OF_A_MODEL + FEATURES).astype(np.float64)
        model_means, input_means = self.alpha * drawn[:, :1], self.beta * drawn[:, 1:2]
        model = model_means + drawn[:, 2 : 2 + _OF_A_MODEL]
        weights = model[:, : FEATURES * NUM_CLASSES].reshape(-1, FEATURES, NUM_CLASSES)
        means = input_means + drawn[:, 2 + _OF_A_MODEL :]
        return LabelledSources(np.ascontiguousarray(weights), model[:, FEATURES * NUM_CLASSES :], means)


@dataclass(frozen=True)
class SharedSource(SyntheticLaw):
    """synthetic-iid: one model for all clients, inputs of mean zero."""

    @override
    def sources(self, streams: Streams, clients: NDArray[np.int64]) -> LabelledSources:
        generator, k = streams.generator("synthetic/source"), len(clients)
        weights, biases = generator.standard_normal((FEATURES, NUM_CLASSES)), generator.standard_normal(NUM_CLASSES)
        return LabelledSources(
            np.broadcast_to(weights, (k, *weights.shape)),
            np.broadcast_to(biases, (k, *biases.shape)),
            np.zeros((k, FEATURES)),
        )


def draw_examples(
    law: SyntheticLaw, streams: Streams, half: str, clients: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Examples:
    """``sizes[i]`` samples of ``clients[i]``, one client after the other.

    Each client's numbers come from a stream of its own, and its labels from a matrix product of its own in double
    precision: they are the same to the last bit whoever else is asked for.

    Args:
        law: How the clients' sources are drawn.
        streams: Source of all randomness.
        half: "train" or "test", which get independent samples of the same source.
        clients: (n,) client numbers.
        sizes: (n,) samples wanted of each.
    """
    inputs = np.empty((int(sizes.sum()), FEATURES), dtype=np.float32)
    targets, starts = np.empty(len(inputs), dtype=np.int64), np.cumsum(sizes) - sizes
    for tile in _tiles(sizes):
        members, size = clients[tile], int(sizes[tile[0]])
        samples = _normals(streams, f"synthetic/{half}", members, size * FEATURES).reshape(-1, size, FEATURES)
        sources = law.sources(streams, members)
        samples *= _INPUT_STD
        samples += sources.means.astype(np.float32)[:, None]
        rows = starts[tile, None] + np.arange(size)
        inputs[rows], targets[rows] = samples, _labels(sources, samples)
    return Examples(torch.from_numpy(inputs), torch.from_numpy(targets))


def _normals(streams: Streams, purpose: str, clients: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    # (k, count) standard normal numbers of k clients
    drawn = torch.zeros(len(clients), count, dtype=torch.float32, device="cpu")
    return add_normal(drawn, torch.ones_like(drawn[:, 0]), streams, purpose, 0, clients, 0).numpy()


def _tiles(sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    # Positions of clients of one size, without those of none, whose numbers in double precision a cache holds together
    order = np.argsort(sizes, kind="stable")
    edges = np.flatnonzero(np.diff(sizes[order], prepend=0, append=-1)).tolist()
    for begin, end in pairwise(edges):
        at_once = max(1, _TILE_SAMPLES // (int(sizes[order[begin]]) + _OF_A_MODEL // FEATURES))
        for first in range(begin, end, at_once):
            yield order[first : min(first + at_once, end)]


def _labels(sources: LabelledSources, samples: NDArray[np.float32]) -> NDArray[np.int64]:
    # (k, n) labels of samples (k, n, 60): softmax keeps the order of the scores, so it is left out
    scores = samples.astype(np.float64) @ sources.weights + sources.biases[:, None]
    labels: NDArray[np.int64] = np.argmax(scores, axis=2)
    return labels


@dataclass(frozen=True)
class LogNormalSizes:
    """Law of the number of samples of a client: min(minimum + ⌊lognormal(mu, sigma)⌋, maximum).

    The authors' law is 50 + ⌊lognormal(4, 2)⌋ without a maximum; among a million clients the largest would hold about
    a million samples. The cap of 500 touches one client in seven and leaves a mean of 185.
    """

    mu: float = 4.0
    sigma: float = 2.0
    minimum: int = 50
    maximum: int = 500

    def __post_init__(self) -> None:
        precondition(
            np.isfinite(self.mu) and np.isfinite(self.sigma) and self.sigma >= 0,
            f"mu must be finite and sigma finite and ≥ 0, found {self.mu} and {self.sigma}",
        )
        precondition(
            1 <= self.minimum <= self.maximum,
            f"1 ≤ minimum ≤ maximum must hold, found {self.minimum} and {self.maximum}",
        )

    def draw(self, streams: Streams, num_clients: int) -> NDArray[np.int64]:
        """(num_clients,) samples of each client; client k's does not depend on ``num_clients``."""
        sizes = np.empty(num_clients, dtype=np.int64)
        for first in range(0, num_clients, _SIZES_AT_ONCE):
            own = sizes[first : first + _SIZES_AT_ONCE]
            clients = np.arange(first, first + len(own))
            normal = streams.nodes("synthetic/sizes", 0, clients).normal()[:, 0]
            extra = np.exp(np.minimum(self.mu + self.sigma * normal, np.log(self.maximum)))
            own[:] = np.minimum(self.minimum + extra.astype(np.int64), self.maximum)
        return sizes


def load_synthetic(
    law: SyntheticLaw | None = None, size_law: LogNormalSizes | None = None, split_seed: int = 0
) -> Dataset:
    """Pooled samples of 30 clients, to be divided anew by any partition (inputs (N, 60)).

    A tenth as many samples as a client has for training is drawn on top for testing, rounded up. For data that stays
    with the client it was made for, use `wirelessfl.learning.population.SyntheticPopulation`.
    """
    law = law or SkewedSources()
    streams = Streams(split_seed)
    clients = np.arange(_POOLED_CLIENTS)
    sizes = (size_law or LogNormalSizes()).draw(streams, _POOLED_CLIENTS)
    train = draw_examples(law, streams, "train", clients, sizes)
    shuffled = streams.generator("synthetic/order").permutation(len(train))  # so that `limit` takes some of everyone
    test = draw_examples(law, streams, "test", clients, -(-sizes // 10))
    names = tuple(map(str, range(NUM_CLASSES)))
    return Dataset("synthetic", train.take(shuffled), test, names, np.repeat(clients, sizes)[shuffled])
