"""Members of the families of learning and privacy as a user would write them, outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from wirelessfl.learning import Dataset, Examples, Optimizer, Partition
from wirelessfl.learning.optimizers import OptimizerState
from wirelessfl.privacy import ClippingLaw, DpSgdRelease, FixedClip, PrivacyFacts, Spending, Statement
from wirelessfl.privacy.clipping import Clipped, ClippingRule, ClippingState, Samples, Step
from wirelessfl.privacy.clipping.base import Memoryless
from wirelessfl.privacy.mechanisms import LocalSteps, NoiseMechanism, standard_normals

HERE = "tests.simulation.outside"


def owned(samples: int = 60, owners: int = 4) -> Dataset:
    """Three classes; sample j belongs to owner j mod ``owners``, whose number is ten times as large."""
    targets = torch.arange(samples) // 5 % 3
    examples = Examples(nn.functional.one_hot(targets, 3).float(), targets)
    return Dataset("owned", examples, examples, ("a", "b", "c"), 10 * (np.arange(samples) % owners))


def undivided() -> Dataset:
    return Dataset("undivided", owned().train, owned().test, ("a", "b", "c"))


def mislabelled() -> Dataset:
    examples = Examples(torch.zeros(6, 2), torch.arange(6))
    return Dataset("mislabelled", examples, examples, ("a", "b"))


def misowned() -> Dataset:
    return Dataset("misowned", owned().train, owned().test, ("a", "b", "c"), np.zeros(7, dtype=np.int64))


class Linear(nn.Sequential):
    """One layer, as a class."""

    def __init__(self, feature_shape: tuple[int, ...], num_classes: int, bias: bool = True) -> None:
        super().__init__(nn.Flatten(), nn.Linear(int(np.prod(feature_shape)), num_classes, bias=bias))


@dataclass(frozen=True)
class RoundRobin:
    """Client k gets the samples k + first, k + first + K and so on."""

    first: int = 0

    def divide(self, dataset: Dataset, num_clients: int, generator: np.random.Generator) -> Partition:
        order = np.argsort((np.arange(len(dataset.train)) - self.first) % num_clients, kind="stable")
        sizes = np.bincount(np.arange(len(order)) % num_clients)
        return Partition(np.concatenate([[0], np.cumsum(sizes)]), order)


class OneForAll:
    """Gives the same samples to everybody."""

    def divide(self, dataset: Dataset, num_clients: int, generator: np.random.Generator) -> Partition:
        return Partition(np.arange(num_clients + 1), np.zeros(num_clients, dtype=np.int64))


@dataclass(frozen=True)
class Signs(Optimizer):
    """w ← w − η s sign(g)."""

    scale: float = 1.0

    @override
    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        parameters.sub_(accumulated.sign(), alpha=learning_rate * self.scale)


class Averaging(Optimizer):
    """Mixes the clients' gradients."""

    @override
    def step(
        self, parameters: Tensor, accumulated: Tensor, state: OptimizerState, learning_rate: float, step: int
    ) -> None:
        parameters.sub_(accumulated.mean(0, keepdim=True), alpha=learning_rate)


@dataclass(frozen=True)
class Halving(Memoryless):
    """A rule that says nothing of what it costs: C halved every round."""

    clip_norm: float

    @override
    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        clip = self.clip_norm * 0.5 ** (step.round_index - 1)
        sensitivity = samples.squared_norms.new_full((len(samples.present),), clip)
        return Clipped((clip / samples.norms()).clamp(max=1.0).nan_to_num(nan=0.0), sensitivity, state)


class Stated(Halving):
    """The same, whose schedule is public, as its law says."""

    @override
    def law(self) -> ClippingLaw:
        return FixedClip()


@dataclass(frozen=True)
class ForeignLaw(ClippingLaw):
    """A law that no trace can hold."""


class Odd(Halving):
    """A rule of that law."""

    @override
    def law(self) -> ClippingLaw:
        return ForeignLaw()


@dataclass(frozen=True)
class Silent(NoiseMechanism):
    """Gaussian noise that leaves no record."""

    multiplier: float

    @override
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        noise = standard_normals("own", step, torch.empty_like(total))
        total += noise * (self.multiplier * sensitivity)[:, None]
        return torch.full_like(sensitivity, self.multiplier)


class Recorded(Silent):
    """The same with a record of the package."""

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> DpSgdRelease:
        return DpSgdRelease(
            *(steps.round_index, steps.clients, self.multiplier, steps.batch_sizes(), steps.steps, steps.sampling),
            clipping=clipping.law(),
        )


@dataclass(frozen=True, eq=False)
class OwnRecord:
    """Full batches: a plain Gaussian a step, for a sample and for a client."""

    route: ClassVar[str] = "noise of my own"
    relation: ClassVar[str] = "one sample more or fewer"

    round_index: int
    clients: NDArray[np.int64]
    multiplier: float
    steps: NDArray[np.int64]

    def published(self, facts: PrivacyFacts) -> Spending:
        return Spending(self.steps / self.multiplier**2)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        return Spending(self.steps / self.multiplier**2)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        yield "Mine says so."


class OwnRelease(Silent):
    """The same with a record of its own."""

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> OwnRecord:
        return OwnRecord(steps.round_index, steps.clients, self.multiplier, steps.steps)


class NoRecord(Silent):
    """Leaves something else."""

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> DpSgdRelease:
        return "nothing"  # type: ignore[return-value]


class OtherClients(Recorded):
    """Leaves a record of the first client alone, as if in the first round."""

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> DpSgdRelease:
        return DpSgdRelease(1, steps.clients[:1], self.multiplier, steps.batch_sizes()[:1], steps.steps[:1])
