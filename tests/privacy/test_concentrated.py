"""The papers' conversions: goldens, inverses, and that they bound the exact curve from above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from wirelessfl.privacy import gaussian_epsilon, tail_bound_cost, tail_bound_epsilon, zcdp_epsilon, zcdp_rho
from wirelessfl.privacy.gaussian import tail_constant


@pytest.mark.parametrize(("delta", "published", "exact"), [(1e-5, 6.52, 5.45), (1e-2, 4.39, 2.99)])
def test_golden_rho(delta: float, published: float, exact: float) -> None:
    """One ρ = 0.7284 stands behind both epsilons of the paper (PRIVACY.md, Goldens)."""
    assert round(float(zcdp_epsilon(0.7284, delta)), 2) == published
    assert round(float(gaussian_epsilon(math.sqrt(2 * 0.7284), delta)), 2) == exact


@given(epsilon=st.floats(1e-9, 1e4), log_delta=st.floats(-40.0, -0.1))
def test_rho_inverts_epsilon_and_equals_the_printed_form(epsilon: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    rho = float(zcdp_rho(epsilon, delta))
    assert zcdp_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-9)
    a = log_delta + math.sqrt(log_delta**2 - epsilon * log_delta)
    assert rho == pytest.approx(a**2 / -log_delta, rel=1e-6, abs=1e-15 * log_delta**2)


@given(delta=st.floats(1e-100, 0.99))
def test_tail_constant_solves_its_equation(delta: float) -> None:
    q = float(tail_constant(delta))
    assert math.log(math.sqrt(math.pi) * q) + q**2 == pytest.approx(-math.log(delta), rel=1e-9, abs=1e-9)


@given(epsilon=st.floats(0.01, 100), delta=st.floats(1e-10, 0.1))
def test_the_tail_bound_is_the_papers_and_goes_back_to_epsilon(epsilon: float, delta: float) -> None:
    """R = (sqrt(ε + Q²) − Q)² with sqrt(π) Q e^{Q²} = 1/δ, solved by bisection."""
    root = optimize.brentq(lambda x: math.log(math.sqrt(math.pi) * x) + x**2 + math.log(delta), 1e-3, 10)
    cost = float(tail_bound_cost(epsilon, delta))
    assert cost == pytest.approx((math.sqrt(epsilon + root**2) - root) ** 2, rel=1e-6)
    assert tail_bound_epsilon(cost, delta) == pytest.approx(epsilon, rel=1e-9)


@given(epsilon=st.floats(0.01, 20), delta=st.floats(1e-8, 0.1))
def test_the_tail_bound_is_valid_for_its_sensitivity(epsilon: float, delta: float) -> None:
    """Gaussian rounds that spend R compose to μ = sqrt(2R); the exact curve then has δ(ε) below δ."""
    mu = math.sqrt(2 * tail_bound_cost(epsilon, delta))
    exact = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))
    assert exact <= delta


@given(mu=st.floats(1e-3, 40.0), log_delta=st.floats(-30.0, -4.0))
def test_both_conversions_bound_the_exact_curve(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    exact = float(gaussian_epsilon(mu, delta))
    assert zcdp_epsilon(mu**2 / 2, delta) >= exact
    assert tail_bound_epsilon(mu**2 / 2, delta) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("bad", [0.0, 1.0, math.nan])
def test_bad_delta_is_refused(bad: float) -> None:
    for function in (zcdp_epsilon, zcdp_rho, tail_bound_epsilon, tail_bound_cost):
        with pytest.raises(ValueError, match="delta"):
            function(1.0, bad)


def test_negative_cost_is_refused() -> None:
    for function in (zcdp_epsilon, zcdp_rho, tail_bound_epsilon, tail_bound_cost):
        with pytest.raises(ValueError, match="negative"):
            function(-1.0, 0.1)
