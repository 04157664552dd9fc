"""Statements about privacy, the public facts they rest on, and costs of one release in terms that compose by addition.

Every mechanism of this package reduces to two kinds of cost: plain Gaussian mechanisms, which add up as
``gdp_mu²``, and Gaussian mechanisms on a random subsample, which an accountant composes.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.errors import precondition

Unit = Literal["sample", "client"]
Adjacency = Literal["add_remove", "replace"]
Adversary = Literal["observer", "server", "individual"]
Accountant = Literal["pld", "rdp", "gdp", "zcdp"]


def require_positive(**values: float) -> None:
    """Precondition on ``values``: positive finite numbers, else ValueError."""
    for name, value in values.items():
        precondition(0 < value < np.inf, f"{name} must be positive and finite, found {value}")


def require_non_negative(**values: float) -> None:
    """Precondition on ``values``: finite and not negative, else ValueError."""
    for name, value in values.items():
        precondition(0 <= value < np.inf, f"{name} must be finite and not negative, found {value}")


def require_choices(record: object, **choices: object) -> None:
    """Precondition on fields of ``record``: each is a member of its ``Literal``, else ValueError."""
    for name, choice in choices.items():
        value, allowed = getattr(record, name), get_args(choice)
        precondition(value in allowed, f"{name} must be one of {', '.join(allowed)}, found {value!r}")


@dataclass(frozen=True)
class Statement:
    """Statement that an epsilon belongs to.

    Attributes:
        delta: In (0, 1).
        unit: Whose contribution is protected: one training sample or one whole client.
        adjacency: ``add_remove`` is zero-out: the unit's contribution becomes nothing while every divisor,
            weight and rate stays a public constant. ``replace`` exchanges the unit for another one.
        adversary: ``observer`` sees the released global models; ``server`` also the received signal in both
            quadratures, the CSI and who took part; ``individual`` sees every client's upload.
        colluding: Number of clients (or the jammer) that tell the adversary their own noise.
        accountant: Which accountant composes subsampled releases. ``pld``, the default, is the tightest;
            ``gdp`` is an approximation by the central limit theorem and no bound.

    Raises:
        ValueError: If a value is outside its range.
    """

    delta: float
    unit: Unit = "sample"
    adjacency: Adjacency = "add_remove"
    adversary: Adversary = "server"
    colluding: int = 0
    accountant: Accountant = "pld"

    def __post_init__(self) -> None:
        precondition(0.0 < self.delta < 1.0, f"delta must lie strictly between 0 and 1, found {self.delta}")
        require_choices(self, unit=Unit, adjacency=Adjacency, adversary=Adversary, accountant=Accountant)
        precondition(self.colluding >= 0, f"colluding must not be negative, found {self.colluding}")

    @property
    def exchange(self) -> bool:
        """Whether two whole updates of one client are told apart, rather than an update and nothing.

        A sample can swing an update from one side of the clipping ball to the other, so for releases that
        only bound the whole update every statement about a sample is one about an exchanged client.
        """
        return self.unit == "sample" or self.adjacency == "replace"


@dataclass(frozen=True)
class PrivacyFacts:
    """Public constants of the population, fixed before the run.

    Attributes:
        samples: (K,) number of training samples n_i of each client; a client without any releases nothing.
        weights: (K,) aggregation weight p_i of each client, non-negative.
        total_samples: |D|, the sum over all clients.

    Raises:
        ValueError: If shapes differ or a value is out of range.
    """

    samples: NDArray[np.int64]
    weights: NDArray[np.float64]
    total_samples: int

    def __post_init__(self) -> None:
        precondition(
            self.samples.ndim == 1 and self.samples.shape == self.weights.shape,
            f"samples and weights must be one-dimensional and equally long, found {self.samples.shape} "
            f"and {self.weights.shape}",
        )
        precondition(
            self.total_samples >= 1 and not np.any(self.samples < 0),
            "samples must not be negative, and there must be at least one",
        )
        precondition(np.all(self.weights >= 0), "weights must not be negative or NaN")

    @cached_property
    def largest_weight(self) -> float:
        """The largest p_i."""
        return float(self.weights.max())

    @property
    def num_clients(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)


# Squares of multipliers up to it, and down to its inverse, are numbers; more noise counts as so much
_LARGEST_MULTIPLIER = 1e100

Conversion = Literal["accountant", "zcdp", "tail_bound"]
"""Conversion of a total cost to an epsilon: by the statement's accountant, or by the formula a paper prints."""


class Caveat(StrEnum):
    """A circumstance of a round that only the simulation knows and that voids the accounted guarantee."""

    REALISED_NORMS = (
        "the power control scales by realised update norms; these are private, and the scale that every client "
        "and the server learn depends on them"
    )
    MEANS_TOLD_APART = (
        "every client tells mean and variance of its update apart and without noise, and the scale that everybody "
        "learns follows from the variances; all of these are private"
    )
    NOTHING_ADDS_NOISE = "nothing adds noise to what is released"
    OUTSIDE_WAVEFORM = "a receiver or a modulation from outside the package leaves no release of its own"
    UNCLIPPED = "nothing bounds the update before it is released"
    UNBOUNDED_DESCENT = (
        "no update is clipped, and clipped gradients bound one only in gradient descent of clients that all follow the "
        "protocol and upload its outcome alone"
    )
    OWN_NORM = "a client's symbols are scaled by the norm of its own update, which is private, and carry that scale"


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


def no_guarantee(num_clients: int | None, reason: str) -> Spending:
    """Spending of a release about which nothing is proven: of its clients, or with None of every registered client."""
    size = 1 if num_clients is None else num_clients
    return Spending(np.full(size, np.inf), unproven=reason, everyone=num_clients is None)


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
    precondition(np.all((rate > 0) & (rate <= 1)), f"sample rate must lie in (0, 1], found {sample_rate!r}")
    precondition(np.all(multiplier >= 0), f"noise multiplier must not be negative or NaN, found {noise_multiplier!r}")
    plain = (rate == 1) | (multiplier < 1 / _LARGEST_MULTIPLIER) | (uses == 0)
    multiplier = np.minimum(multiplier, _LARGEST_MULTIPLIER)
    reach = 2.0 if exchange else 1.0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        squared = np.where(uses > 0, uses * (reach / multiplier) ** 2, 0.0)
    sampled = SampledSteps(np.where(plain, 1.0, multiplier), rate, np.where(plain, 0, uses), exchange, fixed_size)
    return Spending(np.where(plain, squared, 0.0), sampled if not plain.all() else None, everyone=everyone)
