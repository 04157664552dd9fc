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
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.streams import Streams

FEATURES = 60
NUM_CLASSES = 10
_INPUT_STD = np.arange(1.0, FEATURES + 1) ** -0.6  # (60,) square roots of the diagonal of Σ
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
        drawn = np.empty((len(clients), 2 + _OF_A_MODEL + FEATURES))
        for row, generator in zip(drawn, streams.generators("synthetic/source", 0, clients), strict=True):
            generator.standard_normal(out=row)
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

    Each client's numbers come from a generator of its own, which NumPy draws several times as fast as counter-based
    streams, and its labels from a matrix product of its own: they are the same to the last bit whoever else is asked
    for.

    Args:
        law: How the clients' sources are drawn.
        streams: Source of all randomness.
        half: "train" or "test", which get independent samples of the same source.
        clients: (n,) client numbers.
        sizes: (n,) samples wanted of each.
    """
    inputs = np.empty((int(sizes.sum()), FEATURES), dtype=np.float32)
    targets = np.empty(len(inputs), dtype=np.int64)
    generators = streams.generators(f"synthetic/{half}", 0, clients)
    first = 0
    for begin, end in _tiles(sizes):
        own = sizes[begin:end]
        sources = law.sources(streams, clients[begin:end])
        rows = slice(first, first + int(own.sum()))
        samples, targets[rows] = _labelled(sources, generators, own)
        inputs[rows] = samples
        first = rows.stop
    return Examples(torch.from_numpy(inputs), torch.from_numpy(targets))


def _tiles(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    # First and last + 1 of consecutive clients whose numbers in double precision stay in a cache together
    ends, begin = np.cumsum(sizes + _OF_A_MODEL // FEATURES), 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _TILE_SAMPLES, side="right")))
        yield begin, end
        begin = end


def _labelled(
    sources: LabelledSources, generators: Iterator[np.random.Generator], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    # (n, 60) samples of k clients, and their labels (n,): softmax keeps the order of the scores, so it is left out
    samples = np.empty((int(sizes.sum()), FEATURES))
    scores = np.empty((len(samples), NUM_CLASSES))
    ends = np.cumsum(sizes)
    places = [slice(start, end) for start, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
    for place, generator in zip(places, generators, strict=False):
        generator.standard_normal(out=samples[place])
    samples *= _INPUT_STD
    samples += np.repeat(sources.means, sizes, axis=0)
    for place, weights in zip(places, sources.weights, strict=True):
        np.matmul(samples[place], weights, out=scores[place])
    scores += np.repeat(sources.biases, sizes, axis=0)
    return samples, np.argmax(scores, axis=1)


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
