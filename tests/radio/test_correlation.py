"""Correlated fading: marginal law, autocorrelation and level crossings against Clarke's closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from tests.statistics import assert_follows, assert_mean, assert_uncorrelated, shifted
from wirelessfl.radio import clarke_fading, clarke_gains, gauss_markov, jakes_correlation
from wirelessfl.radio.propagation.correlation import NUM_SINUSOIDS
from wirelessfl.streams import Streams

LINKS = 20_000
DOPPLER = 10.0
LAGS = np.array([0.0, 0.003, 0.01, 0.02, 0.0383, 0.07, 0.2, 0.5, 1.3, 7.7])
"""Seconds; f_D τ from 0.03 through the first zero of J0 to 77, beyond what the sinusoids of one link can tell apart."""


@pytest.fixture(scope="module")
def paths() -> np.ndarray:
    return clarke_fading(LAGS, DOPPLER, LINKS, np.random.default_rng(shifted(31)))


@pytest.mark.parametrize("instant", [0, 4, 9])
def test_clarke_is_rayleigh_at_every_instant(paths: np.ndarray, instant: int) -> None:
    assert paths.shape == (LINKS, len(LAGS))
    assert_follows(np.abs(paths[:, instant]) ** 2, stats.expon.cdf)
    assert_follows(np.angle(paths[:, instant]), stats.uniform(-np.pi, 2 * np.pi).cdf)


@pytest.mark.parametrize("lag", range(1, len(LAGS)))
def test_clarke_autocorrelation_is_bessel(paths: np.ndarray, lag: int) -> None:
    """Re and Im of h(τ) conj(h(0)): for jointly Gaussian gains of correlation r the variances are (1 ± r²)/2."""
    product = paths[:, lag] * paths[:, 0].conj()
    bessel = float(special.j0(2 * np.pi * DOPPLER * LAGS[lag]))
    assert_mean(product.real, bessel, std=np.sqrt((1 + bessel**2) / 2))
    assert_mean(product.imag, 0.0, std=np.sqrt((1 - bessel**2) / 2))


def test_two_clarke_links_are_independent(paths: np.ndarray) -> None:
    assert_uncorrelated(paths[0::2, 3].real, paths[1::2, 3].real)


CROSSING_TIMES = np.arange(161) / (400 * DOPPLER)
"""Each link is watched over 0.4/f_D; a step of 1/(400 f_D) hides a pair of crossings too seldom to be seen."""


@pytest.fixture(scope="module")
def envelope() -> np.ndarray:
    return np.abs(clarke_fading(CROSSING_TIMES, DOPPLER, 10_000, np.random.default_rng(shifted(32))))


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.3, 0.7, 1.2])
def test_clarke_crosses_levels_at_the_closed_form_rate(envelope: np.ndarray, level: float) -> None:
    """Upward crossings of |h| = ρ: sqrt(2π) f_D ρ e^{−ρ²} a second; their spread is taken from the counts."""
    crossings = np.sum((envelope[:, :-1] < level) & (envelope[:, 1:] >= level), axis=1)
    rate = np.sqrt(2 * np.pi) * DOPPLER * level * np.exp(-(level**2))
    assert_mean(crossings, rate * CROSSING_TIMES[-1], std=float(np.std(crossings)))


def test_at_zero_doppler_nothing_moves() -> None:
    still = clarke_fading(LAGS, 0.0, 20_000, np.random.default_rng(shifted(33)))
    np.testing.assert_array_equal(still, np.repeat(still[:, :1], len(LAGS), axis=1))
    assert_follows(np.abs(still[:, 0]) ** 2, stats.expon.cdf)
    assert jakes_correlation(0.0, 1.0) == 1.0


def test_the_closed_form_of_a_node_has_the_same_law() -> None:
    nodes = np.arange(LINKS)
    stream = Streams(shifted(34)).nodes("clarke", 0, nodes)
    early, late = (
        clarke_gains(np.full(LINKS, 50.0), stream),
        clarke_gains(np.full(LINKS, 50.2), stream),
    )
    bessel = float(special.j0(2 * np.pi * DOPPLER * 0.02))
    assert_follows(np.abs(late) ** 2, stats.expon.cdf)
    assert_mean((late * early.conj()).real, bessel, std=np.sqrt((1 + bessel**2) / 2))


def test_a_node_sees_its_path_whoever_else_and_whenever_asked() -> None:
    cycles = np.array([5.0, 20.0, 32.5])
    streams = Streams(2)
    together = clarke_gains(cycles, streams.nodes("clarke", 0, np.array([4, 9, 1])))
    for k, node in enumerate([4, 9, 1]):
        alone = clarke_gains(cycles[k : k + 1], streams.nodes("clarke", 0, np.array([node])))
        np.testing.assert_allclose(alone, together[k : k + 1], rtol=1e-12)


def innovations(round_index: int) -> np.ndarray:
    return Streams(shifted(35)).nodes("fading", round_index, np.arange(LINKS)).complex_normal()[:, 0]


@pytest.mark.parametrize("correlation", [0.9, -0.4, 0.0])
def test_gauss_markov_keeps_the_law_and_has_geometric_correlation(correlation: float) -> None:
    first = innovations(0)
    second = gauss_markov(first, np.ones(LINKS), correlation, innovations(1))
    third = gauss_markov(second, np.ones(LINKS), correlation, innovations(2))
    assert_follows(np.abs(third) ** 2, stats.expon.cdf)
    for later, expected in ((second, correlation), (third, correlation**2)):
        assert_mean((later * first.conj()).real, expected, std=np.sqrt((1 + expected**2) / 2))


def test_skipped_rounds_are_carried_in_one_step() -> None:
    """Correlation ρ³ after three rounds away, and a fresh draw on first appearance."""
    first = innovations(0)
    later = gauss_markov(first, np.full(LINKS, 3.0), 0.8, innovations(3))
    assert_follows(np.abs(later) ** 2, stats.expon.cdf)
    assert_mean((later * first.conj()).real, 0.512, std=np.sqrt((1 + 0.512**2) / 2))
    np.testing.assert_array_equal(gauss_markov(first, np.full(LINKS, np.inf), 1.0, innovations(3)), innovations(3))


def test_the_figures_of_the_radio_page() -> None:
    """At f_D T = 0.1, lag 4, the recursion has 0.67 where J0 has −0.05."""
    assert jakes_correlation(10.0, 0.01) ** 4 == pytest.approx(0.67, abs=0.005)
    assert jakes_correlation(10.0, 0.04) == pytest.approx(-0.05, abs=0.006)


def test_bad_arguments_are_refused() -> None:
    one = np.ones(1, dtype=complex)
    with pytest.raises(ValueError, match="fading_correlation"):
        gauss_markov(one, np.ones(1), 1.01, one)
    with pytest.raises(ValueError, match="rounds_since"):
        gauss_markov(one, np.zeros(1), 0.5, one)
    with pytest.raises(ValueError, match="doppler_hz"):
        clarke_fading(LAGS, -1.0, 2, np.random.default_rng(0))


@pytest.mark.slow
def test_one_link_over_time_has_the_power_and_the_spectrum_it_states() -> None:
    """Averaged over 2,000/f_D: power 1 within 0.1 dB, and J0 within the stated 1/N, up to 2π f_D τ = 3N/2.

    With amplitudes of random size the powers were 1.3 dB apart, and the correlations were off by 0.14 at f_D τ = 1.
    """
    step, count = 0.05, 40_000
    cycles = step * np.arange(count)
    paths = clarke_gains(np.tile(cycles, (12, 1)), Streams(shifted(36)).nodes("clarke", 0, np.arange(12)))
    power = np.mean(np.abs(paths) ** 2, axis=1)
    assert np.abs(10 * np.log10(power)).max() < 0.1
    for lag in (0.05, 0.2, 1.0, 5.0, 1.5 * NUM_SINUSOIDS / (2 * np.pi)):
        shift = round(lag / step)
        found = np.mean(paths[:, shift:] * paths[:, : count - shift].conj(), axis=1)
        bessel = special.j0(2 * np.pi * shift * step)
        assert np.abs(found - bessel).max() < 1 / NUM_SINUSOIDS + 0.02


def test_the_spectrum_of_a_link_is_exact_in_its_real_part() -> None:
    """The long-time autocorrelation is the mean of e^{j x cos θ_n}, whatever the offset u of the angles."""
    angles = np.pi * (np.arange(NUM_SINUSOIDS) + np.linspace(0, 1, 51)[:, None]) / NUM_SINUSOIDS
    for x in np.linspace(0.0, 1.5 * NUM_SINUSOIDS, 97):
        found = np.exp(1j * x * np.cos(angles)).mean(axis=1)
        np.testing.assert_allclose(found.real, special.j0(x), atol=1e-6)
        assert np.abs(found.imag).max() <= 1 / NUM_SINUSOIDS


def kluyver(level: float) -> float:
    """Pr(|h|² < g) of the sum of N unit phasors over √N: √g ∫ J1(√g r) J0(r/√N)^N dr (Kluyver 1906)."""
    root = np.sqrt(level)
    r = np.linspace(0.0, 14.0, 1401)
    density = special.j1(root * r) * special.j0(r / np.sqrt(NUM_SINUSOIDS)) ** NUM_SINUSOIDS
    return float(root * integrate.simpson(density, x=r))


@pytest.mark.slow
def test_a_gain_is_gaussian_up_to_the_stated_error() -> None:
    """E|h|⁴ = 2 − 1/N, and deep fades are less likely than e^{−g} says by the part 1/(2N)."""
    for level in (1e-3, 1e-2):
        assert kluyver(level) / -np.expm1(-level) - 1 == pytest.approx(-1 / (2 * NUM_SINUSOIDS), rel=0.05)
    power = np.abs(clarke_gains(np.full(LINKS, 3.0), Streams(shifted(37)).nodes("clarke", 0, np.arange(LINKS)))) ** 2
    assert_follows(power, np.vectorize(kluyver))
    assert_mean(power**2, 2 - 1 / NUM_SINUSOIDS, std=np.sqrt(20.0))


def test_every_link_has_its_own_doppler_shift() -> None:
    shifts = np.array([0.0, 10.0])
    paths = clarke_fading(LAGS, shifts, 2, np.random.default_rng(shifted(38)))
    np.testing.assert_array_equal(paths[0], paths[0, 0])
    assert np.abs(np.diff(paths[1])).min() > 1e-3


def test_many_times_of_a_link_are_those_asked_for_one_by_one() -> None:
    cycles = np.linspace(0.0, 300.0, 9_001)
    stream = Streams(4).nodes("clarke", 0, np.array([3, 8]))
    together = clarke_gains(np.tile(cycles, (2, 1)), stream)
    for at in (0, 4_095, 4_096, 9_000):
        np.testing.assert_allclose(together[:, at], clarke_gains(np.full(2, cycles[at]), stream), rtol=1e-11)
    assert clarke_gains(np.zeros((2, 0)), stream).shape == (2, 0)
