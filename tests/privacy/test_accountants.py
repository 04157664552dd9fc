"""The accountants against numerical integration, dp-accounting's own defaults, and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.speed import rest_slow
from wirelessfl.privacy import SampledGaussian, composed_epsilon, gaussian_epsilon, zcdp_epsilon
from wirelessfl.privacy.accountants import (
    _ORDERS,
    Uses,
    _integer_rdp,
    _rdp_orders,
    _step_rdp,
    cheap_upper_bounds,
)

DELTA = 1e-5
GRID = np.linspace(-40, 42, 400_001)
STEP = GRID[1] - GRID[0]


def poisson(z: float, q: float, count: int, *, exchange: bool = False) -> Uses:
    return ((SampledGaussian(z, q, exchange), count),)


def one_step_epsilon(z: float, q: float, *, exchange: bool, delta: float) -> float:
    """Hockey-stick divergence of the two mixtures of one step, integrated, in the worse direction."""

    def mixture(shift: float) -> np.ndarray:
        mixed: np.ndarray = (1 - q) * stats.norm.pdf(GRID, 0, z) + q * stats.norm.pdf(GRID, shift, z)
        return mixed

    one, other = mixture(1.0), (mixture(-1.0) if exchange else mixture(0.0))

    def delta_at(epsilon: float) -> float:
        gaps = (np.maximum(a - math.exp(epsilon) * b, 0).sum() * STEP for a, b in ((one, other), (other, one)))
        return float(max(gaps))

    low, high = 0.0, 60.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("z", "q"), rest_slow([(0.7, 0.2), (1.0, 0.01), (2.0, 0.5)]))
@pytest.mark.parametrize("exchange", [False, True])
def test_pld_of_one_step_equals_the_integral(z: float, q: float, exchange: bool) -> None:
    expected = one_step_epsilon(z, q, exchange=exchange, delta=DELTA)
    found = composed_epsilon(0.0, poisson(z, q, 1, exchange=exchange), DELTA, "pld")
    assert found == pytest.approx(expected, rel=5e-4)
    assert found >= expected - 1e-6


@pytest.mark.parametrize(("z", "q", "count"), rest_slow([(1.0, 0.01, 1000), (0.8, 0.1, 30), (3.0, 0.3, 200)]))
@pytest.mark.parametrize("exchange", [False, True])
def test_pld_equals_dp_accounting_at_its_default_interval(z: float, q: float, count: int, exchange: bool) -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    relation = dp_accounting.NeighboringRelation
    accountant = PLDAccountant(relation.REPLACE_ONE if exchange else relation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(z)), count)
    found = composed_epsilon(0.0, poisson(z, q, count, exchange=exchange), DELTA, "pld")
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=2e-4)


@pytest.mark.parametrize("mu_squared", [1e4, 1e6, 1e12, 1e40, 1e300])
def test_a_plain_gaussian_of_any_size_is_composed_with_sampled_ones(mu_squared: float) -> None:
    """Never below the plain one alone, never above the whole without sampling; the grid would not fit into memory."""
    uses = poisson(1.0, 0.01, 10)
    found = composed_epsilon(mu_squared, uses, DELTA, "pld")
    most = composed_epsilon(mu_squared + 10.0, (), DELTA, "pld")
    assert composed_epsilon(mu_squared, (), DELTA, "pld") * (1 - 1e-4) <= found <= most


def test_pld_composes_plain_and_sampled_mechanisms() -> None:
    """A plain Gaussian is a Poisson sample at a rate next to one."""
    uses = poisson(1.5, 0.2, 10)
    together = composed_epsilon(4 / 2.0**2, uses, DELTA, "pld")
    nearly_plain = (*uses, (SampledGaussian(2.0, 1 - 1e-9), 4))
    assert together == pytest.approx(composed_epsilon(0.0, nearly_plain, DELTA, "pld"), rel=3e-4)


@pytest.mark.slow
def test_pld_by_prefix_equals_pld_at_once() -> None:
    """A growing run reuses what it composed before; the order of mechanisms does not matter."""
    events = [(SampledGaussian(1.0 + 0.1 * k, 0.1), k + 1) for k in range(6)]
    growing = [composed_epsilon(0.0, tuple(events[: k + 1]), DELTA, "pld") for k in range(6)]
    assert np.all(np.diff(growing) > 0)
    assert composed_epsilon(0.0, tuple(reversed(events)), DELTA, "pld") == pytest.approx(growing[-1], rel=1e-4)


@pytest.mark.slow
def test_pld_of_distinct_multipliers_equals_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    multipliers = [1.0 + 0.1 * k for k in range(4)]
    accountant = PLDAccountant()
    for z in multipliers:
        accountant.compose(dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(z)), 20)
    found = composed_epsilon(0.0, tuple((SampledGaussian(z, 0.1), 20) for z in multipliers), DELTA, "pld")
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=2e-4)


@pytest.mark.parametrize("z", rest_slow([1e-6, 1e-3, 0.02]))
def test_pld_survives_losses_that_would_exhaust_memory(z: float) -> None:
    """The wavelet's true multiplier is σ/m with m near a million."""
    found = composed_epsilon(0.0, poisson(z, 0.1, 100), DELTA, "pld")
    assert found <= float(gaussian_epsilon(10 / z, DELTA))
    assert found > 1000


