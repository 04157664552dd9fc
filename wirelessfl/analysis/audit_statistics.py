"""From the outputs of a distinguishing game to a lower bound on ε (PRIVACY.md, Audit).

Two bounds, each at a confidence of its own. For Gaussian outputs the distance of the two means is compared with a
*measured* standard deviation (a known one would hide a bug in the noise scale), and the exact curve turns it into ε.
Beside it stands a bound that assumes nothing: how often a threshold that was chosen on other trials errs (Clopper and
Pearson, Biometrika 1934).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from wirelessfl.privacy.gaussian import EPSILON_CAP, gaussian_epsilon

Values = NDArray[np.float64]

ROUNDING = 1e-9
"""A standard deviation below this part of the distance is float rounding: there is no noise."""
_GRID = 3e-4
"""Spacing of the loss grid; rounding down loses at most half of it in a step."""
_LARGEST_GRID = 50_000
_CLEAR = 30.0
"""A use whose means are so many standard deviations apart says enough by itself (ε in the hundreds)."""


@dataclass(frozen=True)
class ShiftBound:
    """How far the canary moves the outputs, in standard deviations of their noise.

    Attributes:
        estimate: the distance of the two means over the measured standard deviation; infinite without noise.
        lower: what it exceeds with the confidence asked for, at least 0.
    """

    estimate: float
    lower: float


def shift_bound(values: Values, amplitude: Values, group: NDArray[np.int8], alpha: float) -> ShiftBound:
    """Lower confidence bound for f/σ, where values are N(f a/2 · group, σ²) up to an offset common to all groups.

    With probability 1 − α/2 the standard deviation is below σ_hi = s √(ν/χ²_{α/2}(ν)), and with probability 1 − α/2 the
    estimated distance exceeds the true one by at most z_{1−α/2} standard errors; both hold at 1 − α, and then
    f/σ >= f̂/σ_hi − z √(1/A₊ + 1/A₋), A the sums of squared amplitudes. With amplitude 1 and n values on either side
    this is PRIVACY.md's μ̂ − z √(2/n) with the variance estimated as well.

    Args:
        values: (N,) outputs.
        amplitude: (N,) a, by how much more or less than others each is moved.
        group: (N,) 1 and −1 for the two worlds; 0 for values that are noise alone and only tell its size.
        alpha: the probability to be wrong.

    Raises:
        ValueError: if one of the worlds has no value, or there are too few to estimate a variance.
    """
    total_square, degrees = 0.0, len(values)
    means, sums = {}, {}
    for name in (1, -1, 0):
        here = group == name
        if not here.any():
            continue
        sums[name] = float(np.sum(amplitude[here] ** 2))
        means[name] = float(np.sum(amplitude[here] * values[here])) / sums[name]
        total_square += float(np.sum((values[here] - means[name] * amplitude[here]) ** 2))
        degrees -= 1
    if 1 not in means or -1 not in means or degrees < 1:
        raise ValueError(f"found {len(values)} values, too few to compare the two worlds")
    distance = means[1] - means[-1]
    deviation = math.sqrt(total_square / degrees)
    if deviation <= ROUNDING * abs(distance):
        certain = math.inf if distance > 0 else 0.0
        return ShiftBound(certain, certain)
    largest = deviation * math.sqrt(degrees / float(stats.chi2.ppf(alpha / 2, degrees)))
    error = float(stats.norm.isf(alpha / 2)) * math.sqrt(1 / sums[1] + 1 / sums[-1])
    return ShiftBound(distance / deviation, max(0.0, distance / largest - error))


@dataclass(frozen=True)
class ThresholdBound:
    """What a threshold chosen on held-out trials shows, whatever the law of the outputs.

    Attributes:
        threshold: above it the guess is that the canary was there.
        false_positives: upper bound on the probability of a wrong guess without the canary.
        false_negatives: the same with it.
        epsilon: the lower bound.
    """

    threshold: float
    false_positives: float
    false_negatives: float
    epsilon: float


def clopper_pearson_upper(hits: NDArray[np.int64], trials: int, alpha: float) -> Values:
    """Upper confidence bound on a probability of which ``hits`` of ``trials`` were seen, exact for the binomial law."""
    return np.asarray(np.where(hits >= trials, 1.0, stats.beta.isf(alpha, hits + 1, np.maximum(trials - hits, 1))))


def epsilon_of_errors(false_positives: Values, false_negatives: Values, delta: float) -> Values:
    """The ε that a test with these error probabilities refutes: the larger of both roles of the two worlds.

    (ε, δ) demands 1 − β <= e^ε α + δ and 1 − α <= e^ε β + δ of every test (Kairouz, Oh, Viswanath, ICML 2015).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.log(np.maximum(1 - false_negatives - delta, 0.0)) - np.log(false_positives)
        other = np.log(np.maximum(1 - false_positives - delta, 0.0)) - np.log(false_negatives)
    return np.asarray(np.fmax(np.fmax(one, other), 0.0))


