"""The protocol of noise mechanisms, and where their random numbers come from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.normals import add_normal
from wirelessfl.privacy import Release, Sampling, SecureSum, UnvouchedRelease
from wirelessfl.privacy.clipping import ClippingRule, Step


class PerSampleGradients(Protocol):
    """The gradients of one step; ``wirelessfl.learning.SampleGradients`` is one, and says what each method gives."""

    present: Tensor

    def squared_norms(self) -> Tensor:
        """(k, B, L) squared norms of the parts of each sample's gradient."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """(k, d) sums of the weighted gradients."""

    def pieces(self) -> Iterator[Sequence[tuple[Tensor, Tensor | None]]]:
        """The gradients piece by piece, (k, b, m) of some samples at a time, outer products (k, b, m), (k, b, n)."""

    def formed(self) -> Iterator[tuple[slice, Tensor]]:
        """The gradients themselves, (k, b, d) for a slice of the samples at a time."""


@dataclass(frozen=True, eq=False)
class LocalSteps:
    """The local steps of one round in public numbers: all that a record of them needs besides rule and mechanism.

    Attributes:
        round_index: Communication round, from 1.
        clients: (n,) who trained and sent the result.
        samples: (n,) n_i.
        batch_size: Samples in a full batch, the same for all; their expected number under Poisson sampling.
        steps: (n,) local steps in this round.
        sampling: How batches were drawn, see ``DpSgdRelease``.
        dimension: d.
        secure_sum: The secure aggregation that hid the uploads; None for none.
        linear_upload: Whether an upload of one step is a constant times the noised mean, see ``ZcdpRelease``.
    """

    round_index: int
    clients: NDArray[np.int64]
    samples: NDArray[np.int64]
    batch_size: int
    steps: NDArray[np.int64]
    sampling: Sampling
    dimension: int
    secure_sum: SecureSum | None = None
    linear_upload: bool = False

    def batch_sizes(self) -> NDArray[np.int64]:
        """(n,) samples in a full batch of each client, at most n_i."""
        return np.minimum(self.batch_size, self.samples)


@dataclass(frozen=True)
class MechanismFacts:
    """Public facts of a noise mechanism.

    Attributes:
        unit: Whose contribution the noise is calibrated to hide.
        adds_noise: False where it only clips: then there is nothing of its own to record.
    """

    unit: Literal["sample"] = "sample"
    adds_noise: bool = True


@runtime_checkable
class NoiseMechanism(Protocol):
    """Noise on the sum of clipped gradients of each client, in each local step.

    Mechanisms are frozen and draw from ``step.streams`` alone: once for each client, step and round, so that a
    client's noise depends neither on the other clients nor on how they are grouped, and never on data. Check a
    mechanism of your own with ``check_noise_mechanism``. A class that derives from this one has to define ``add``
    alone; without a ``release`` nothing is proven.
    """

    def facts(self) -> MechanismFacts:
        """Public facts: the unit, and whether there is noise at all."""
        return MechanismFacts()

    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        """(k, B, L) squared norms by which gradients are to be clipped, in the domain this noise is calibrated to.

        L is 1 where the norm does not split into parts.
        """
        return gradients.squared_norms()

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Addition of noise to sums in place.

        Args:
            total: (k, d) sums of clipped gradients.
            sensitivity: (k,) bound on the norm, as ``squared_norms`` measures it, of one gradient in the sum.
            step: Whose and which step this is.

        Returns:
            (k,) the noise multiplier used: standard deviation over sensitivity, as the record understands it.
        """

    def release(self, steps: LocalSteps, clipping: ClippingRule) -> Release:
        """The record of a round's local steps for the ledger.

        Raises:
            ValueError: If no record covers this combination.
        """
        code = f"the noise mechanism {type(self).__module__}:{type(self).__qualname__}"
        return UnvouchedRelease(steps.round_index, steps.clients, code)


Add = TypeVar("Add", bound=Callable[..., Tensor])


def divisible(add: Add) -> Add:
    """Mark of an ``add`` whose noise on a sum, divided, is its noise on the mean.

    On a mean, with the sensitivity over the divisor and a divisor of 1, it adds what it would have added to the sum,
    divided, and gives the same multiplier; so the engine never needs to form the sum. ``check_noise_mechanism`` tests
    it. The mark is on the method: another ``add`` in a derived class does not inherit it.
    """
    vars(add)["divisible"] = True
    return add


def is_divisible(mechanism: NoiseMechanism) -> bool:
    """Whether the mechanism's ``add`` is marked as ``divisible``."""
    return getattr(type(mechanism).add, "divisible", False)


def standard_normals(purpose: str, step: Step, out: Tensor) -> Tensor:
    """Standard normal numbers of a random stream, in place.

    Args:
        purpose: Names the random stream.
        step: Whose and which step this is.
        out: (k, length), row i of which becomes the beginning of a stream that follows from seed, purpose, round,
            step and client i alone.

    Returns:
        ``out``.
    """
    drawn = step.streams, purpose, step.round_index, step.clients, step.step
    return add_normal(out.zero_(), out.new_ones(len(out)), *drawn)
