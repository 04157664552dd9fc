"""Local training of the audited client: the canary is one sample's gradient."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.analysis.audit.canaries import (
    LONGEST_CANARY,
    REACH,
    CanaryBatches,
    CanaryGradients,
    canary_direction,
    draw_batches,
    train_on_canary,
)
from wirelessfl.analysis.audit.games import Uploads
from wirelessfl.learning import CohortBlock, GradientTransform, LocalTraining, StepContext, TransformState
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.private import PrivateGradients, resumed_state, without_noise
from wirelessfl.privacy.clipping.base import Memoryless
from wirelessfl.privacy.mechanisms import HaarMechanism
from wirelessfl.streams import Streams

# Of stacked models that train side by side: they stay in the cache.
_ELEMENTS = 2**18
# A row that no trial has.
_PILOT = 2**40
SMALLEST_SINGLE = float(np.finfo(np.float32).tiny)
"""Below it numbers of 32 bits lose their digits: smaller noise is not there."""
# Seconds on one core of a common server, as measured: of a step, of each element of it, and of each under Haar noise.
_STEP_SECONDS, _ELEMENT_SECONDS, _HAAR_ELEMENT_SECONDS = 1e-5, 1e-8, 2.8e-8


@dataclass(frozen=True)
class CanaryClient:
    """The local training of the audited client, whose canary is one of its samples.

    Attributes:
        training: what it does in a round, at the learning rate before any schedule.
        transforms: clipping and noise in each round in which it takes part.
        learning_rates: η in these rounds.
        parts: sizes of the model's parameters, in flat order.
        client: its number.
        samples: n_i.
        canary: which of its samples it is.
        secret_batches: whether batches are drawn anew in every trial, as the adversary does not know them.
        public: the scenario's streams, from which known batches come.
        streams: randomness of the audit.
    """

    training: LocalTraining
    transforms: dict[int, PrivateGradients]
    learning_rates: dict[int, float]
    parts: list[int]
    client: int
    samples: int
    canary: int
    secret_batches: bool
    public: Streams
    streams: Streams

    @property
    def dimension(self) -> int:
        """D."""
        return sum(self.parts)

    @property
    def haar_noise(self) -> bool:
        """Whether the noise is on Haar coefficients."""
        return isinstance(next(iter(self.transforms.values())).noise, HaarMechanism)

    @property
    def num_steps(self) -> int:
        """Local steps in all these rounds."""
        return len(self.rounds) * len(self.batches(self.rounds[0], np.array([_PILOT])).included)

    @property
    def rounds(self) -> list[int]:
        """The rounds in which it takes part."""
        return list(self.transforms)

    @property
    def remembers(self) -> bool:
        """Whether its clipping carries anything from one step to the next."""
        return not all(isinstance(transform.clipping, Memoryless) for transform in self.transforms.values())

    @property
    def sample_rate(self) -> float:
        """With which probability the canary is in a batch, for an adversary who does not know the batches."""
        return self.training.batch_size / self.samples if self.secret_batches else 1.0

    def cost(self, crowd: int) -> float:
        """Seconds of both worlds of a trial of a game on local steps, by counting operations."""
        element = _HAAR_ELEMENT_SECONDS if self.haar_noise else _ELEMENT_SECONDS
        return 2 * crowd * self.num_steps * (_STEP_SECONDS + self.dimension * element)

    def uses_canary(self, round_index: int) -> bool:
        """Whether the canary is in a batch of a round whose batches are known."""
        return bool(self.batches(round_index, np.array([_PILOT])).included.any())

    def batches(self, round_index: int, rows: NDArray[np.int64]) -> CanaryBatches:
        """The batches of a round, for rows (k,) that each play this client."""
        if self.secret_batches:
            return draw_batches(self.training, self.streams, round_index, rows, self.samples, self.canary)
        nodes = np.array([self.client])
        known = draw_batches(self.training, self.public, round_index, nodes, self.samples, self.canary)
        return known.repeated(len(rows))

    @cached_property
    def reach(self) -> float:
        """Norm of the canary's gradient: far outside the clip of the first and of the last round."""
        short = canary_direction(self.dimension, self.haar_noise)
        ends = {self.rounds[0], self.rounds[-1]}
        clip = max(float(self._noiseless(round_index, short, True)[1]) for round_index in ends)
        return min(REACH * max(1.0, clip), LONGEST_CANARY)

    def gradient(self, sign: int) -> Tensor:
        """(d,) the canary's, far outside every clip; it points down, so that the update points up."""
        return -self.reach * (sign or 1) * canary_direction(self.dimension, self.haar_noise)

    def train(
        self,
        round_index: int,
        rows: NDArray[np.int64],
        batches: CanaryBatches,
        sign: int,
        memory: TransformState,
        transform: GradientTransform,
        size: float = 1.0,
    ) -> CohortBlock:
        """One round of k rows; what their clipping remembers is read from ``memory`` and written back.

        ``transform`` is that of the round, or listens to it. The canary's gradient is ``size`` times as long.
        """
        gradient = size * self.gradient(sign)
        if sign == 0:
            batches = replace(batches, included=np.zeros_like(batches.included))
        training = replace(self.training, learning_rate=self.learning_rates[round_index])
        block = train_on_canary(
            training,
            transform,
            self._state(round_index, rows, memory),
            StepContext(self.streams, round_index, 0, rows, gradient, training.learning_rate),
            gradient,
            self.parts,
            batches,
        )
        memory.update({name: block.transform_state[name] for name in self.transforms[round_index].lasting})
        return block

    def signal(self) -> tuple[Tensor, float]:
        """The direction (d,) of the canary in a sum, and its size there in units of the sensitivity.

        Noise that is much larger than the canary would round it away, so that none is drawn.
        """
        round_index, canary = self.rounds[0], self.gradient(1)
        total, sensitivity = self._noiseless(round_index, canary, True)
        signal = (total - self._noiseless(round_index, canary, False)[0]).double()
        size = float(torch.linalg.vector_norm(signal))
        if size == 0 or sensitivity == 0:
            return torch.zeros_like(canary), 0.0
        return (signal / size).to(canary), size / sensitivity

    def _noiseless(self, round_index: int, gradient: Tensor, there: bool) -> tuple[Tensor, float]:
        # The sum (d,) of clipped gradients in a batch with the ``gradient`` or without, and its sensitivity.
        rows, mean = np.array([_PILOT]), torch.zeros(1, len(gradient))
        step = without_noise(self.transforms[round_index])(
            CanaryGradients(gradient, self.parts, torch.tensor([there])),
            self._state(round_index, rows, {}),
            StepContext(self.streams, round_index, 0, rows, torch.ones(1), 1.0),
            mean,
            0.0,
        )
        return mean[0], float(step.statistics["clip_norm"][0])

    def _state(self, round_index: int, rows: NDArray[np.int64], memory: TransformState) -> TransformState:
        state = resumed_state(self.transforms[round_index], rows, memory, torch.zeros(self.dimension))
        return {name: values.clone(memory_format=torch.contiguous_format) for name, values in state.items()}


