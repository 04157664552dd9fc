"""Meaning of an ε: how well an attacker who knows all data but one unit can decide whether it is in the data.

Every (ε, δ) says that an attacker with a false-positive rate α has a true-positive rate of at most
min(e^ε α + δ, 1 − e^−ε (1 − δ − α)) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). Where all noise is
Gaussian the best test is known as well: its true-positive rate is Φ(Φ⁻¹(α) + μ) (Dong, Roth and Su 2022).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from wirelessfl.errors import precondition
from wirelessfl.privacy.gaussian import gaussian_mu

LOOSE = 10.0
"""ε above which a guarantee is called weak at best (Ponomareva et al., How to DP-fy ML, 2023)."""
STRONG = 1.0
"""ε up to which it is called strong there."""


def detection_bound(epsilon: float, delta: float, false_positives: ArrayLike) -> NDArray[np.float64]:
    """Largest true-positive rate that (ε, δ) allows, whatever the mechanism.

    Args:
        epsilon: Not negative; infinity stands for no guarantee.
        delta: In (0, 1).
        false_positives: Rates in [0, 1], any shape.

    Raises:
        ValueError: a number out of its range.
    """
    rates = np.asarray(false_positives, dtype=np.float64)
    _check(epsilon, delta, rates)
    if epsilon > _LARGEST:
        return np.ones(rates.shape)
    near, far = np.exp(epsilon) * rates + delta, 1.0 - np.exp(-epsilon) * (1.0 - delta - rates)
    bound: NDArray[np.float64] = np.clip(np.minimum(near, far), 0.0, 1.0)
    return bound


def gaussian_detection(epsilon: float, delta: float, false_positives: ArrayLike) -> NDArray[np.float64]:
    """True-positive rate of the best test against Gaussian noise that has just this ε at this δ.

    Args:
        epsilon: As for `detection_bound`.
        delta: As for `detection_bound`.
        false_positives: As for `detection_bound`.

    Raises:
        ValueError: a number out of its range.
    """
    rates = np.asarray(false_positives, dtype=np.float64)
    _check(epsilon, delta, rates)
    shift = _shift(epsilon, delta)
    if math.isinf(shift):
        return np.ones(rates.shape)
    detected: NDArray[np.float64] = special.ndtr(special.ndtri(rates) + shift)
    return detected


@dataclass(frozen=True)
class Meaning:
    """What an attacker can do at an (ε, δ).

    Attributes:
        epsilon: ε.
        delta: δ.
        odds: Factor e^ε by which the odds of an attacker may grow; more than twice that has a chance of at most 2 δ.
        guess_bound: Largest share of right guesses on whether the unit is in the data, 0.5 being chance.
        guess_gaussian: The same where all noise is Gaussian.
        found_bound: Largest true-positive rate at one false alarm in a thousand.
        found_gaussian: The same where all noise is Gaussian.
    """

    epsilon: float
    delta: float
    odds: float
    guess_bound: float
    guess_gaussian: float
    found_bound: float
    found_gaussian: float

    @property
    def advantage_bound(self) -> float:
        """Largest membership advantage: true-positive minus false-positive rate of the best test."""
        return 2.0 * self.guess_bound - 1.0

    @property
    def advantage_gaussian(self) -> float:
        """The same where all noise is Gaussian."""
        return 2.0 * self.guess_gaussian - 1.0

    def belief(self, prior: float) -> float:
        """Largest belief that the unit is in the data, given one of ``prior`` before and the factor ``odds``."""
        precondition(0 < prior < 1, f"a prior lies strictly between 0 and 1, found {prior!r}")
        return 1.0 / (1.0 + (1.0 - prior) / prior / self.odds)


RARE = 1e-3
"""One false alarm in a thousand."""
_LARGEST = 700.0  # e^ε is the largest floating-point number a little above
_BOUNDLESS = 1e12  # ε above which every rate of the best test is 1 in floating-point numbers


def meaning_of(epsilon: float, delta: float) -> Meaning:
    """What an attacker can do at an (ε, δ).

    Raises:
        ValueError: ε is negative or NaN, or δ is outside (0, 1).
    """
    _check(epsilon, delta, np.zeros(1))
    odds = math.exp(epsilon) if epsilon <= _LARGEST else math.inf
    return Meaning(
        epsilon=epsilon,
        delta=delta,
        odds=odds,
        guess_bound=1.0 if math.isinf(odds) else (odds + delta) / (1.0 + odds),
        guess_gaussian=float(special.ndtr(_shift(epsilon, delta) / 2.0)),
        found_bound=float(detection_bound(epsilon, delta, RARE)),
        found_gaussian=float(gaussian_detection(epsilon, delta, RARE)),
    )


def verdict(epsilon: float) -> str:
    """Words for an ε as in *How to DP-fy ML*: strong up to 1, reasonable up to 10, weak to none above."""
    if epsilon <= STRONG:
        return "strong"
    return "reasonable" if epsilon <= LOOSE else "weak to none"


def _shift(epsilon: float, delta: float) -> float:
    # The μ of Gaussian noise that has just this ε at this δ
    return math.inf if epsilon > _BOUNDLESS else float(gaussian_mu(epsilon, delta))


def _check(epsilon: float, delta: float, rates: NDArray[np.float64]) -> None:
    precondition(epsilon >= 0, f"epsilon must not be negative or NaN, found {epsilon!r}")
    precondition(0 < delta < 1, f"delta must lie strictly between 0 and 1, found {delta!r}")
    precondition(np.all((rates >= 0) & (rates <= 1)), "rates of false positives lie between 0 and 1")
