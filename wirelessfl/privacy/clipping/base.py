"""The protocol of clipping rules, what passes between a rule and the engine, and public schedules of their norms.

A rule looks at the norms of per-sample gradients and says with which weight each gradient enters the sum; whoever
computes gradients never has to form them. All arrays are stacked over the k clients that train side by side, and a
rule's memory is a dictionary of rows, one a client: a client's numbers never depend on who else trains.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.costs import require_positive
from wirelessfl.privacy.laws import ClippingLaw, UnknownClip
from wirelessfl.streams import Streams

ClippingState: TypeAlias = dict[str, Tensor]
SMALLEST_NORM = 1e-12
"""The smallest norm that is told from others: the squares of numbers below 1e-22 are 0 in single precision."""


class Step(Protocol):
    """Round, local step and clients of a call; ``wirelessfl.learning.StepContext`` is one."""

    @property
    def streams(self) -> Streams:
        """The run's random streams. Draw per client, step and round, never per group of clients."""

    @property
    def round_index(self) -> int:
        """Communication round, from 1."""

    @property
    def step(self) -> int:
        """Local step in this round, from 0."""

    @property
    def clients(self) -> NDArray[np.int64]:
        """(k,) the clients."""

    @property
    def divisor(self) -> Tensor:
        """(k,) the public number by which the sum over a batch is divided."""

    @property
    def learning_rate(self) -> float:
        """η."""


@dataclass(frozen=True)
class Samples:
    """Norms and weighted sums of the per-sample gradients of one step.

    Attributes:
        squared_norms: (k, B, L) squared norms of the L parts of each sample's gradient: of every parameter in flat
            order, or with L = 1 the norm of the whole in the domain that the noise is calibrated to. Arbitrary
            where a sample is not ``present``.
        present: (k, B) bool, False where a batch is smaller than the largest.
        weighted_sum: From weights (k, B) or (k, B, L) to the (k, d) sums of the raw weighted gradients, which ignore
            samples that are not present. A rule whose clip follows such a sum has no privacy guarantee.
        inner: From a vector (k, d) for each client to the inner products (k, B) with the raw gradients of its samples,
            arbitrary where a sample is not ``present``. No guarantee either.
    """

    squared_norms: Tensor
    present: Tensor
    weighted_sum: Callable[[Tensor], Tensor]
    inner: Callable[[Tensor], Tensor]

    def norms(self) -> Tensor:
        """(k, B) norm of each sample's whole gradient."""
        return self.squared_norms.sum(-1).sqrt()


@dataclass(frozen=True)
class Clipped:
    """Weights of the samples of one step, and the sensitivity of their sum.

    Attributes:
        weights: (k, B) in [0, 1], or (k, B, L) with one for each part. A gradient whose norm is not a number gets
            weight 0.
        sensitivity: (k,) bound on the norm of one weighted gradient; the noise is scaled to it.
        state: What ``learn`` needs: the rows (k, ...), and whatever else a rule wants to pass on within the step.
    """

    weights: Tensor
    sensitivity: Tensor
    state: ClippingState


@runtime_checkable
class ClippingRule(Protocol):
    """Clipping of per-sample gradients: a bound on the gradient of one sample.

    Rules are frozen and keep nothing between calls; they change none of their arguments. Check a rule of your own
    with ``check_clipping_rule``. A class that derives from this one may leave out ``lasting`` and ``law``.
    """

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of those state rows that a client keeps from round to round; the others start anew."""
        return ()

    def law(self) -> ClippingLaw:
        """Public facts for the ledger: the privacy cost of the rule; without them nothing is proven."""
        return UnknownClip()

    def start(self, clients: int, like: Tensor) -> ClippingState:
        """The rows (clients, ...) of clients that have never trained, in the dtype and on the device of ``like``.

        Args:
            clients: k.
            like: (d,) a model.
        """

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """Weights for the samples of this step."""

    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        """The rows for the next step, by the names of ``start``, after the noised result of this one is known.

        What a rule learns from ``released`` costs no privacy.

        Args:
            released: (k, d) the noised sums of clipped gradients; divided by ``step.divisor`` they are what the
                optimizer sees. A rule may keep it: nobody changes it from here on.
            state: What ``clip`` gave back.
            step: This step.
        """


class Memoryless(ClippingRule):
    """Clipping rules without state."""

    @override
    def start(self, clients: int, like: Tensor) -> ClippingState:
        return {}

    @override
    def learn(self, released: Tensor, state: ClippingState, step: Step) -> ClippingState:
        return state


def shrink(norms: Tensor, clip: Tensor) -> Tensor:
    """Weights min(1, clip/max(norm, 1e-12)), 0 where the norm is infinite or not a number.

    Args:
        norms: Norms, zero or more; below 1e-12 the sum of squares may have lost what there is.
        clip: Largest norms allowed, broadcast to ``norms``.
    """
    return (clip / norms.clamp(min=SMALLEST_NORM)).clamp(max=1.0).nan_to_num(nan=0.0)


class Schedule(Protocol):
    """A number for each round."""

    def at(self, round_index: int) -> float:
        """The value in a round, counted from 1."""


@dataclass(frozen=True)
class Constant(Schedule):
    """Constant schedule: the same number in every round.

    Raises:
        ValueError: If it is negative, infinite or not a number.
    """

    value: float

    def __post_init__(self) -> None:
        precondition(
            0 <= self.value < float("inf"), f"a constant schedule must be finite and not negative, found {self.value}"
        )

    @override
    def at(self, round_index: int) -> float:
        return self.value


@dataclass(frozen=True)
class Geometric(Schedule):
    """Geometric schedule from ``first`` by equal factors: first · ratio^((m − 1)/rounds) in round m.

    Source: Du, Li, Feng, Chen, "Dynamic differential-privacy preserving SGD", arXiv:2111.00173, which lets the
    clipping norm decay as C_t = C_0 ρ_c^(−t/T) and the privacy parameter of a step follow μ_t = μ_0 ρ_μ^(t/T), its
    noise multiplier being 1/μ_t. Here t counts communication rounds, T = ``rounds``, so that every client is on the
    same public schedule however often it takes part. After the last round the value at its end is kept.

    Attributes:
        first: The value in round 1.
        ratio: Value after all rounds over the first one: below 1 decays, above 1 grows.
        rounds: Rounds M of the run.

    Raises:
        ValueError: If a value is not positive and finite.
    """

    first: float
    ratio: float
    rounds: int

    def __post_init__(self) -> None:
        require_positive(first=self.first, ratio=self.ratio, rounds=self.rounds)

    @override
    def at(self, round_index: int) -> float:
        return float(self.first * self.ratio ** (min(round_index - 1, self.rounds) / self.rounds))
