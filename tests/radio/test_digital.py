"""Digital uplinks: rates, outage, attempts, access and airtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tests.statistics import assert_mean, assert_probability, shifted
from wirelessfl.radio import Rayleigh
from wirelessfl.radio.rates import (
    AdaptiveRate,
    FixedRate,
    MultipleAccess,
    Ofdma,
    Tdma,
    finite_blocklength_rate,
    link_snr,
    shannon_rate,
    upload_over_pieces,
)
from wirelessfl.radio.units import OfdmNumerology, dbm_to_watts, thermal_noise_density
from wirelessfl.streams import Streams

COUNT = 100_000
BANDWIDTH = 1e6


def rayleigh(columns: int = 1) -> np.ndarray:
    nodes = np.arange(COUNT * columns)
    return Rayleigh().draw(Streams(shifted(91)).nodes("fading", 0, nodes)).reshape(COUNT, columns)


def outage_probability(rate: float, bandwidth: float, mean_snr: float) -> float:
    """How often a Rayleigh channel carries less than a fixed rate."""
    return float(1 - np.exp(-(2 ** (rate / bandwidth) - 1) / mean_snr))


def test_the_digital_snr_in_watts() -> None:
    """γ = |h|² p/(N0 B_i), from the over-the-air SNR_i = 2p/(N0 B)."""
    watts, noise_density = dbm_to_watts(23.0), thermal_noise_density(5.0)
    channel = np.array([1e-6, 2e-6j])
    snr = 2 * watts / (noise_density * BANDWIDTH)
    np.testing.assert_allclose(link_snr(snr, channel), np.abs(channel) ** 2 * watts / (noise_density * BANDWIDTH))
    narrow = np.abs(channel) ** 2 * watts / (noise_density * BANDWIDTH / 4)
    np.testing.assert_allclose(link_snr(snr, channel, bandwidth_share=0.25), narrow)


def test_shannon_at_known_points() -> None:
    np.testing.assert_allclose(shannon_rate(BANDWIDTH, np.array([0.0, 1.0, 3.0, 1023.0])), [0.0, 1e6, 2e6, 1e7])


def test_short_packets_against_the_formula_in_nats() -> None:
    """In n channel uses n log(1+γ) − sqrt(nV) Q^{-1}(ε) nats, V = γ(γ + 2)/(γ + 1)² (complex Gaussian noise)."""
    snr, n, error = np.array([0.5, 1.0, 20.0]), 200, 1e-3
    nats = n * np.log(1 + snr) - np.sqrt(n * snr * (snr + 2) / (snr + 1) ** 2) * stats.norm.isf(error)
    found = finite_blocklength_rate(BANDWIDTH, snr, n, error)
    np.testing.assert_allclose(found, BANDWIDTH * nats / n / np.log(2))


@given(snr=st.floats(0, 1e6), blocklength=st.floats(1, 1e9), error=st.floats(1e-9, 0.5))
def test_short_packets_never_beat_shannon(snr: float, blocklength: float, error: float) -> None:
    found = finite_blocklength_rate(BANDWIDTH, np.array([snr]), blocklength, error)[0]
    assert 0 <= found <= shannon_rate(BANDWIDTH, np.array([snr]))[0]


def test_long_packets_approach_shannon() -> None:
    snr = np.array([7.0])
    np.testing.assert_allclose(finite_blocklength_rate(BANDWIDTH, snr, 1e12, 1e-6), shannon_rate(BANDWIDTH, snr), 1e-5)


@pytest.mark.parametrize("rate", [2e5, 1e6, 3e6])
def test_outage_on_rayleigh_channels(rate: float) -> None:
    snr = link_snr(8.0, rayleigh()[:, 0])
    probability = outage_probability(rate, BANDWIDTH, 4.0)
    assert_probability(int(np.sum(shannon_rate(BANDWIDTH, snr) < rate)), COUNT, probability)


def test_ergodic_rate_of_rayleigh_channels() -> None:
    """Mean of log2(1 + γ) over exponential γ: e^{1/γ̄} E1(1/γ̄)/ln 2, here by quadrature."""
    rates = shannon_rate(1.0, link_snr(8.0, rayleigh()[:, 0]))
    moments = [integrate.quad(lambda g, k=k: np.log2(1 + g) ** k * np.exp(-g / 4) / 4, 0, np.inf)[0] for k in (1, 2)]
    assert_mean(rates, moments[0], std=float(np.sqrt(moments[1] - moments[0] ** 2)))


def test_pieces_at_a_fixed_rate_are_repeated_a_geometric_number_of_times() -> None:
    """Independent pieces fail with probability q: 1 − q³ delivered, (1 − q³)/(1 − q) of at most three are used."""
    carried, rate = shannon_rate(BANDWIDTH, link_snr(8.0, rayleigh(3))), FixedRate(2e6)
    failure = outage_probability(2e6, BANDWIDTH, 4.0)
    upload = upload_over_pieces(8e6, np.full(COUNT, 4.0), rate.sent_at(carried), carried, repeats=True)
    assert_probability(int(upload.delivered.sum()), COUNT, 1 - failure**3)
    chance = np.array([1 - failure, failure * (1 - failure), failure**2])
    mean = chance @ [1, 2, 3]
    assert mean == pytest.approx((1 - failure**3) / (1 - failure))
    attempts = upload.airtime / 4.0
    assert_mean(attempts, float(mean), std=float(np.sqrt(chance @ np.array([1, 4, 9]) - mean**2)))


def one_by_one(policy: AdaptiveRate | FixedRate, bits: float, carried: np.ndarray) -> list[tuple[float, bool]]:
    """Airtime and delivery piece by piece, each a second long and repeated where it is lost."""
    rows = []
    for row in carried:
        airtime, left = 0.0, bits
        for rate in row:
            used = policy.rate_bps if isinstance(policy, FixedRate) else rate if rate >= policy.min_rate_bps else 0.0
            if left > 1e-9 and used > 0:
                part = min(left / used, 1.0) if used <= rate else 1.0
                airtime, left = airtime + part, left - part * used * (used <= rate)
        rows.append((airtime, left <= 1e-9))
    return rows


@pytest.mark.parametrize("policy", [AdaptiveRate(0.5), FixedRate(1.0)])
def test_uploads_are_the_protocol_piece_by_piece(policy: AdaptiveRate | FixedRate) -> None:
    carried = np.random.default_rng(3).exponential(size=(500, 4))
    carried[0] = 0.0
    found = upload_over_pieces(1.0, np.ones(500), policy.sent_at(carried), carried, repeats=True)
    airtime, delivered = zip(*one_by_one(policy, 1.0, carried), strict=True)
    np.testing.assert_allclose(found.airtime, airtime)
    np.testing.assert_array_equal(found.delivered, delivered)


def test_one_loss_of_a_piece_costs_its_airtime() -> None:
    upload = upload_over_pieces(8.0, np.array([4.0]), np.array([[2.0]]), np.array([[1.0, 4.0]]), repeats=True)
    assert (upload.airtime[0], upload.ended[0], upload.delivered[0]) == (8.0, True, True)


@pytest.mark.parametrize("policy", [AdaptiveRate(0.5), FixedRate(1.0)])
def test_rates_are_those_believed_or_fixed(policy: AdaptiveRate | FixedRate) -> None:
    expected = {0.5: [0.0, 0.5, 3.0], 1.0: [1.0, 1.0, 1.0]}[policy.least_bps]
    np.testing.assert_array_equal(policy.sent_at(np.array([0.4, 0.5, 3.0])), expected)


def test_time_division_has_the_band_for_one_and_frequency_division_a_part_for_each() -> None:
    assert (Tdma().at_a_time(4), Ofdma().at_a_time(4), Ofdma().at_a_time(0)) == (1, 4, 1)
    assert (Tdma().bandwidth_share(4), Ofdma().bandwidth_share(4)) == (1.0, 0.25)
    assert isinstance(Tdma(), MultipleAccess) and isinstance(Ofdma(), MultipleAccess)


def test_the_timing_case_of_the_radio_page() -> None:
    """Four clients, 8 Mbit at 1, 2, 4, 8 Mbit/s in own bands after 1, 2, 3, 9 s of work: 9, 6, 5, 10 s."""
    airtime = 250_000 * 32 / AdaptiveRate(1.0).sent_at(np.array([1e6, 2e6, 4e6, 8e6]))
    arrivals = np.array([1.0, 2.0, 3.0, 9.0]) + airtime
    np.testing.assert_allclose(arrivals, [9.0, 6.0, 5.0, 10.0])


def test_ofdm_in_whole_symbols() -> None:
    grid = OfdmNumerology(subcarriers=1200, subcarrier_spacing_hz=15e3, cyclic_prefix_s=4.6875e-6)
    assert grid.symbol_duration == pytest.approx(71.354e-6, abs=1e-9)
    assert grid.slot_duration(1200) == pytest.approx(grid.symbol_duration)
    assert grid.slot_duration(1201) == pytest.approx(2 * grid.symbol_duration)
    assert OfdmNumerology(1, 1e6, 0.0).slot_duration(650) == pytest.approx(650 / 1e6)
    assert grid.bandwidth_hz == 18e6


@pytest.mark.parametrize("arguments", [(0, 15e3, 0.0), (1, 0.0, 0.0), (1, 15e3, -1.0)])
def test_bad_grids_are_refused(arguments: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match=r"grid|prefix"):
        OfdmNumerology(*arguments)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_bad_rates_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="min_rate_bps"):
        AdaptiveRate(bad)
    with pytest.raises(ValueError, match="rate_bps"):
        FixedRate(bad)


@pytest.mark.parametrize(("blocklength", "error"), [(0.5, 0.1), (100, 0.0), (100, 0.6), (np.nan, 0.1)])
def test_bad_packets_are_refused(blocklength: float, error: float) -> None:
    with pytest.raises(ValueError, match="no rate"):
        finite_blocklength_rate(BANDWIDTH, np.ones(1), blocklength, error)


def test_a_bad_share_is_refused() -> None:
    with pytest.raises(ValueError, match="bandwidth_share"):
        link_snr(1.0, np.ones(1, dtype=complex), 0.0)
