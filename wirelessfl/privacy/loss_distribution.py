"""Privacy loss distributions of sampled Gaussians: the numbers of dp-accounting, computed on arrays.

dp-accounting 0.6 inverts the loss and adds up delta in Python, one grid point after the other, and bounds the tails of
each number of compositions anew. Here the same operations run on arrays in the same order, so that the last bit is the
library's, and what the tails of a step allow is computed once a step. Only a tail bound within 1e-6 of a grid point
could be rounded to the next one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld.pld_pmf import DensePLDPmf, PLDPmf, create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from numpy.typing import NDArray
from scipy import fft

from wirelessfl.privacy.costs import SampledGaussian

Array = NDArray[np.float64]

_TAIL = 1e-15  # mass that a composition may cut off, which counts as an infinite loss
_ORDERS = 20  # of the Chernoff bounds, on each side
_BLOCK = 4096  # grid points that are added up at once
_NEXT_TO_ONE = 1 - 1e-14  # rates above are taken for 1, which costs no less: 1 − q has too few digits left


@dataclass(frozen=True)
class StepLosses:
    """Privacy loss distribution of one use of a mechanism, and of many.

    Attributes:
        distribution: of one use.
    """

    distribution: PrivacyLossDistribution

    @cached_property
    def _log_moments(self) -> list[tuple[Array, Array] | None]:
        # Of each direction, whatever the number of uses
        return [_log_moments(pmf) for pmf in _directions(self.distribution)]

    def composed(self, count: int) -> PrivacyLossDistribution:
        """The loss of ``count`` uses."""
        if count == 1:
            return self.distribution
        directions = zip(_directions(self.distribution), self._log_moments, strict=True)
        return PrivacyLossDistribution(*(_self_composed(pmf, count, moments) for pmf, moments in directions))


def losses_of_a_step(event: SampledGaussian, interval: float) -> StepLosses:
    """The loss of one use of a mechanism, rounded up to multiples of ``interval`` (connect the dots)."""
    if event.sample_rate > _NEXT_TO_ONE:
        event = event._replace(sample_rate=1.0)
    if event.exchange or math.isinf(1 / event.sample_rate):
        # An exchange has an inverse of its own, and a rate as small as this none in numbers
        relation = NeighboringRelation.REPLACE_ONE if event.exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
        distribution = from_gaussian_mechanism(
            event.noise_multiplier,
            value_discretization_interval=interval,
            sampling_prob=event.sample_rate,
            neighboring_relation=relation,
        )
    else:
        remove = _rounded_losses(event, AdjacencyType.REMOVE, interval)
        add = _rounded_losses(event, AdjacencyType.ADD, interval) if event.sample_rate < 1 else None
        distribution = PrivacyLossDistribution(remove, add)
    return StepLosses(distribution)


def epsilon_at(distribution: PrivacyLossDistribution, delta: float) -> float:
    """Epsilon at ``delta`` of the worse direction, infinite where there is none."""
    return float(np.max([_epsilon(pmf, delta) for pmf in _directions(distribution)]))


def _directions(distribution: PrivacyLossDistribution) -> tuple[PLDPmf, ...]:
    # Losses where a sample is removed and where it is added; one where the two are the same.
    remove = distribution._pmf_remove
    return (remove,) if distribution._symmetric else (remove, distribution._pmf_add)


# ---------------------------------------------------------------------------------------------- one step


def _rounded_losses(event: SampledGaussian, direction: AdjacencyType, interval: float) -> PLDPmf:
    loss = GaussianPrivacyLoss(
        event.noise_multiplier, log_mass_truncation_bound=-50, sampling_prob=event.sample_rate, adjacency_type=direction
    )
    bounds = loss.connect_dots_bounds()
    lower, upper = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
    epsilon = np.arange(lower, upper + 1) * interval
    finite, cutoffs = _cutoffs(epsilon, event.sample_rate, event.noise_multiplier**2, direction)
    delta = np.zeros_like(epsilon)
    if direction == AdjacencyType.REMOVE:
        delta[~finite] = -np.expm1(epsilon[~finite])
    delta[finite] = loss.mu_upper_cdf(cutoffs) - np.exp(epsilon[finite] + loss.mu_lower_log_cdf(cutoffs))
    return create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, np.clip(delta, 0, 1))


def _cutoffs(epsilon: Array, rate: float, variance: float, direction: AdjacencyType) -> tuple[NDArray[np.bool_], Array]:
    # Which epsilons the loss exceeds with some but not all outputs, and the largest output at which it does.
    #
    # Of a mixture, a loss of e is one of ln(1 + (exp(e) − 1)/q) without sampling, and of −e where a sample is added.
    sign = 1.0 if direction == AdjacencyType.REMOVE else -1.0
    finite = np.ones_like(epsilon, dtype=bool)
    loss = epsilon
    if rate < 1:
        finite = sign * epsilon > math.log1p(-rate)
        signed, end = sign * epsilon[finite], math.log(1 - rate)
        distance = np.abs(signed - end)
        at_end = (distance <= 1e-9 * np.maximum(np.abs(signed), abs(end))) & (signed != 0)
        raised = np.where(at_end, 0.0, signed) + np.log(1 / rate)
        with np.errstate(divide="ignore"):  # at 0 of a rate below rounding, which the next line has
            unsampled = raised + np.log1p(-np.exp(np.log(1 / rate - 1) - raised))
        # ln 1, as dp-accounting rounds it; 1/q alone is left of the sum where it exceeds the digits
        unsampled[signed == 0] = np.log(1 / rate + (1 - 1 / rate)) if rate > np.finfo(np.float64).eps else 0.0
        loss = sign * np.where(at_end, -np.inf, unsampled)
    outputs = -0.5 - loss * variance
    return finite, outputs if direction == AdjacencyType.REMOVE else 1.0 + outputs


# ---------------------------------------------------------------------------------------------- composition


def _log_moments(pmf: PLDPmf) -> tuple[Array, Array] | None:
    # ln E exp(j i/n) and ln E exp(−j i/n) over the n grid points i, each (20,) for j = 1 to 20; none for a sparse one.
    if not isinstance(pmf, DensePLDPmf):
        return None
    place = np.arange(pmf.size) / pmf.size
    return _powers(np.exp(place), pmf._probs), _powers(np.exp(-place), pmf._probs)


def _powers(base: Array, probabilities: Array) -> Array:
    # (20,) ln of the sums of the probabilities times the powers 1 to 20 of the base.
    moments, weighted = np.empty(_ORDERS), probabilities
    for power in range(_ORDERS):
        weighted = weighted * base
        moments[power] = weighted.sum()
    with np.errstate(divide="ignore"):
        return np.log(moments)


def _self_composed(pmf: PLDPmf, count: int, log_moments: tuple[Array, Array] | None) -> PLDPmf:
    if not isinstance(pmf, DensePLDPmf) or log_moments is None:
        return pmf.self_compose(count)
    first, last = _kept_range(pmf.size, count, log_moments)
    length = last - first + 1
    points = fft.next_fast_len(max(length, pmf.size))
    # The transform of real numbers is symmetric: half of its powers is enough
    half = fft.rfft(pmf._probs, points) ** count
    whole = np.concatenate([half, half[1 : (points + 1) // 2][::-1].conj()])
    composed = np.roll(fft.ifft(whole).real, -first)[:length]
    infinite = _TAIL - math.expm1(count * math.log1p(-pmf._infinity_mass))
    lower = pmf._lower_loss * count + first
    return DensePLDPmf(pmf._discretization, lower, composed, infinite, pmf._pessimistic_estimate)


def _kept_range(size: int, count: int, log_moments: tuple[Array, Array]) -> tuple[int, int]:
    # First and last grid point of a composition whose tails beyond have at most ``_TAIL`` (Chernoff).
    order = np.arange(1, _ORDERS + 1) / size
    above, below = ((count * moments + math.log(2 / _TAIL)) / order for moments in log_moments)
    last = min([(size - 1) * count, *(math.ceil(bound) for bound in above if math.isfinite(bound))])
    first = max([0, *(math.floor(-bound) for bound in below if math.isfinite(bound))])
    return first, last


# ---------------------------------------------------------------------------------------------- epsilon


def _epsilon(pmf: PLDPmf, delta: float) -> float:
    # The library's sum over losses from the largest down, block by block, until epsilon lies above the next loss.
    if not isinstance(pmf, DensePLDPmf):
        return float(pmf.get_epsilon_for_delta(delta))
    upper, lower = pmf._infinity_mass, 0.0  # masses of the two outputs beyond a loss
    if upper > delta:
        return math.inf
    interval, probabilities = pmf._discretization, pmf._probs[::-1]
    largest = (pmf._lower_loss + pmf.size - 1) * interval
    for start in range(0, pmf.size, _BLOCK):
        block = probabilities[start : start + _BLOCK]
        losses = np.cumsum(np.concatenate([[largest], np.full(len(block), -interval)]))
        largest, losses = float(losses[-1]), losses[:-1]
        exponents = np.minimum(-losses, 709.0).tolist()  # the sum ends long before exp leaves the range of numbers
        weights = np.fromiter(map(math.exp, exponents), dtype=np.float64, count=len(block))
        uppers = np.cumsum(np.concatenate([[upper], block]))
        lowers = np.cumsum(np.concatenate([[lower], weights * block]))
        end = _end_of_sum(uppers, lowers, losses, delta)
        if end is not None:
            return end
        upper, lower = float(uppers[-1]), float(lowers[-1])
    return _of_masses(upper, lower, delta)


def _end_of_sum(uppers: Array, lowers: Array, losses: Array, delta: float) -> float | None:
    # Epsilon where the sum ends in a block of losses, given the masses before each of them and after the last.
    with np.errstate(all="ignore"):
        reached = np.log((uppers[:-1] - delta) / lowers[:-1]) >= losses - 1e-6
    vanishing = (uppers[1:] >= delta) & (lowers[1:] == 0)
    for place in np.flatnonzero(((uppers[:-1] > delta) & (lowers[:-1] > 0) & reached) | vanishing).tolist():
        upper, lower, loss = float(uppers[place]), float(lowers[place]), float(losses[place])
        if upper > delta and lower > 0 and math.log((upper - delta) / lower) >= loss:
            return _of_masses(upper, lower, delta)
        if vanishing[place]:
            return max(0.0, loss)
    return None


def _of_masses(upper: float, lower: float, delta: float) -> float:
    return 0.0 if upper <= lower + delta else math.log((upper - delta) / lower)
