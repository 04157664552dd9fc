"""Canaries: worst-case contributions that go through the simulator's own local training.

A canary's gradient (or its whole update) is far outside every clip and points where the noise hides it least. What
becomes of it is left to the code that every run uses: the clipping rule, the noise mechanism, the optimizer, the clip
of the update. All other samples contribute nothing, which the adversary is taken to know.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning import (
    CohortBlock,
    GradientTransform,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
)
from wirelessfl.learning.batches import Batches, local_steps, plan_batches
from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.run import Coordinates, LocalRun
from wirelessfl.privacy import padded_length
from wirelessfl.streams import Streams

REACH = 1e6
"""Norm of a canary before clipping, in units of a clip that exceeds 1."""
LONGEST_CANARY = 1e18
"""The square of a longer one is beyond numbers of 32 bits, by which norms are measured."""


def canary_direction(dimension: int, haar_noise: bool) -> Tensor:
    """The unit vector (d,) along which the noise is smallest.

    White noise hides all directions alike, and the constant vector reaches every layer. Haar noise hides means over
    long blocks least: those over the first half of the m padded elements, which always fit into d, are made of the last
    mean and the coarsest detail alone, both of weight m, so that the worst cases m/σ (coefficients), √m/σ (gradient)
    and 1/σ (weighted) are met exactly.
    """
    direction = torch.zeros(dimension)
    direction[: max(1, padded_length(dimension) // 2) if haar_noise else dimension] = 1.0
    return direction.div_(torch.linalg.vector_norm(direction))


class CanaryGradients(SampleGradients):
    """``SampleGradients`` of batches that hold one canary or none; samples without gradient are left out of them."""

    def __init__(self, canary: Tensor, parts: list[int], present: Tensor) -> None:
        """Gradients of one step.

        Args:
            canary: (d,) the canary's gradient.
            parts: sizes of the parameters, in flat order.
            present: (k,) bool, in whose batch it is.
        """
        self.present = present[:, None]
        self.losses = torch.zeros_like(self.present, dtype=canary.dtype)
        self._canary, self._parts = canary, parts

    @property
    @override
    def sizes(self) -> list[int]:
        return self._parts

    @override
    def squared_norms(self) -> Tensor:
        norms = torch.stack([part.square().sum() for part in torch.split(self._canary, self.sizes)])
        return norms.expand(len(self.present), 1, -1)

    @override
    def weighted_sum(self, weights: Tensor, into: Tensor | None = None, decay: float = 0.0) -> Tensor:
        if weights.ndim == 3:  # of layers, not of whole gradients
            weights = torch.repeat_interleave(weights[:, 0], torch.tensor(self.sizes), dim=1)
        total = weights.where(self.present, 0.0) * self._canary
        return total if into is None else into.mul_(decay).add_(total)

    @override
    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        yield slice(0, 1), self._canary.expand(len(self.present), 1, -1).clone()


class CanaryModels(Coordinates):
    """k local models whose changes are the rows of one matrix; gradients come from ``CanaryGradients`` alone."""

    def __init__(self, changes: Tensor) -> None:
        """Models that have changed by ``changes`` (k, d) so far."""
        self.trained = [changes]
        self.accumulated = [torch.zeros_like(changes)]
        self.anchors = [changes.new_zeros(())]

    @override
    def updates(self) -> Tensor:
        return self.trained[0]


class Heard(NamedTuple):
    """One noised sum of k clients, and what scales its noise.

    Attributes:
        reading: (k, ...) what is read off the sums.
        clip_norm: (k,) the sensitivity that the noise was scaled to.
        noise_multiplier: (k,) as the mechanism claims it.
        divisor: (k,) by which the sum is divided.
    """

    reading: NDArray[np.float64]
    clip_norm: NDArray[np.float64]
    noise_multiplier: NDArray[np.float64]
    divisor: NDArray[np.float64]


@dataclass
class Listener(GradientTransform):
    """A gradient transform that changes nothing and stores values of the noised sums of every step.

    Attributes:
        transform: clipping and noise.
        read: from sums (k, d) to what is kept of them (k, ...).
        steps: what was kept.
    """

    transform: GradientTransform
    read: Callable[[Tensor], Tensor]
    steps: list[Heard] = field(default_factory=list)

    @override
    def start(self, clients: NDArray[np.int64], like: Tensor) -> TransformState:
        return self.transform.start(clients, like)

    @override
    def __call__(
        self, gradients: SampleGradients, state: TransformState, context: StepContext, into: Tensor, decay: float
    ) -> PrivateStep:
        mean = torch.zeros_like(into)
        out = self.transform(gradients, state, context, mean, 0.0)
        into.mul_(decay).add_(mean)
        reading, claimed = self.read(mean * context.divisor[:, None]), out.statistics
        heard = (reading, claimed["clip_norm"], claimed["noise_multiplier"], context.divisor)
        self.steps.append(Heard(*(values.double().numpy() for values in heard)))
        return out


@dataclass(frozen=True)
class CanaryBatches:
    """The batches of one round, as far as they concern the canary.

    Attributes:
        included: (S, k) bool, whether it is in the batch of a step.
        divisor: (S, k) by which the sum over the batch is divided.
    """

    included: NDArray[np.bool_]
    divisor: NDArray[np.float64]

    def beginning(self, steps: int) -> Self:
        """Batches of the first steps."""
        return replace(self, included=self.included[:steps], divisor=self.divisor[:steps])

    def repeated(self, count: int) -> Self:
        """The batches of one client for ``count`` rows."""
        shape = (len(self.included), count)
        return replace(
            self, included=np.broadcast_to(self.included, shape), divisor=np.broadcast_to(self.divisor, shape)
        )


def draw_batches(
    training: LocalTraining, streams: Streams, round_index: int, nodes: NDArray[np.int64], samples: int, canary: int
) -> CanaryBatches:
    """The batches that the engine draws for ``nodes`` (k,) with ``samples`` each, of which number ``canary`` is it."""
    batches, present = _engine_batches(training, streams, round_index, nodes, samples)
    return CanaryBatches(((batches.index == canary) & present).any(axis=2), batches.divisor)


def clearest_sample(training: LocalTraining, streams: Streams, rounds: list[int], client: int, samples: int) -> int:
    """The sample of a client that is in the smallest batches over all rounds: a mean over few moves furthest."""
    clearness = np.zeros(samples)
    for round_index in rounds:
        batches, present = _engine_batches(training, streams, round_index, np.array([client]), samples)
        each = np.broadcast_to(batches.divisor[:, :, None] ** -2.0, present.shape)
        np.add.at(clearness, batches.index[present], each[present])
    return int(np.argmax(clearness))


def _engine_batches(
    training: LocalTraining, streams: Streams, round_index: int, nodes: NDArray[np.int64], samples: int
) -> tuple[Batches, NDArray[np.bool_]]:
    # The batches, and (S, k, B) which of their places are no padding.
    sizes = np.full(len(nodes), samples, dtype=np.int64)
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = streams.nodes("batch_order", round_index, nodes)
    batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
    return batches, np.arange(batches.index.shape[2]) < batches.counts[:, :, None]


def whole_update(training: LocalTraining, update: Tensor) -> CohortBlock:
    """The upload of a client whose local training ended with ``update`` (d,), after the engine's own clip."""
    run = LocalRun(CanaryModels(update[None].clone()), training, _block_data([], 1))
    return run.finished().report(np.zeros(1, dtype=np.int64))