@pytest.mark.parametrize("exchange", [False, True])
def test_rdp_bounds_pld(exchange: bool) -> None:
    uses = poisson(1.0, 0.05, 200, exchange=exchange)
    rdp, pld = (composed_epsilon(0.0, uses, DELTA, name) for name in ("rdp", "pld"))
    assert pld < rdp < (2.5 if exchange else 1.3) * pld


def test_rdp_equals_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant()
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.0)), 200)
    accountant.compose(dp_accounting.GaussianDpEvent(5.0), 3)
    found = composed_epsilon(3 / 25, poisson(1.0, 0.05, 200), DELTA, "rdp")
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-12)


@pytest.mark.parametrize("z", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("q", [1e-9, 1e-6, 1e-3])
def test_costs_that_rounding_would_take_for_none_are_bounded(z: float, q: float) -> None:
    """At order 2 the moment is 1 + q²(e^(1/z²) − 1); at a δ below the total variation of one use no ε is 0."""
    event = SampledGaussian(z, q)
    for orders, rdp in ((_rdp_orders(), _step_rdp(event)), (_ORDERS, _integer_rdp(event))):
        exact = math.log1p(q**2 * math.expm1(z**-2))
        (second,) = rdp[orders == 2]
        assert exact * (1 - 1e-3) <= second <= (1 + 1e-9) / z**2, "at most that of the mechanism without sampling"
    delta = 0.1 * q * (2 * stats.norm.cdf(0.5 / z) - 1)
    for accountant in ("pld", "rdp"):
        assert composed_epsilon(0.0, poisson(z, q, 1), delta, accountant) > 0
    assert cheap_upper_bounds([(0.0, poisson(z, q, 1))], delta)[0] > 0


@pytest.mark.parametrize("q", [1e-17, 1e-200])
def test_a_rate_below_rounding_costs_next_to_nothing(q: float) -> None:
    assert 0 <= composed_epsilon(0.0, poisson(0.05, q, 3), 1e-5, "pld") <= 1e-3


def test_rdp_of_an_exchange_is_two_steps_of_add_remove() -> None:
    """(2ε', (1 + e^ε') δ') with the largest δ' that keeps the second number at δ."""
    uses = poisson(1.0, 0.05, 200)
    found = composed_epsilon(0.0, poisson(1.0, 0.05, 200, exchange=True), DELTA, "rdp")
    best = math.inf
    for inner in np.geomspace(1e-12, DELTA, 400):
        epsilon = composed_epsilon(0.0, uses, float(inner), "rdp")
        if (1 + math.exp(epsilon)) * inner <= DELTA:
            best = min(best, 2 * epsilon)
    assert found <= best <= found * 1.01


def test_replace_one_trap_pld_doubles_and_rdp_does_not() -> None:
    """A plain Gaussian at twice the sensitivity, through both accountants of dp-accounting."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation, z = dp_accounting.NeighboringRelation.REPLACE_ONE, 4.0
    exact = float(gaussian_epsilon(2 / z, DELTA))
    pld = PLDAccountant(relation).compose(dp_accounting.GaussianDpEvent(z)).get_epsilon(DELTA)
    assert pld == pytest.approx(exact, rel=1e-3)
    undoubled = RdpAccountant(neighboring_relation=relation).compose(dp_accounting.GaussianDpEvent(z))
    assert undoubled.get_epsilon(DELTA) < 0.7 * exact
    halved = RdpAccountant(neighboring_relation=relation).compose(dp_accounting.GaussianDpEvent(z / 2))
    assert halved.get_epsilon(DELTA) == pytest.approx(composed_epsilon((2 / z) ** 2, (), DELTA, "rdp"), rel=1e-12)


def test_sampling_without_replacement_covers_the_client_who_takes_the_vacant_place() -> None:
    """One of three clients is drawn, contributions +1 or 0, −1 and −1: the integrated ε is within the bound."""
    z, delta = 2.0, 1e-3
    others = 2 / 3 * stats.norm.pdf(GRID, -1, z)
    present = others + stats.norm.pdf(GRID, 1, z) / 3
    absent = others + stats.norm.pdf(GRID, 0, z) / 3
    bound = composed_epsilon(0.0, ((SampledGaussian(z, 1 / 3, fixed_size=True), 1),), delta, "pld")
    for a, b in ((present, absent), (absent, present)):
        assert np.maximum(a - math.exp(bound) * b, 0).sum() * STEP <= delta
    assert bound < float(gaussian_epsilon(2 / z, delta))


def test_gdp_is_the_central_limit() -> None:
    """(q √T √(e^(1/z²) − 1))-GDP (Bu et al. 2020); near PLD for many steps at a small rate."""
    z, q, count = 1.5, 0.01, 20_000
    mu = q * math.sqrt(count * math.expm1(z**-2))
    found = composed_epsilon(0.0, poisson(z, q, count), DELTA, "gdp")
    assert found == pytest.approx(float(gaussian_epsilon(mu, DELTA)), rel=1e-12)
    assert found == pytest.approx(composed_epsilon(0.0, poisson(z, q, count), DELTA, "pld"), rel=0.05)


def test_zcdp_has_no_amplification() -> None:
    found = composed_epsilon(0.5, poisson(2.0, 0.01, 8), DELTA, "zcdp")
    assert found == pytest.approx(float(zcdp_epsilon((0.5 + 8 / 4) / 2, DELTA)), rel=1e-12)


def test_plain_gaussians_are_exact_by_pld_and_gdp_and_bounded_by_the_others() -> None:
    exact = float(gaussian_epsilon(1.3, DELTA))
    assert composed_epsilon(1.69, (), DELTA, "pld") == pytest.approx(exact, rel=1e-12)
    assert composed_epsilon(1.69, (), DELTA, "gdp") == pytest.approx(exact, rel=1e-12)
    assert exact < composed_epsilon(1.69, (), DELTA, "rdp") < composed_epsilon(1.69, (), DELTA, "zcdp")


@pytest.mark.parametrize("accountant", ["pld", "rdp", "gdp", "zcdp"])
def test_epsilon_is_monotone(accountant: str) -> None:
    def epsilon(z: float = 1.0, q: float = 0.1, count: int = 50, delta: float = DELTA) -> float:
        return composed_epsilon(0.0, poisson(z, q, count), delta, accountant)

    middle = epsilon()
    assert epsilon(z=1.2) < middle < epsilon(count=60)
    assert middle < epsilon(delta=1e-7)
    assert epsilon(q=0.05) <= middle  # zCDP has no amplification


@pytest.mark.parametrize("accountant", ["pld", "rdp", "gdp", "zcdp"])
def test_no_cost_is_zero_and_no_noise_infinite(accountant: str) -> None:
    assert composed_epsilon(0.0, (), DELTA, accountant) == pytest.approx(0.0, abs=0.02)
    assert composed_epsilon(np.inf, (), DELTA, accountant) == np.inf
