"""Noise of the server on the aggregate: DP-FedAvg, DP-FedAvg-WAV, Dyn-DP-FedAvg."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.privacy.range_sums import range_sum_noise_variance
from tests.statistics import assert_follows, assert_mean, assert_variance_gaussian, shifted
from wirelessfl.privacy import PrivacyFacts, Statement, element_noise_variance
from wirelessfl.privacy.clipping import Geometric
from wirelessfl.privacy.mechanisms import haar_server_noise, server_noise_std, server_weights, white_server_noise
from wirelessfl.privacy.releases import ServerNoiseRelease
from wirelessfl.streams import Streams


def test_the_standard_deviation_by_hand() -> None:
    assert server_noise_std(1.2, 0.5, 0.25, 40) == pytest.approx(1.2 * 0.5 / (0.25 * 40))
    assert server_noise_std(0.0, 0.5, 1.0, 1) == 0.0


@pytest.mark.parametrize(
    ("multiplier", "clip", "rate", "count"),
    [
        (-1.0, 1, 1, 1),
        (math.nan, 1, 1, 1),
        (1, 0.0, 1, 1),
        (1, math.inf, 1, 1),
        (1, 1, 0.0, 1),
        (1, 1, 1.5, 1),
        (1, 1, 1, 0),
    ],
)
def test_bad_numbers_are_refused(multiplier: float, clip: float, rate: float, count: int) -> None:
    with pytest.raises(ValueError, match="found"):
        server_noise_std(multiplier, clip, rate, count)


def test_weights_are_fixed_and_make_the_sum_unbiased() -> None:
    """Poisson selection: the expected sum is Σ p_i Δ_i; the weights do not depend on who is selected."""
    weights, rate = np.array([0.1, 0.2, 0.3, 0.4]), 0.3
    updates = np.array([1.0, -2.0, 0.5, 3.0])
    factors = server_weights(weights, rate)
    subsets = [np.array([i >> b & 1 for b in range(4)]) for i in range(16)]
    chances = [rate ** s.sum() * (1 - rate) ** (4 - s.sum()) for s in subsets]
    mean = sum(chance * np.sum(factors * updates * s) for chance, s in zip(chances, subsets, strict=True))
    assert mean == pytest.approx(np.sum(weights * updates))
    with pytest.raises(ValueError, match="sample_rate"):
        server_weights(weights, 0.0)


@pytest.mark.parametrize("equal", [True, False])
def test_the_ledger_sees_the_multiplier_that_holds(equal: bool) -> None:
    """Z for equal weights; z/(K max p_i) in general: the farthest that one client moves the sum, over σ."""
    samples = np.array([10, 10, 10, 10]) if equal else np.array([5, 10, 10, 15])
    weights, rate, clip, z = samples / samples.sum(), 1.0, 0.8, 1.5
    std = server_noise_std(z, clip, rate, 4)
    release = ServerNoiseRelease(1, np.arange(4), z, std, clip, rate)
    facts = PrivacyFacts(samples, weights, int(samples.sum()))
    statement = Statement(1e-5, unit="client", adversary="observer")
    farthest = clip * server_weights(weights, rate).max()
    assert release.accounted(facts, statement).mu_squared[0] == pytest.approx((farthest / std) ** 2)
    assert farthest / std == pytest.approx(4 * weights.max() / z)


def test_white_noise() -> None:
    noise = white_server_noise(100_000, 0.3, Streams(shifted(2)).generator("server_noise", 1))
    assert_mean(noise, 0.0, 0.3)
    assert_variance_gaussian(noise, 0.09)
    assert_follows(noise, stats.norm(0, 0.3).cdf)


def test_haar_noise_has_the_variance_of_an_element() -> None:
    generator = Streams(shifted(3)).generator("server_noise", 1)
    noise = np.stack([haar_server_noise(50, 0.3, generator) for _ in range(20_000)])
    assert noise.shape == (20_000, 50)
    variance = 0.09 * element_noise_variance(64)
    for element in (0, 20, 49):
        assert_mean(noise[:, element], 0.0, math.sqrt(variance), 3e-7)
        assert_variance_gaussian(noise[:, element], variance, false_alarm=3e-7)
    assert_variance_gaussian(noise[:, 3:40].sum(1), 0.09 * range_sum_noise_variance(64, 3, 40))
    assert_follows(noise[:, 7], stats.norm(0, math.sqrt(variance)).cdf)


@pytest.mark.parametrize("noise", [white_server_noise, haar_server_noise])
def test_noise_is_a_function_of_the_generator(noise: object) -> None:
    assert callable(noise)
    first, second, other = (noise(33, 0.5, Streams(1).generator("server_noise", m)) for m in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.any(first == other)


def test_the_dynamic_form_changes_with_the_round() -> None:
    clip, multiplier = Geometric(1.0, 0.5, 10), Geometric(1.0, 1.5, 10)
    stds = [server_noise_std(multiplier.at(m), clip.at(m), 0.5, 20) for m in range(1, 11)]
    assert stds == pytest.approx([0.75 ** (t / 10) / 10 for t in range(10)])