def threshold_bound(with_canary: Values, without: Values, delta: float, alpha: float) -> ThresholdBound:
    """Choose a threshold on the first half of the trials, judge it on the second.

    Args:
        with_canary: (n,) statistics of independent trials with the canary, large ones being typical.
        without: (n,) the same without it.
        delta: δ.
        alpha: the probability to be wrong, half of it for either error.

    Raises:
        ValueError: if there are fewer than two trials.
    """
    half = len(with_canary) // 2
    if half < 1:
        raise ValueError(f"found {len(with_canary)} trials; to choose a threshold and to judge it takes at least 2")

    def bound_at(thresholds: Values, positive: Values, negative: Values) -> tuple[Values, Values, Values]:
        missed = np.searchsorted(np.sort(positive), thresholds, side="right")
        raised = len(negative) - np.searchsorted(np.sort(negative), thresholds, side="right")
        wrong_with = clopper_pearson_upper(missed, len(positive), alpha / 2)
        wrong_without = clopper_pearson_upper(raised, len(negative), alpha / 2)
        return wrong_without, wrong_with, epsilon_of_errors(wrong_without, wrong_with, delta)

    seen = np.unique(np.concatenate([with_canary[:half], without[:half]]))
    candidates = 0.5 * (seen[1:] + seen[:-1]) if len(seen) > 1 else seen
    promise = bound_at(candidates, with_canary[:half], without[:half])[2]
    # Where many thresholds promise the same, the middle one is furthest from both worlds.
    best = np.flatnonzero(promise == promise.max())
    threshold = candidates[best[len(best) // 2]]
    judged = bound_at(np.array([threshold]), with_canary[half:], without[half:])
    return ThresholdBound(float(threshold), *(float(value[0]) for value in judged))


def plain_epsilon(gdp_mu: float, delta: float) -> float:
    """ε of the Gaussian mechanism of this μ, on the exact curve."""
    return float(gaussian_epsilon(gdp_mu, delta))


def sampled_epsilon(shifts: Values, sample_rate: float, delta: float, exchange: bool) -> float:
    """A lower bound on ε of many uses of a Gaussian mechanism on a secret Poisson subsample.

    Composed on a grid of privacy losses that are rounded down, so that the result is below the truth. Where a single
    use is too clear for a grid, that use alone is the bound.

    Args:
        shifts: (E,) distance of the two means over the noise in each use, where the canary is in the subsample.
        sample_rate: in (0, 1], the probability that it is.
        delta: δ.
        exchange: whether the canary is exchanged for its opposite, rather than left out.
    """
    largest = float(np.max(shifts, initial=0.0))
    if largest == 0.0:
        return 0.0
    alone = _one_use(largest, sample_rate, delta, exchange)
    if largest > _CLEAR:
        return alone
    interval = max(_GRID, (largest**2 / 2 + 12 * largest) / _LARGEST_GRID)
    return max(alone, _composed(shifts, sample_rate, delta, exchange, interval))


def _one_use(shift: float, sample_rate: float, delta: float, exchange: bool) -> float:
    """The best threshold test of one use (Neyman and Pearson: no other event tells more)."""
    if not math.isfinite(shift):
        return math.inf if sample_rate > delta else 0.0
    first, second = (shift / 2, -shift / 2) if exchange else (shift, 0.0)
    thresholds = np.linspace(-10.0, first + 10.0, 20_001)
    absent, there = math.log1p(-sample_rate) if sample_rate < 1 else -math.inf, math.log(sample_rate)

    def log_exceeds(mean: float) -> Values:
        tails = absent + special.log_ndtr(-thresholds), there + special.log_ndtr(mean - thresholds)
        return np.asarray(np.logaddexp(*tails))

    with np.errstate(divide="ignore"):
        refuted = np.log(np.maximum(np.exp(log_exceeds(first)) - delta, 0.0)) - log_exceeds(second)
    epsilon = max(0.0, float(refuted.max()))
    return epsilon if epsilon <= EPSILON_CAP else math.inf


def _composed(shifts: Values, sample_rate: float, delta: float, exchange: bool, interval: float) -> float:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, identity

    relation = NeighboringRelation.REPLACE_ONE if exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    composed = identity(interval, pessimistic_estimate=False)
    for shift, count in zip(*np.unique(shifts, return_counts=True), strict=True):
        if shift == 0:
            continue
        use = from_gaussian_mechanism(
            # Under REPLACE_ONE one contribution is exchanged for another, twice its size away.
            (2.0 if exchange else 1.0) / shift,
            pessimistic_estimate=False,
            value_discretization_interval=interval,
            sampling_prob=sample_rate,
            use_connect_dots=False,
            neighboring_relation=relation,
        )
        composed = composed.compose(use.self_compose(int(count)))
    return float(composed.get_epsilon_for_delta(delta))
