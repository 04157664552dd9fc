"""Rates of broadcasts, and the clients that they reach, against closed forms and brute force."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistics import assert_probability
from wirelessfl.radio.downlink import (
    FixedBroadcast,
    MulticastToWeakest,
    rate_of_outage,
    rayleigh_broadcast_outage,
)


@pytest.mark.parametrize("rate", [2e5, 1e6, 3e6])
def test_the_outage_is_the_share_of_exponential_powers_below_the_threshold(rate: float) -> None:
    mean_snr, draws = 1.7, 40_000
    power = np.random.default_rng(5).exponential(mean_snr, draws)
    missed = int(np.count_nonzero(1e6 * np.log2(1 + power) < rate))
    (expected,) = rayleigh_broadcast_outage(rate, 1e6, np.array([mean_snr]))
    assert expected == pytest.approx(1 - np.exp(-(2 ** (rate / 1e6) - 1) / mean_snr), rel=1e-12)
    assert_probability(missed, draws, expected)


@pytest.mark.parametrize("mean_snr", [[2.0], [2.0, 2.0], [1e-3, 0.4, 7.0, 300.0]])
@pytest.mark.parametrize("outage", [1e-4, 0.1, 0.9])
def test_the_rate_of_an_outage_has_that_outage_on_average(mean_snr: list[float], outage: float) -> None:
    rate = rate_of_outage(outage, 2e6, np.array(mean_snr))
    threshold = 2 ** (rate / 2e6) - 1
    assert np.mean([1 - np.exp(-threshold / each) for each in mean_snr]) == pytest.approx(outage, rel=1e-9)
    assert rayleigh_broadcast_outage(rate, 2e6, np.array(mean_snr)).mean() == pytest.approx(outage, rel=1e-9)


def test_multicast_takes_the_weakest_rate_that_is_not_below_the_floor() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        carried = rng.exponential(1e6, rng.integers(0, 6))
        expected = min((rate for rate in carried.tolist() if rate >= 3e5), default=3e5)
        assert MulticastToWeakest(3e5).of(carried) == expected
    assert FixedBroadcast(4e5).of(np.array([1.0])) == 4e5


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("inf"), float("nan")])
def test_rates_are_positive_and_finite(wrong: float) -> None:
    with pytest.raises(ValueError, match="rate_bps"):
        FixedBroadcast(wrong)
    with pytest.raises(ValueError, match="floor_bps"):
        MulticastToWeakest(wrong)
    with pytest.raises(ValueError, match="outage"):
        rate_of_outage(wrong, 1e6, np.ones(2))