def train_on_canary(
    training: LocalTraining,
    transform: GradientTransform,
    state: TransformState,
    context: StepContext,
    gradient: Tensor,
    parts: list[int],
    batches: CanaryBatches,
) -> CohortBlock:
    """Local training of k clients whose only gradient that is not zero is the canary's.

    Args:
        training: the clients' training, at the learning rate of the round.
        transform: clipping and noise.
        state: its rows (k, ...), changed in place.
        context: of the first step; its clients (k,) name the random streams.
        gradient: (d,) the canary's, before clipping.
        parts: sizes of the parameters, in flat order.
        batches: (S, k).
    """
    count = len(context.clients)
    present = torch.from_numpy(batches.included.copy())
    divisor = torch.from_numpy(batches.divisor.copy()).to(gradient)
    nothing = torch.zeros(count, 1, dtype=torch.int64)
    steps = [
        Batch(nothing, nothing, nothing, here[:, None], here[:, None] / by[:, None], by)
        for here, by in zip(present, divisor, strict=True)
    ]
    run = LocalRun(CanaryModels(gradient.new_zeros(count, len(gradient))), training, _block_data(steps, count))
    trained = run.train_privately(
        lambda batch: CanaryGradients(gradient, parts, batch.present[:, 0]), transform, state, context
    )
    return trained.report(np.arange(count, dtype=np.int64))


def _block_data(batches: list[Batch], count: int) -> BlockData:
    # The data of ``count`` clients as the training loop needs them; canaries have no inputs.
    nothing = torch.zeros(count, 1, dtype=torch.int64)
    return BlockData(torch.zeros(1), nothing[0], nothing, batches, torch.ones(count, dtype=torch.int64))
