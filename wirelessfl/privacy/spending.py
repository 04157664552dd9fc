"""Costs of one release to its clients, in terms that compose by addition.

Every mechanism of this package reduces to two kinds of cost: plain Gaussian mechanisms, which add up as
``gdp_mu²``, and Gaussian mechanisms on a random subsample, which an accountant composes.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Squares of multipliers up to it, and down to its inverse, are numbers; more noise counts as so much
_LARGEST_MULTIPLIER = 1e100

Conversion = Literal["accountant", "zcdp", "tail_bound"]
"""How a total cost becomes an epsilon: by the statement's accountant, or by the formula a paper prints."""


class Caveat(StrEnum):
    """A circumstance of a round that only the simulation knows and that voids the accounted guarantee."""

    REALISED_NORMS = (
        "the power control scales by realised update norms; these are private, and the scale that every client "
        "and the server learn depends on them"
    )
    NOTHING_ADDS_NOISE = "nothing adds noise to what is released"
    OUTSIDE_WAVEFORM = "a receiver or a modulation from outside the package leaves no release of its own"
    UNCLIPPED = "nothing bounds the update before it is released"


class SampledGaussian(NamedTuple):
    """A Gaussian mechanism on a random subsample, the event that an accountant composes.

    Attributes:
        noise_multiplier: Noise standard deviation over the norm of one contribution, positive.
        sample_rate: Probability that a contribution is in the subsample, in (0, 1).
        exchange: Whether two different contributions are told apart, not a contribution and nothing.
        fixed_size: Whether the subsample has a fixed size (drawn without replacement), not Poisson.
    """

    noise_multiplier: float
    sample_rate: float
    exchange: bool = False
    fixed_size: bool = False

    @property
    def full_mu_squared(self) -> float:
        """The cost ``gdp_mu²`` of one use if the subsample were known: an upper bound, without amplification."""
        return ((2.0 if self.exchange else 1.0) / self.noise_multiplier) ** 2


@dataclass(frozen=True, eq=False)
class SampledSteps:
    """Uses of sampled Gaussian mechanisms, one row a client.

    Attributes:
        noise_multiplier: (n,) positive.
        sample_rate: (n,) in (0, 1).
        count: (n,) number of uses, int64.
        exchange: As in ``SampledGaussian``, the same for all.
        fixed_size: As in ``SampledGaussian``, the same for all.
    """

    noise_multiplier: NDArray[np.float64]
    sample_rate: NDArray[np.float64]
    count: NDArray[np.int64]
    exchange: bool
    fixed_size: bool = False


@dataclass(frozen=True, eq=False)
class Spending:
    """Cost of one release to each of its clients.

    Attributes:
        mu_squared: (n,) sum of (sensitivity / noise std)² of the plain Gaussian mechanisms.
        sampled: Sampled Gaussian mechanisms used on top, if any.
        conversion: How the total over a run becomes an epsilon.
        unproven: Why no guarantee holds, in words; None if one does.
        everyone: The arrays have length one and hold for every registered client, selected or not.
    """

    mu_squared: NDArray[np.float64]
    sampled: SampledSteps | None = None
    conversion: Conversion = "accountant"
    unproven: str | None = None
    everyone: bool = False


def no_guarantee(num_clients: int, reason: str) -> Spending:
    """Spending of a release about which nothing is proven."""
    return Spending(np.full(num_clients, np.inf), unproven=reason)


def no_guarantee_for_anyone(reason: str) -> Spending:
    """Spending without guarantee for every registered client, selected or not."""
    return Spending(np.full(1, np.inf), unproven=reason, everyone=True)


def sampled_spending(
    noise_multiplier: ArrayLike,
    sample_rate: ArrayLike,
    count: ArrayLike,
    *,
    exchange: bool,
    fixed_size: bool = False,
    everyone: bool = False,
) -> Spending:
    """Spending of ``count`` uses of a Gaussian mechanism on a subsample.

    Clients whose sample rate is one, or who have no noise worth the name, pay the plain Gaussian cost.

    Args:
        noise_multiplier: Noise standard deviation over the norm of one contribution, broadcast to (n,).
        sample_rate: In (0, 1], broadcast to (n,).
        count: Number of uses, broadcast to (n,).
        exchange: Whether two different contributions are told apart, not a contribution and nothing.
        fixed_size: Whether the subsample is drawn without replacement.
        everyone: As in ``Spending``.

    Raises:
        ValueError: If a noise multiplier is negative, or a sample rate is outside (0, 1].
    """
    multiplier, rate, uses = np.broadcast_arrays(
        np.atleast_1d(np.asarray(noise_multiplier, dtype=np.float64)),
        np.asarray(sample_rate, dtype=np.float64),
        np.asarray(count, dtype=np.int64),
    )
    if not np.all((rate > 0) & (rate <= 1)):
        raise ValueError(f"sample rate must lie in (0, 1], found {sample_rate!r}")
    if not np.all(multiplier >= 0):
        raise ValueError(f"noise multiplier must not be negative or NaN, found {noise_multiplier!r}")
    plain = (rate == 1) | (multiplier < 1 / _LARGEST_MULTIPLIER) | (uses == 0)
    multiplier = np.minimum(multiplier, _LARGEST_MULTIPLIER)
    reach = 2.0 if exchange else 1.0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        squared = np.where(uses > 0, uses * (reach / multiplier) ** 2, 0.0)
    sampled = SampledSteps(np.where(plain, 1.0, multiplier), rate, np.where(plain, 0, uses), exchange, fixed_size)
    return Spending(np.where(plain, squared, 0.0), sampled if not plain.all() else None, everyone=everyone)
