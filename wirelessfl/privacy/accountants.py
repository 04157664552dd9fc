"""Accountants: epsilon of a composed cost by dp-accounting, with all workarounds for that library.

Traps of dp-accounting 0.6.0 that this module hides: under REPLACE_ONE the PLD accountant doubles the
sensitivity and the RDP accountant does not; RDP refuses Poisson sampling under REPLACE_ONE; PLD refuses
sampling without replacement, runs out of memory on large losses, and takes its time on fine grids.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.privacy.costs import Accountant, SampledGaussian
from wirelessfl.privacy.gaussian import EPSILON_CAP, gaussian_epsilon, zcdp_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from wirelessfl.privacy.loss_distribution import StepLosses


Uses = tuple[tuple[SampledGaussian, int], ...]
"""Number of uses of each sampled mechanism, in the order of first use."""

_GRID_ERROR = 3e-5  # relative error of epsilon that the grid may add
_KEPT_PREFIXES = 32  # compositions kept for runs that go on
_LARGEST_GRID = 1_000_000  # points of one step's loss distribution: a few seconds and a few hundred MB


@lru_cache(maxsize=4096)
def composed_epsilon(mu_squared: float, uses: Uses, delta: float, accountant: Accountant) -> float:
    """Epsilon at ``delta`` of the adaptive composition of plain and sampled Gaussian mechanisms.

    Args:
        mu_squared: Sum of (sensitivity / noise std)² over the plain Gaussian mechanisms.
        uses: The sampled Gaussian mechanisms and their counts.
        delta: In (0, 1).
        accountant: ``pld`` is exact for plain Gaussians and an upper bound with a relative error of about 1e-4
            else (RDP for sampling without replacement, where PLD has none); ``rdp`` and ``zcdp`` are
            upper bounds, ``zcdp`` without amplification by sampling; ``gdp`` is the limit of many steps
            (Bu et al. 2020, Dong et al. 2019), an approximation and no bound.

    Returns:
        Epsilon, infinite above ``EPSILON_CAP``.
    """
    if not np.isfinite(mu_squared):
        return np.inf
    match accountant:
        case "pld":
            epsilon = _pld_epsilon(mu_squared, uses, delta) if uses else _exact(mu_squared, delta)
        case "rdp":
            epsilon = _rdp_epsilon(mu_squared, uses, delta)
        case "gdp":
            epsilon = _limit_epsilon(mu_squared, uses, delta)
        case "zcdp":
            epsilon = float(zcdp_epsilon(0.5 * _unsampled_mu_squared(mu_squared, uses), delta))
        case _:
            assert_never(accountant)
    return epsilon if epsilon <= EPSILON_CAP else np.inf


def _exact(mu_squared: float, delta: float) -> float:
    return float(gaussian_epsilon(np.sqrt(mu_squared), delta))


def _unsampled_mu_squared(mu_squared: float, uses: Uses) -> float:
    return mu_squared + sum(count * event.full_mu_squared for event, count in uses)


def _limit_epsilon(mu_squared: float, uses: Uses, delta: float) -> float:
    return _exact(mu_squared + sum(count * _limit_mu_squared(event) for event, count in uses), delta)


def _limit_mu_squared(event: SampledGaussian) -> float:
    # Squared mu per step in the central limit: (q sqrt(e^(1/z²) − 1))², doubled mu for an exchange.
    reach = 2.0 if event.exchange or event.fixed_size else 1.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squared = float((reach * event.sample_rate) ** 2 * np.expm1(event.noise_multiplier**-2))
    return np.inf if np.isnan(squared) else squared  # a rate that vanishes, of a loss beyond all numbers


# ---------------------------------------------------------------------------------------------- PLD


def _pld_epsilon(mu_squared: float, uses: Uses, delta: float) -> float:
    # PLD where it can, RDP otherwise; never above the exact curve without amplification.
    unsampled = _exact(_unsampled_mu_squared(mu_squared, uses), delta)
    if unsampled == 0 or max(_one_use_epsilon(event, delta) for event, _ in uses) > EPSILON_CAP:
        return unsampled
    if any(event.fixed_size for event, _ in uses):
        return min(unsampled, _rdp_epsilon(mu_squared, uses, delta))
    expected = min(unsampled, _limit_epsilon(mu_squared, uses, delta), EPSILON_CAP)
    epsilon = _epsilon_on_grid(mu_squared, uses, delta, expected)
    if epsilon < expected / 2:  # the grid was chosen for a larger epsilon
        epsilon = min(epsilon, _epsilon_on_grid(mu_squared, uses, delta, epsilon))
    return min(unsampled, epsilon if np.isfinite(epsilon) else _rdp_epsilon(mu_squared, uses, delta))


def _one_use_epsilon(event: SampledGaussian, delta: float) -> float:
    # A lower bound for any run: one Poisson use for add/remove has ln(1 + q (e^epsilon0 − 1)), epsilon0 at delta/q.
    if delta >= event.sample_rate:
        return 0.0
    epsilon = float(gaussian_epsilon(1.0 / event.noise_multiplier, delta / event.sample_rate))
    return epsilon + float(np.log(event.sample_rate - (event.sample_rate - 1.0) * np.exp(-epsilon)))


def _epsilon_on_grid(mu_squared: float, uses: Uses, delta: float, expected: float) -> float:
    # Epsilon by PLD on a grid chosen for the ``expected`` one; infinite where no useful grid fits into memory.
    from wirelessfl.privacy.loss_distribution import epsilon_at, losses_of_a_step

    largest = max(mu_squared, *(event.full_mu_squared for event, _ in uses))
    widest = largest / 2 + 12 * np.sqrt(largest)
    steps = sum(count for _, count in uses)
    interval = max(_grid_interval(expected, steps), widest / _LARGEST_GRID)
    if interval > expected / 10 or steps * interval**2 > expected:  # such a grid adds more than there is
        return np.inf
    composed = _composed_pld(uses, interval)
    if mu_squared > 0:
        plain = losses_of_a_step(SampledGaussian(1.0 / np.sqrt(mu_squared), 1.0), interval)
        composed = composed.compose(plain.distribution)
    return epsilon_at(composed, delta)


def _grid_interval(epsilon: float, steps: int) -> float:
    # Spacing of the loss grid that leaves a relative error of about ``_GRID_ERROR``, and at most epsilon/2000.
    #
    # Rounding pessimistically adds at most about interval² to the loss of a step, so T interval² to that of a run
    # (measured: 0.7 to 0.9 of it). Not below epsilon/100,000, which bounds the size of the composed distribution. A
    # power of two, so that a growing run reuses cached distributions.
    wanted = min(epsilon / 2_000, np.sqrt(_GRID_ERROR * epsilon / steps))
    return float(2.0 ** np.floor(np.log2(max(wanted, epsilon / 100_000, 1e-8))))


# The compositions computed last, by their uses and interval; the newest come last
_PREFIXES: OrderedDict[tuple[Uses, float], PrivacyLossDistribution] = OrderedDict()


def _composed_pld(uses: Uses, interval: float) -> PrivacyLossDistribution:
    # Composition by prefixes: a run that adds a mechanism each round composes only the new one.
    length = next((n for n in range(len(uses), 0, -1) if (uses[:n], interval) in _PREFIXES), 0)
    composed = _PREFIXES[uses[:length], interval] if length else None
    for event, count in uses[length:]:
        last = _step_losses(event, interval).composed(count)
        composed = last if composed is None else composed.compose(last)
        length += 1
        _PREFIXES[uses[:length], interval] = composed
        if len(_PREFIXES) > _KEPT_PREFIXES:
            _PREFIXES.popitem(last=False)
    assert composed is not None, "there is at least one mechanism"
    return composed


@lru_cache(maxsize=64)
def _step_losses(event: SampledGaussian, interval: float) -> StepLosses:
    from wirelessfl.privacy.loss_distribution import losses_of_a_step

    return losses_of_a_step(event, interval)


# ---------------------------------------------------------------------------------------------- RDP


def _rdp_epsilon(mu_squared: float, uses: Uses, delta: float) -> float:
    # RDP bound; Poisson sampling with an exchange is two steps of add/remove.
    #
    # Two neighbours at (epsilon, delta') make one replacement at (2 epsilon, (1 + e^epsilon) delta').
    orders = _rdp_orders()
    rdp = 0.5 * mu_squared * orders
    for event, count in uses:
        rdp = rdp + count * _step_rdp(event)

    def epsilon_at(delta_value: float) -> float:
        with _quiet_absl():
            from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

            return float(compute_epsilon(orders, rdp, delta_value)[0])

    two_steps = any(event.exchange and not event.fixed_size for event, _ in uses)
    return _two_step_epsilon(epsilon_at, delta) if two_steps else epsilon_at(delta)


def _two_step_epsilon(epsilon_at: Callable[[float], float], delta: float) -> float:
    # 2 epsilon(delta') with the largest delta' such that (1 + e^epsilon(delta')) delta' <= delta.
    low, high = np.log(delta) - 600.0, np.log(delta / 2)

    def allowed(log_delta: float) -> bool:
        return bool(np.logaddexp(0.0, epsilon_at(float(np.exp(log_delta)))) + log_delta <= np.log(delta))

    if not allowed(low):
        return np.inf
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return 2.0 * epsilon_at(float(np.exp(low)))


@lru_cache(maxsize=1)
def _rdp_orders() -> NDArray[np.float64]:
    from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS

    return np.asarray(DEFAULT_RDP_ORDERS, dtype=np.float64)


@lru_cache(maxsize=4096)
def _step_rdp(event: SampledGaussian) -> NDArray[np.float64]:
    # RDP of one use at each order, for add/remove (Poisson) or replacement (without replacement).
    #
    # Without replacement, another contribution takes the vacant place, so that even a zero-out moves the sum
    # by twice the norm of one: the multiplier is halved, as RDP does not double under REPLACE_ONE.
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    gaussian = dp_accounting.GaussianDpEvent(event.noise_multiplier / (2 if event.fixed_size else 1))
    if event.fixed_size:
        relation, size = dp_accounting.NeighboringRelation.REPLACE_ONE, 10**9  # only the ratio of the two sizes enters
        sampled = dp_accounting.SampledWithoutReplacementDpEvent(size, round(size * event.sample_rate), gaussian)
    else:
        relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        sampled = dp_accounting.PoissonSampledDpEvent(event.sample_rate, gaussian)
    with _quiet_absl(), np.errstate(over="ignore"):
        rdp = np.asarray(RdpAccountant(_rdp_orders(), relation).compose(sampled).rdp, dtype=np.float64)
    return _resolved(rdp, event, _rdp_orders())


def _resolved(rdp: NDArray[np.float64], event: SampledGaussian, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    # RDP of one use, with a bound in place of what rounding has left of a moment next to 1, which may be nothing.
    #
    # Sums of binomials lose more the larger the order is: 6e-15 was found at 32, a thirtieth of ``lost``. As
    # e^((a − 1) D_a) is jointly convex, a use that sees the contribution with probability q has at most
    # ln(1 + q (e^((a − 1) D_a) − 1))/(a − 1), where D_a is that of the Gaussian mechanism without sampling.
    log_moment, lost = (orders - 1) * rdp, 2e-15 * orders * np.log1p(orders)
    multiplier = event.noise_multiplier / (2 if event.fixed_size else 1)
    with np.errstate(over="ignore"):
        convex = np.log1p(event.sample_rate * np.expm1(orders * (orders - 1) / (2 * multiplier**2)))
    bound = np.minimum(convex, np.maximum(log_moment, 0.0) + lost) / (orders - 1)
    return np.where(log_moment < 100 * lost, bound, rdp)


@contextmanager
def _quiet_absl() -> Iterator[None]:
    # Keep dp-accounting from warning about orders it leaves out: the remaining ones are valid bounds.
    logger = logging.getLogger("absl")
    previous, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = previous


_ORDERS = np.array([*range(2, 65), 128, 256], dtype=np.float64)


def cheap_upper_bounds(profiles: Sequence[tuple[float, Uses]], delta: float) -> NDArray[np.float64]:
    """(len(profiles),) bounds at ``delta``, each the smaller of two.

    One is the exact curve of all mechanisms without amplification by sampling. The other is RDP at integer orders, for
    Poisson sampling told apart by add/remove.

    Args:
        profiles: (``gdp_mu²`` of the plain Gaussian mechanisms, uses of sampled ones) of each client.
        delta: In (0, 1).
    """
    unsampled = [_unsampled_mu_squared(*profile) for profile in profiles]
    rdp = np.empty((len(profiles), len(_ORDERS)))
    for row, (mu_squared, uses) in enumerate(profiles):
        rdp[row] = 0.5 * mu_squared * _ORDERS
        for event, count in uses:
            rdp[row] += count * _integer_rdp(event)
    return np.minimum(gaussian_epsilon(np.sqrt(unsampled), delta), _rdp_to_epsilon(rdp, delta))


@lru_cache(maxsize=65536)
def _integer_rdp(event: SampledGaussian) -> NDArray[np.float64]:
    # ln(sum of C(a,k) (1−q)^(a−k) q^k e^(k(k−1)/2z²))/(a−1) (Mironov, Talwar, Zhang 2019, Section 3.3).
    if event.exchange or event.fixed_size:
        return np.full(len(_ORDERS), np.inf)
    k = np.arange(_ORDERS[-1] + 1)
    order = _ORDERS[:, None]
    chosen = np.minimum(k, order)  # terms beyond the order are dropped below
    log_binomial = special.gammaln(order + 1) - special.gammaln(chosen + 1) - special.gammaln(order - chosen + 1)
    log_term = log_binomial + (order - chosen) * np.log1p(-event.sample_rate) + chosen * np.log(event.sample_rate)
    with np.errstate(over="ignore"):
        log_term += chosen * (chosen - 1) * (0.5 / event.noise_multiplier**2)
    log_moment = special.logsumexp(np.where(k <= order, log_term, -np.inf), axis=1)
    return _resolved(np.maximum(log_moment, 0.0) / (_ORDERS - 1), event, _ORDERS)


def _rdp_to_epsilon(rdp: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    # Best epsilon over the orders (Canonne, Kamath and Steinke 2020, Proposition 12).
    epsilon = rdp + np.log1p(-1 / _ORDERS) - (np.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    return np.asarray(np.maximum(epsilon.min(axis=1, initial=np.inf), 0.0))
