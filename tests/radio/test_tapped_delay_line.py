"""Tapped delay lines: the profiles of the standard, frequency correlation, and gains of groups of subcarriers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.radio.test_arrays import NODES, NOW, source
from tests.statistics import standard_errors
from wirelessfl.radio import Moment, group_frequencies, tapped_delay_line
from wirelessfl.radio.tapped_delay_line import Profile


def test_the_frequency_correlation_of_tdl_c() -> None:
    """At 300 ns, as computed from Table 7.7.2-3 elsewhere: |R| at 0.18, 1 and 5 MHz."""
    found = np.abs(tapped_delay_line("C", 300e-9).frequency_correlation(np.array([0.18e6, 1e6, 5e6])))
    np.testing.assert_allclose(found, [0.953, 0.734, 0.427], atol=5e-4)


@pytest.mark.parametrize(("profile", "taps"), [("A", 23), ("B", 23), ("C", 24), ("D", 13), ("E", 14)])
def test_profiles_have_the_delay_spread_that_is_asked_for(profile: Profile, taps: int) -> None:
    """The tables are normalised to a delay spread of 1: what a wrong entry would change."""
    line = tapped_delay_line(profile, 100e-9)
    assert len(line.power) == taps
    assert line.power.sum() == pytest.approx(1.0)
    assert line.delay_spread == pytest.approx(100e-9, rel=0.01)


@pytest.mark.parametrize(("profile", "k_db"), [("D", 13.3), ("E", 22.0)])
def test_the_first_tap_has_the_standards_rician_factor(profile: Profile, k_db: float) -> None:
    """K₁ = 13.3 and 22 dB, as the notes under Tables 7.7.2-4 and 7.7.2-5 say."""
    assert 10 * np.log10(tapped_delay_line(profile, 1e-7).rician_k) == pytest.approx(k_db, abs=1e-9)


@pytest.mark.parametrize("spacing", [1e4, 1e5, 1e6])
def test_the_exponential_profile_has_its_closed_form(spacing: float) -> None:
    """R(Δf) = 1/(1 + j2πΔfσ)."""
    found = tapped_delay_line("exponential", 1e-6).frequency_correlation(spacing)
    assert complex(found) == pytest.approx(1 / (1 + 2j * np.pi * spacing * 1e-6), abs=0.01)


def test_groups_lie_side_by_side_around_the_middle_of_the_band() -> None:
    np.testing.assert_allclose(group_frequencies(4, 8e6), [-3e6, -1e6, 1e6, 3e6])
    np.testing.assert_allclose(group_frequencies(1, 8e6), [0.0])


def gains(**fading: object) -> np.ndarray:
    """(n, F) channels of many clients over 1 MHz."""
    found = source(channel__fading={"model": "tdl", **fading}, uplink__receiver={"antennas": 1})
    return np.asarray(found.channels(NODES, NOW).channel[:, 0, :, 0])


def test_gains_of_groups_are_correlated_as_the_profile_says() -> None:
    """Over 40,000 clients: each entry of the sample covariance errs by 1/√n in modulus."""
    found = gains(profile="C", delay_spread_s=1e-6, groups=16)
    covariance = found.T @ found.conj() / len(found)
    frequency = group_frequencies(16, 1e6)
    expected = tapped_delay_line("C", 1e-6).frequency_correlation(np.subtract.outer(frequency, frequency))
    assert np.abs(covariance - expected).max() < np.sqrt(2) * standard_errors() / np.sqrt(len(found))


def test_a_gain_at_one_frequency_is_rayleigh_or_rician() -> None:
    """Pr(|h|² < g) = 1 − e^{−g} for A; for D the second moment of |h|² is 1 + (2K + 1)/(K + 1)²."""
    power = np.abs(gains(profile="A", groups=4)) ** 2
    assert np.mean(power[:, 1] < 0.2) == pytest.approx(1 - np.exp(-0.2), abs=0.01)
    k = tapped_delay_line("D", 1e-7).total_rician_k
    power = np.abs(gains(profile="D", groups=4)) ** 2
    assert power[:, 2].mean() == pytest.approx(1.0, abs=0.01)
    assert np.mean(power[:, 2] ** 2) == pytest.approx(1 + (2 * k + 1) / (k + 1) ** 2, rel=0.02)


def test_without_a_delay_spread_the_channel_is_flat() -> None:
    found = gains(profile="B", delay_spread_s=0.0, groups=4)
    np.testing.assert_allclose(found, np.broadcast_to(found[:, :1], found.shape), rtol=1e-12)


@pytest.mark.slow
def test_paths_fade_in_time_and_reach_all_antennas() -> None:
    """Two instants with J0(2π · 0.05) = 0.9755 at every frequency and antenna, antennas independent."""
    found = source(
        channel__fading={"model": "tdl", "profile": "A", "groups": 2},
        channel__correlation={"model": "clarke", "doppler_hz": 5.0},
        uplink__receiver={"antennas": 2},
    )
    some = NODES[:8000]
    first = found.channels(some, Moment(1, 0.0)).channel[:, 0]
    second = found.channels(some, Moment(2, 0.01)).channel[:, 0]
    assert first.shape == (8000, 2, 2)
    same = np.mean(second * first.conj(), axis=0)
    np.testing.assert_allclose(same, 0.9755, atol=0.05)
    assert abs(np.mean(first[:, 0, 0] * first[:, 0, 1].conj())) < 0.05
