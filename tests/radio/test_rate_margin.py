"""The outage quantile of an imperfectly known channel, and the rate that it carries."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from tests.speed import rest_slow
from tests.statistics import assert_mean, shifted
from wirelessfl.radio import channel_given_estimate, outage_power
from wirelessfl.radio.csi import Estimator

COUNT = 400_000


def circular(rng: np.random.Generator, count: int = COUNT) -> NDArray[np.complex128]:
    return np.asarray((rng.standard_normal(count) + 1j * rng.standard_normal(count)) / np.sqrt(2))


@pytest.mark.parametrize("outage", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize("mean", [0.0, 0.3, 3.0, 40.0])
def test_the_quantile_inverts_the_rice_distribution(mean: float, outage: float) -> None:
    """Against the numerical integral of the Rice density of |h|, h ~ CN(mean, v)."""
    variance = 0.7
    power = float(outage_power(np.array([mean * np.exp(0.4j)]), np.array([variance]), outage)[0])

    def density(r: float) -> float:
        return float(2 * r / variance * np.exp(-((r - mean) ** 2) / variance) * special.ive(0, 2 * r * mean / variance))

    begin = max(0.0, mean - 12 * np.sqrt(variance))
    assert integrate.quad(density, begin, np.sqrt(power), epsabs=1e-13)[0] == pytest.approx(outage, rel=1e-6)


def test_a_nearly_known_channel_is_joined_without_a_step() -> None:
    noncentrality = np.array([1e4, 1.999e6, 2.001e6, 1e8])
    power = outage_power(np.full(4, 1.0 + 0j), 2.0 / noncentrality, 0.01)
    np.testing.assert_allclose(power, stats.ncx2.ppf(0.01, 2, noncentrality) / noncentrality, rtol=1e-9)
    assert outage_power(np.array([2j]), np.zeros(1), 0.01)[0] == 4.0


@cache
def counted_on(estimator: Estimator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """|h|² of Rayleigh fading of mean 1, and what is counted on with an outage of 1 % after an error of 0.1."""
    rng = np.random.default_rng(shifted(5))
    h, error = circular(rng), circular(rng)
    observed = h + 0.1 * error
    estimate = observed if estimator == "ls" else observed / 1.01
    beta, no_ray = np.ones(COUNT), np.zeros(COUNT, dtype=np.complex128)
    mean, variance = channel_given_estimate(estimate, beta, 0.1, estimator, no_ray)
    return np.abs(h) ** 2, outage_power(mean, variance, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mean_snr_db", "share"),
    [pytest.param(0.0, 0.77, marks=pytest.mark.slow), (17.0, 0.86), pytest.param(30.0, 0.90, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("estimator", rest_slow(["ls", "mmse"]))
def test_one_percent_is_lost_on_rayleigh_fading_and_the_rate_is_what_it_costs(
    mean_snr_db: float, share: float, estimator: Estimator
) -> None:
    snr = 10 ** (mean_snr_db / 10)
    power, quantile = counted_on(estimator)
    assert_mean((quantile > power).astype(float), 0.01, std=np.sqrt(0.01 * 0.99))
    ratio = np.log2(1 + snr * quantile).sum() / np.log2(1 + snr * power).sum()
    assert ratio == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("rician_k", rest_slow([0.5, 8.0]))
@pytest.mark.parametrize("error_std", [0.05, 0.3])
def test_the_share_that_is_lost_beside_a_line_of_sight(rician_k: float, error_std: float) -> None:
    count = COUNT // 4
    rng, beta, scattered = np.random.default_rng(shifted(6)), 0.01, 1 / (rician_k + 1)
    ray = np.sqrt(rician_k * scattered) * np.exp(2j * np.pi * rng.random(count))
    h = np.sqrt(beta) * (ray + np.sqrt(scattered) * circular(rng, count))
    observed = h + error_std * np.sqrt(beta) * circular(rng, count)
    mean, variance = channel_given_estimate(observed, np.full(count, beta), error_std, "ls", ray)
    np.testing.assert_allclose(variance, error_std**2 * beta / (1 + (rician_k + 1) * error_std**2))
    assert_mean((outage_power(mean, variance, 0.02) > np.abs(h) ** 2).astype(float), 0.02, std=np.sqrt(0.02 * 0.98))


def test_a_channel_without_scattering_is_known_whatever_is_observed() -> None:
    mean, variance = channel_given_estimate(np.array([0.3j]), np.array([4.0]), 0.5, "ls", np.array([1.0 + 0j]))
    assert outage_power(mean, variance, 0.01)[0] == pytest.approx(4.0)