@dataclass(frozen=True)
class WholeClient(CanaryClient):
    """The local training of the audited client, all of whose samples are canaries.

    Attributes:
        server_haar_noise: whether the noise that the server adds to its update is on Haar coefficients.
    """

    server_haar_noise: bool

    @property
    @override
    def haar_noise(self) -> bool:
        return self.server_haar_noise

    @override
    def batches(self, round_index: int, rows: NDArray[np.int64]) -> CanaryBatches:
        # One gradient stands for those of a batch: for their mean, or under Poisson sampling for the sum of all samples
        # that may be in it, over the expected number
        training, sizes = self.training, np.array([self.samples])
        steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
        expected = min(training.batch_size, self.samples) if training.sampling == "poisson" else self.samples
        shape = (int(steps[0]), len(rows))
        return CanaryBatches(np.ones(shape, dtype=np.bool_), np.full(shape, expected / self.samples))


@dataclass
class TrainedUploads(Uploads):
    """Uploads (``Uploads``) that end the local training of a client with the canary among its samples.

    Attributes:
        client: the client.
        random: whether its training is random, so that every trial needs one of its own.
        memory: what clipping remembers from round to round, for each sign and first row.
    """

    client: CanaryClient
    random: bool
    memory: dict[tuple[int, int], TransformState] = field(default_factory=dict)

    @override
    def of(self, round_index: int, sign: int, trials: int) -> CohortBlock:
        blocks = []
        for rows in chunks(trials if self.random else 1, self.client.dimension):
            memory = self.memory.setdefault((sign, int(rows[0])), {})
            batches = self.client.batches(round_index, rows)
            transform = self.client.transforms[round_index]
            blocks.append(self.client.train(round_index, rows, batches, sign, memory, transform))
        return CohortBlock(
            positions=np.arange(sum(len(block.positions) for block in blocks), dtype=np.int64),
            updates=torch.cat([block.updates for block in blocks]),
            norm_raw=np.concatenate([block.norm_raw for block in blocks]),
            norm=np.concatenate([block.norm for block in blocks]),
            train_loss=np.concatenate([block.train_loss for block in blocks]),
        )


def chunks(count: int, dimension: int) -> Iterator[NDArray[np.int64]]:
    """The numbers from 0 to count in pieces that train side by side."""
    at_once = max(1, _ELEMENTS // dimension)
    return (np.arange(first, min(first + at_once, count), dtype=np.int64) for first in range(0, count, at_once))
