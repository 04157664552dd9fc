"""From the outputs of a distinguishing game to a lower bound on ε (PRIVACY.md, Audit).

Two bounds, each at a confidence of its own. For Gaussian outputs the distance of the two means is compared with a
*measured* standard deviation (a known one would hide a bug in the noise scale), and the exact curve turns it into ε.
Beside it stands a bound that assumes nothing: how often a threshold that was chosen on other trials errs (Clopper and
Pearson, Biometrika 1934).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from wirelessfl.errors import precondition
from wirelessfl.privacy.gaussian import EPSILON_CAP

Values = NDArray[np.float64]

# A standard deviation below this part of the distance is float rounding: there is no noise.
_ROUNDING = 1e-9
# Spacing of the loss grid; rounding down loses at most half of it in a step.
_GRID = 3e-4
_LARGEST_GRID = 50_000
# A use whose means are so many standard deviations apart says enough by itself (ε in the hundreds).
_CLEAR = 30.0


@dataclass(frozen=True)
class ShiftBound:
    """Distance by which the canary moves the outputs, in standard deviations of their noise.

    Attributes:
        estimate: the distance of the two means over the measured standard deviation; infinite without noise.
        lower: what it exceeds with the confidence asked for, at least 0.
    """

    estimate: float
    lower: float


def shift_bound(
    plus: Values, minus: Values, amplitude: Values, included: NDArray[np.bool_], alpha: float
) -> ShiftBound:
    """Lower confidence bound for f/σ, where outputs have variance σ² and the canary moves their mean by a f.

    Outputs come in pairs from the two worlds, each normal and independent of other pairs. Within a pair they may depend
    on each other: under the same noise their difference is exact, and the error of its mean is that of what is left to
    vary, where independent worlds would have √(2/n). With probability 1 − α/2 the mean difference exceeds the true one
    by at most t_{1−α/2} standard errors, and with probability 1 − α/2 the standard deviation is below
    s √(ν/χ²_{α/2}(ν)); both hold at 1 − α.

    Args:
        plus: (N,) outputs in the world with the canary.
        minus: (N,) their partners in the world with its opposite, or without it.
        amplitude: (N,) a, by how much more or less than others each is moved.
        included: (N,) which of them it moves; the others tell the size of the noise alone.
        alpha: the probability to be wrong.

    Raises:
        ValueError: if it moves fewer than two.
    """
    hits, moved = np.count_nonzero(included), np.where(included, amplitude, 0.0)
    precondition(hits >= 2, f"the canary is in {hits} events; a measurement needs at least 2")
    power, degrees = float(moved @ moved), len(plus) - 1
    if power == 0:
        return ShiftBound(0.0, 0.0)
    # What a regression on the amplitude leaves is noise; the larger of both worlds' is taken.
    left = [world - moved * (moved @ world) / power for world in (plus, minus)]
    deviation = math.sqrt(max(float(noise @ noise) for noise in left) / degrees)
    distance = float(moved @ (plus - minus)) / power
    if deviation <= _ROUNDING * abs(distance):
        certain = math.inf if distance > 0 else 0.0
        return ShiftBound(certain, certain)
    pairs = (left[0] - left[1])[included]
    error = math.sqrt(float(pairs @ pairs) / (len(pairs) - 1) / power) * float(stats.t.isf(alpha / 2, len(pairs) - 1))
    largest = deviation * math.sqrt(degrees / float(stats.chi2.ppf(alpha / 2, degrees)))
    return ShiftBound(distance / deviation, max(0.0, (distance - error) / largest))


@dataclass(frozen=True)
class ThresholdBound:
    """Error rates of a threshold chosen on held-out trials, and their bound on ε, for any distribution of the outputs.

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
    """Bound of a threshold that the first half of the trials chooses and the second judges.

    Args:
        with_canary: (n,) statistics of independent trials with the canary, large ones being typical.
        without: (n,) the same without it.
        delta: δ.
        alpha: the probability to be wrong, half of it for either error.

    Raises:
        ValueError: if there are fewer than two trials.
    """
    half = len(with_canary) // 2
    precondition(half, f"found {len(with_canary)} trials; choosing a threshold and testing it needs at least 2")

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


def epsilon_shown_without_error(trials: int, alpha: float) -> float:
    """Lower bound on ε of ``threshold_bound`` for so many trials, half of them judged, if no guess were wrong."""
    rate = clopper_pearson_upper(np.zeros(1, dtype=np.int64), trials - trials // 2, alpha / 2)
    return float(epsilon_of_errors(rate, rate, 0.0)[0])


def sampled_epsilon(shifts: Values, sample_rate: float, delta: float, exchange: bool, beside: float = 0.0) -> float:
    """A lower bound on ε of many uses of a Gaussian mechanism on a secret Poisson subsample.

    Composed on a grid of privacy losses that are rounded down, so that the result is below the truth. Where a single
    use is too clear for a grid, that use alone is the bound.

    Args:
        shifts: (E,) distance of the two means over the noise in each use, where the canary is in the subsample.
        sample_rate: in (0, 1], the probability that it is.
        delta: δ.
        exchange: whether the canary is exchanged for its opposite, rather than left out.
        beside: distance of the two means, over the noise, in further uses that the canary is known to be in.
    """
    largest = float(np.max(shifts, initial=0.0))
    if largest == 0.0:
        return 0.0
    alone = _one_use(largest, sample_rate, delta, exchange)
    clearest = max(largest, beside)
    interval = max(_GRID, (clearest**2 / 2 + 12 * clearest) / _LARGEST_GRID)
    if clearest > _CLEAR:
        return alone
    return max(alone, _composed(shifts, sample_rate, delta, exchange, interval, beside))


def _one_use(shift: float, sample_rate: float, delta: float, exchange: bool) -> float:
    # The best threshold test of one use (Neyman and Pearson: no other event tells more).
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


def _composed(
    shifts: Values, sample_rate: float, delta: float, exchange: bool, interval: float, beside: float
) -> float:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism, identity

    relation = NeighboringRelation.REPLACE_ONE if exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    composed = identity(interval, pessimistic_estimate=False)
    uses = [(sample_rate, *use) for use in zip(*np.unique(shifts[shifts != 0], return_counts=True), strict=True)]
    for rate, shift, count in [*uses, *([(1.0, beside, 1)] if beside > 0 else [])]:
        use = from_gaussian_mechanism(
            # Under REPLACE_ONE one contribution is exchanged for another, twice its size away.
            (2.0 if exchange else 1.0) / shift,
            pessimistic_estimate=False,
            value_discretization_interval=interval,
            sampling_prob=rate,
            use_connect_dots=False,
            neighboring_relation=relation,
        )
        composed = composed.compose(use.self_compose(int(count)))
    return float(composed.get_epsilon_for_delta(delta))
