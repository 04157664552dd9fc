"""What the observations of a game show of ε: two lower bounds, by the matched filter and by a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wirelessfl.analysis.audit_games import Observations
from wirelessfl.analysis.audit_statistics import (
    ShiftBound,
    ThresholdBound,
    epsilon_shown_without_error,
    plain_epsilon,
    sampled_epsilon,
    shift_bound,
    threshold_bound,
)

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What observations show of ε.

    Attributes:
        false_alarm: the probability that one of the bounds exceeds the true ε, half of it for either.
        plain: whether the adversary knows which events the canary is in; its statistic is then in units of the noise.
        gaussian: how far the canary moves the matched filter (plain), or by which factor it moves an event more than
            nominal (else); None where the noise is not Gaussian or depends on data.
        epsilon_gaussian: the ε that follows, 0 where there is none.
        threshold: the bound that assumes nothing.
        with_canary: (n,) the statistic in the world with the canary.
        without: (n,) in the other.
        exchange: whether the other world holds the opposite canary.
        statistic: its name.
    """

    false_alarm: float
    plain: bool
    gaussian: ShiftBound | None
    epsilon_gaussian: float
    threshold: ThresholdBound
    with_canary: Values
    without: Values
    exchange: bool
    statistic: str

    def words(self, mu_published: float, mu_accounted: float) -> Iterator[str]:
        """What was measured, beside what theorem and ledger say."""
        if self.gaussian is not None and self.plain:
            beside = [f"√(2ρ) of the theorem is {mu_published:.3g}"] if not math.isnan(mu_published) else []
            beside += [f"the ledger counts {mu_accounted:.3g}"] if not math.isnan(mu_accounted) else []
            told = f"The outputs are at least μ = {self.gaussian.lower:.3g} standard deviations apart"
            yield "; ".join([told, *beside]) + "."
        most = epsilon_shown_without_error(len(self.without), self.false_alarm / 2)
        yield (
            f"Whatever the law of the noise, a threshold shows ε ≥ {self.threshold.epsilon:.3g} (Clopper and Pearson); "
            f"so many games cannot show more than {most:.3g} in this way."
        )


def weigh(observations: Observations, delta: float, false_alarm: float) -> Evidence:
    """Both bounds on ε that observations give, each wrong with at most half of ``false_alarm``."""
    plain = observations.sample_rate >= 1
    with_canary, without = _matched_filter(observations) if plain else _likelihood_ratio(observations)
    gaussian, epsilon = None, 0.0
    if observations.gaussian and plain:
        same = np.ones(len(with_canary))
        gaussian = shift_bound(with_canary, without, same, same > 0, false_alarm / 2)
        epsilon = plain_epsilon(gaussian.lower, delta)
    elif observations.gaussian:
        gaussian, epsilon = _sampled_bound(observations, delta, false_alarm / 2)
    threshold = threshold_bound(with_canary, without, delta, false_alarm / 2)
    return Evidence(
        false_alarm=false_alarm,
        plain=plain,
        gaussian=gaussian,
        epsilon_gaussian=epsilon,
        threshold=threshold,
        with_canary=with_canary,
        without=without,
        exchange=observations.exchange,
        statistic=observations.statistic if plain else "log-likelihood ratio",
    )


def _matched_filter(observations: Observations) -> tuple[Values, Values]:
    """T = Σ x_e a_e, in units of the nominal noise."""
    size = float(np.linalg.norm(observations.shift))
    weights = observations.shift / size if size > 0 else observations.shift
    return observations.plus @ weights, observations.minus @ weights


def _sampled_bound(observations: Observations, delta: float, alpha: float) -> tuple[ShiftBound, float]:
    """The Gaussian noise and the sampling rate measured one by one, and composed.

    How far the canary moves an event that it is in is measured on those events (which the auditor knows, unlike the
    adversary), and how often it is in one is counted.
    """
    included = observations.included
    hits, events = int(included.sum()), included.size
    if hits < 2:
        return ShiftBound(0.0, 0.0), 0.0
    amplitude = np.broadcast_to(observations.shift, included.shape)
    plus, minus = observations.plus.ravel(), observations.minus.ravel()
    bound = shift_bound(plus, minus, amplitude.ravel(), included.ravel(), alpha / 2)
    rate = float(stats.beta.ppf(alpha / 2, hits, events - hits + 1))
    return bound, sampled_epsilon(bound.lower * observations.shift, rate, delta, observations.exchange)


def _likelihood_ratio(observations: Observations) -> tuple[Values, Values]:
    """The log-likelihood ratio of the two worlds, the size of the noise being that of the first half of the trials."""
    half = len(observations.plus) // 2
    size = float(np.std(observations.minus[:half][~observations.included[:half] | (not observations.exchange)]))
    size = size if size > 0 else float(np.max(observations.shift, initial=1.0))
    shift, rate = observations.shift / size, observations.sample_rate
    first, second = (shift / 2, -shift / 2) if observations.exchange else (shift, np.zeros_like(shift))

    def log_ratio(seen: Values) -> Values:
        def log_density(mean: Values) -> Values:
            return np.asarray(np.logaddexp(np.log1p(-rate), np.log(rate) + mean * seen - mean**2 / 2))

        return np.asarray((log_density(first) - log_density(second)).sum(axis=1))

    return log_ratio(observations.plus / size), log_ratio(observations.minus / size)
