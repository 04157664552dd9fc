"""The exact Gaussian curve against an integral without cancellation, dp-accounting and itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from wirelessfl.privacy import EPSILON_CAP, gaussian_delta, gaussian_epsilon, gaussian_mu


def delta_by_integral(epsilon: float, mu: float) -> float:
    """The derivative of delta in mu is φ(epsilon/mu − mu/2): an integral of positive terms, nothing cancels."""

    def density(t: float) -> float:
        return math.exp(-0.5 * (epsilon / t - 0.5 * t) ** 2) / math.sqrt(2 * math.pi)

    value, _ = integrate.quad(density, 0.0, mu, epsrel=1e-12, epsabs=0.0, limit=500)
    return float(value)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("threshold", [-0.4, 0.5, 2.0, 5.0, 8.0])
def test_delta_equals_the_integral_of_its_derivative(mu: float, threshold: float) -> None:
    epsilon = mu * (max(threshold, -0.4 * mu) + 0.5 * mu)
    assert gaussian_delta(epsilon, mu) == pytest.approx(delta_by_integral(epsilon, mu), rel=1e-8)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0, 20.0, 60.0, 300.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-8, 1e-5, 1e-2, 0.3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # dp-accounting takes log1p(-1) at small epsilon
def test_epsilon_equals_dp_accounting(mu: float, delta: float) -> None:
    from dp_accounting import get_epsilon_gaussian

    assert gaussian_epsilon(mu, delta) == pytest.approx(get_epsilon_gaussian(1 / mu, delta), rel=1e-9, abs=1e-11)


@given(mu=st.floats(1e-6, 1500.0), log_delta=st.floats(-60.0, -0.5))
def test_epsilon_and_mu_invert_delta(mu: float, log_delta: float) -> None:
    delta = math.exp(log_delta)
    epsilon = float(gaussian_epsilon(mu, delta))
    if epsilon == 0.0:
        assert gaussian_delta(0.0, mu) <= delta * (1 + 1e-12)
    elif math.isfinite(epsilon):
        # Near mu = 1e-6 two tails of order one cancel to order mu: ten of sixteen digits stay, fewer in the far tail.
        tolerance = 1e-9 + 1e-14 / min(mu, 1.0)
        assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=100 * tolerance)
        assert gaussian_mu(epsilon, delta) == pytest.approx(mu, rel=100 * tolerance)


def test_epsilon_is_rounded_up() -> None:
    mu = np.geomspace(0.01, 500, 2000)
    assert np.all(gaussian_delta(gaussian_epsilon(mu, 1e-5) * (1 + 1e-13), mu) <= 1e-5)


def test_epsilon_of_zero_is_the_total_variation() -> None:
    mu = np.array([1e-4, 0.1, 2.0])
    expected = [math.erf(value / (2 * math.sqrt(2))) for value in mu]
    np.testing.assert_allclose(gaussian_delta(0.0, mu), expected, rtol=1e-11)
    np.testing.assert_allclose(gaussian_mu(0.0, expected), mu, rtol=1e-9)


def test_limits() -> None:
    assert gaussian_epsilon(0.0, 1e-5) == 0.0
    assert gaussian_delta(1.0, 0.0) == 0.0
    assert gaussian_delta(1.0, np.inf) == 1.0
    assert gaussian_epsilon(np.inf, 1e-5) == np.inf


def test_epsilon_beyond_the_cap_is_infinite() -> None:
    mu = math.sqrt(2 * EPSILON_CAP)  # epsilon is mu²/2 plus a few mu
    assert gaussian_epsilon(mu, 1e-5) == np.inf
    assert gaussian_epsilon(1e6, 1e-5) == np.inf
    assert 0.98 * EPSILON_CAP < gaussian_epsilon(0.993 * mu, 1e-5) <= EPSILON_CAP


def test_vectorised_equals_one_at_a_time() -> None:
    mu = np.array([[0.0, 0.5], [7.0, 5000.0]])
    delta = np.array([1e-5, 1e-2])
    together = gaussian_epsilon(mu, delta)
    alone = [[gaussian_epsilon(mu[i, j], delta[j]) for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(together, alone)


@given(mu=st.floats(1e-3, 50.0), epsilon=st.floats(0.0, 100.0))
def test_curve_is_monotone(mu: float, epsilon: float) -> None:
    delta = gaussian_delta(epsilon, mu)
    assert gaussian_delta(epsilon + 0.1, mu) <= delta
    assert gaussian_delta(epsilon, 1.1 * mu) >= delta


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-5, 2.0, math.nan])
def test_delta_outside_the_unit_interval_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        gaussian_epsilon(1.0, bad)
    with pytest.raises(ValueError, match="delta"):
        gaussian_mu(1.0, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_negative_arguments_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="gdp_mu"):
        gaussian_epsilon(bad, 1e-5)
    with pytest.raises(ValueError, match="epsilon"):
        gaussian_delta(bad, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        gaussian_mu(bad, 1e-5)


def test_infinite_epsilon_has_no_mu() -> None:
    with pytest.raises(ValueError, match="finite"):
        gaussian_mu(np.inf, 1e-5)
