"""Lower bounds on ε from the observations of a game: by the matched filter and by a threshold."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from wirelessfl.analysis.audit.games import Observations
from wirelessfl.analysis.audit.reports import beside
from wirelessfl.analysis.audit.statistics import (
    ShiftBound,
    ThresholdBound,
    epsilon_shown_without_error,
    sampled_epsilon,
    shift_bound,
    threshold_bound,
)
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.summary import epsilon_text

Values = NDArray[np.float64]

# Matched filter, difference, counts and threshold share the rate of false alarms.
_BOUNDS = 4
# A canary that is smaller beside the noise is lost in the rounding of numbers of 32 bits, and shows nothing.
_FAINTEST = 1e-5
# Correlations that differ by less are equal.
_EQUALLY_ALIKE = 1e-6
# Events of which all pairs are compared.
_MOST_EVENTS = 512
_NOTHING = ShiftBound(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Lower bounds on ε from observations.

    Attributes:
        false_alarm: the probability that one of the bounds exceeds the true ε, an equal part of it for each.
        plain: whether the adversary knows which events the canary is in; its statistic is then in units of the noise.
        gaussian: how far the canary moves the matched filter (plain), or by which factor it moves an event more than
            nominal (else); None where the noise is not Gaussian or depends on data.
        epsilon_gaussian: the ε that follows, 0 where there is none.
        epsilon_difference: the ε that two events show, one of which takes the noise off the other; 0 where none does.
        epsilon_count: the ε that the released counts of an adaptive clipping norm show; None where there are none.
        reports: how far the canary moves the losses that its client reports; None where it reports none.
        epsilon_reports: the ε that follows.
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
    epsilon_difference: float
    epsilon_count: float | None
    reports: ShiftBound | None
    epsilon_reports: float | None
    threshold: ThresholdBound
    with_canary: Values
    without: Values
    exchange: bool
    statistic: str

    @property
    def epsilon(self) -> float:
        """The largest of all lower bounds."""
        of_parts = self.epsilon_count or 0.0, self.epsilon_reports or 0.0
        return max(self.epsilon_gaussian, self.epsilon_difference, *of_parts, self.threshold.epsilon)

    def words(self, mu_published: float, mu_accounted: float) -> Iterator[str]:
        """Sentences on the measurements, beside the numbers of theorem and ledger."""
        if self.gaussian is not None and self.plain:
            beside = [f"√(2ρ) of the theorem is {mu_published:.3g}"] if not math.isnan(mu_published) else []
            beside += [f"the ledger counts {mu_accounted:.3g}"] if not math.isnan(mu_accounted) else []
            told = f"The outputs are at least μ = {self.gaussian.lower:.3g} standard deviations apart"
            yield "; ".join([told, *beside]) + "."
        if self.epsilon_difference > max(self.epsilon_gaussian, self.threshold.epsilon):
            yield (
                "The difference of two outputs, in which noise that is used again cancels, shows more: "
                f"ε ≥ {epsilon_text(self.epsilon_difference)}."
            )
        if self.epsilon_count is not None:
            shown = epsilon_text(self.epsilon_count)
            yield f"The released counts, from which the clipping norm follows, show ε ≥ {shown}."
        if self.reports is not None and self.epsilon_reports is not None:
            yield (
                f"The reported losses alone are at least μ = {self.reports.lower:.3g} apart: "
                f"ε ≥ {epsilon_text(self.epsilon_reports)}."
            )
        most = epsilon_shown_without_error(len(self.without), self.false_alarm / _bounds(self.reports))
        yield (
            f"A threshold, which assumes no distribution of noise, shows ε ≥ {epsilon_text(self.threshold.epsilon)} "
            f"(Clopper and Pearson); so many games cannot show more than {epsilon_text(most)} in this way."
        )


def _bounds(reports: object | None) -> int:
    return _BOUNDS + (reports is not None)


def weigh(
    observations: Observations,
    counts: Observations | None,
    delta: float,
    false_alarm: float,
    reports: Observations | None = None,
) -> Evidence:
    """All bounds on ε that observations give, each wrong with at most an equal part of ``false_alarm``.

    Args:
        observations: of the sums of updates or gradients.
        counts: of the counts that an adaptive clipping norm releases; None where there are none.
        delta: δ.
        false_alarm: the probability that any bound exceeds the true ε.
        reports: of the losses that are reported for the selection, seen beside the sums; None where there are none.
    """
    alpha = false_alarm / _bounds(reports)
    plain = observations.sample_rate >= 1
    alone = (None, None) if reports is None else _law_bound(reports, delta, alpha)
    if reports is not None and plain:
        observations, reports = beside(observations, reports), None
    with_canary, without = _matched_filter(observations) if plain else _likelihood_ratio(observations, reports)
    faint = float(np.max(observations.shift, initial=0.0)) < _FAINTEST
    lawful = observations.gaussian and not faint
    bound, epsilon = _law_bound(observations, delta, alpha, reports) if lawful else (_NOTHING, 0.0)
    pair = None if faint else best_difference(observations)
    return Evidence(
        false_alarm=false_alarm,
        plain=plain,
        gaussian=bound if observations.gaussian else None,
        epsilon_gaussian=epsilon,
        epsilon_difference=0.0 if pair is None else _law_bound(pair, delta, alpha)[1],
        epsilon_count=None if counts is None else _law_bound(counts, delta, alpha)[1],
        reports=alone[0],
        epsilon_reports=alone[1],
        threshold=threshold_bound(with_canary, without, delta, alpha),
        with_canary=with_canary,
        without=without,
        exchange=observations.exchange,
        statistic=observations.statistic if plain else "log-likelihood ratio",
    )


def _matched_filter(observations: Observations) -> tuple[Values, Values]:
    # T = Σ x_e a_e, in units of the nominal noise.
    weights = observations.shift / (float(np.linalg.norm(observations.shift)) or 1.0)
    return observations.plus @ weights, observations.minus @ weights


def _law_bound(
    observations: Observations, delta: float, alpha: float, reports: Observations | None = None
) -> tuple[ShiftBound, float]:
    # How far, or by which factor, the canary moves the statistic, and the ε that follows.
    if observations.sample_rate < 1:
        return _sampled_bound(observations, delta, alpha, reports)
    with_canary, without = _matched_filter(observations)
    same = np.ones(len(with_canary))
    bound = shift_bound(with_canary, without, same, same > 0, alpha)
    return bound, float(gaussian_epsilon(bound.lower, delta))


def best_difference(observations: Observations) -> Observations | None:
    """Pairs of events whose noise is most alike, one taken off the other; None where noise tells nothing of its kind.

    The canary counts in the first of a pair alone, as its gradient may be nothing in the other. The first half of the
    trials chooses the events, the second half is what is returned. There are several pairs, which share no event,
    where they are equally alike.
    """
    half, events = len(observations.plus) // 2, observations.plus.shape[1]
    lawful = observations.gaussian and observations.separable and observations.silent is None
    if not lawful or events < 2 or half < 3:
        return None
    # Under the same noise the middle between a canary and its opposite is the noise.
    noise = observations.minus + 0.5 * observations.exchange * (observations.plus - observations.minus)
    known = noise[:half, :_MOST_EVENTS]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.atleast_2d(np.nan_to_num(np.corrcoef(known, rowvar=False)))
    np.fill_diagonal(correlation, 0.0)
    alike, pairs = np.abs(correlation), list[tuple[int, int]]()
    least = max(alike.max() - _EQUALLY_ALIKE, _EQUALLY_ALIKE)
    while alike.max() >= least:
        one, other = divmod(int(np.argmax(alike)), len(alike))
        alike[[one, other]] = alike[:, [one, other]] = 0.0
        pairs.append((one, other) if observations.shift[one] >= observations.shift[other] else (other, one))
    if not pairs:
        return None
    (first, second), size = np.array(pairs).T, known.std(axis=0)
    known_part = correlation[first, second] * size[first] / size[second] * noise[half:, second]
    return replace(
        observations,
        plus=observations.plus[half:, first] - known_part,
        minus=observations.minus[half:, first] - known_part,
        shift=observations.shift[first],
        included=observations.included[half:, first],
    )


def skipped_rounds(observations: Observations) -> list[str]:
    """Sentence on rounds without a release in one world alone, if there are any; no matter of chance."""
    silent = observations.silent
    if silent is None or np.array_equal(*silent):
        return []
    told = f"{np.count_nonzero(silent[0] != silent[1])} of {silent[0].size}"
    return [
        f"In {told} events nothing is released in one of the two worlds: this reveals whether the client was there, "
        "but the ledger counts noise in every event."
    ]


def _sampled_bound(
    observations: Observations, delta: float, alpha: float, reports: Observations | None
) -> tuple[ShiftBound, float]:
    # The Gaussian noise and the sampling rate measured one by one, and composed.
    #
    # How far the canary moves an event that it is in is measured on those events (which the auditor knows, unlike the
    # adversary), and how often it is in one is counted. Reports, which it is known to be in, are composed with them.
    included, silent = observations.included, observations.silent
    heard = np.logical_not(np.zeros_like(included) if silent is None else silent[0] | silent[1])
    hits, events = int(included.sum()), included.size
    amplitude = np.broadcast_to(observations.shift, included.shape)
    if np.count_nonzero(included & heard) < 2:
        return _NOTHING, 0.0
    share = alpha / (2 + (reports is not None))
    bound = shift_bound(observations.plus[heard], observations.minus[heard], amplitude[heard], included[heard], share)
    rate = float(stats.beta.ppf(share, hits, events - hits + 1))
    known = 0.0 if reports is None else _law_bound(reports, delta, share)[0].lower
    return bound, sampled_epsilon(bound.lower * observations.shift, rate, delta, observations.exchange, known)


def _likelihood_ratio(observations: Observations, reports: Observations | None) -> tuple[Values, Values]:
    # The log-likelihood ratio of the two worlds, the size of the noise being that of the first half of the trials.
    half = len(observations.plus) // 2
    quiet = ~observations.included[:half] | (not observations.exchange)
    if observations.silent is not None:
        quiet &= ~observations.silent[1, :half]
    known = observations.minus[:half][quiet]
    size = float(known.std()) if known.size else 0.0
    size = size if size > 0 else float(np.max(observations.shift, initial=1.0))
    shift, rate = observations.shift / size, observations.sample_rate
    first, second = (shift / 2, -shift / 2) if observations.exchange else (shift, np.zeros_like(shift))

    def log_ratio(seen: Values) -> Values:
        def log_density(mean: Values) -> Values:
            return np.asarray(np.logaddexp(np.log1p(-rate), np.log(rate) + mean * seen - mean**2 / 2))

        return np.asarray((log_density(first) - log_density(second)).sum(axis=1))

    with_canary, without = log_ratio(observations.plus / size), log_ratio(observations.minus / size)
    if reports is None:
        return with_canary, without
    spread = float(reports.minus[:half].std()) or 1.0
    weights = reports.shift / spread**2
    return with_canary + reports.plus @ weights, without + reports.minus @ weights
