"""Antenna arrays: steering, spatial correlation, and gains at every antenna against closed forms and statistics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tests.simulation.scenarios import small
from tests.statistics import assert_uncorrelated, standard_errors
from wirelessfl.assembly.network import build_network
from wirelessfl.radio import ChannelSource, Moment, Registry
from wirelessfl.radio.propagation.array import (
    SECTOR_RAD,
    ArrayGeometry,
    ExponentialCorrelation,
    OneRing,
    exponential_correlation,
    one_ring_correlation,
)
from wirelessfl.streams import Streams

NODES = np.arange(40_000)
NOW = Moment(1, 0.0)


def source(**overrides: object) -> ChannelSource:
    """The channels of the small scenario's clients."""
    scenario = small(**overrides)
    registry = Registry(np.ones(len(NODES), dtype=np.int64), len(NODES), 1.0)
    return build_network(scenario, registry, Streams(scenario.seed), 50).clients


def gains(receiver: dict[str, object], **overrides: object) -> np.ndarray:
    """(n, A) channels of many clients."""
    found = source(uplink__receiver=receiver, **overrides)
    return found.channels(NODES, NOW).channel[:, 0, 0]


def test_a_plane_wave_reaches_a_linear_array() -> None:
    """A wave along the array passes half a wavelength from one element to the next: the sign changes."""
    array = ArrayGeometry(rows=1, columns=4, spacing=0.5)
    np.testing.assert_allclose(array.steering(np.array([0.0, np.pi / 2])), [[1, 1, 1, 1], [1, -1, 1, -1]], atol=1e-12)
    oblique = array.steering(np.array([np.pi / 6]))[0]
    np.testing.assert_allclose(oblique, np.exp(1j * np.pi * np.sin(np.pi / 6) * np.arange(4)), rtol=1e-12)


def test_a_planar_array_is_the_product_of_its_row_and_its_column() -> None:
    azimuth, elevation = np.array([0.4]), np.array([-0.2])
    plane = ArrayGeometry(rows=3, columns=2, spacing=0.6).steering(azimuth, elevation)[0]
    beside = np.exp(2j * np.pi * 0.6 * np.arange(2) * np.sin(0.4) * np.cos(-0.2))
    above = np.exp(2j * np.pi * 0.6 * np.arange(3) * np.sin(-0.2))
    np.testing.assert_allclose(plane, np.kron(above, beside), rtol=1e-12)


@pytest.mark.parametrize("distance", [1, 2, 5])
def test_a_full_ring_has_the_bessel_correlation(distance: int) -> None:
    """Scatterers all around: (1/2π) ∫ e^{j2πΔ sin x} dx = J0(2πΔ)."""
    found = one_ring_correlation(ArrayGeometry(1, 6, 0.5), 180.0, 0.3)
    assert found[0, distance] == pytest.approx(special.j0(np.pi * distance), abs=1e-9)


def test_a_narrow_ring_is_a_plane_wave() -> None:
    array = ArrayGeometry(1, 5, 0.5)
    wave = array.steering(np.array([0.5]))[0]
    np.testing.assert_allclose(one_ring_correlation(array, 1e-6, 0.5), np.outer(wave, wave.conj()), atol=1e-6)


def test_a_ring_is_the_integral_over_it() -> None:
    """Against the midpoint rule on a million angles."""
    array, spread, azimuth = ArrayGeometry(2, 3, 0.7), 25.0, -0.4
    width = np.deg2rad(spread)
    angles = azimuth + width * ((np.arange(1_000_000) + 0.5) / 500_000 - 1)
    waves = array.steering(angles)
    np.testing.assert_allclose(one_ring_correlation(array, spread, azimuth), waves.T @ waves.conj() / 1e6, atol=1e-9)


def test_exponential_correlation_of_a_plane_is_a_kronecker_product() -> None:
    line = exponential_correlation(ArrayGeometry(1, 4, 0.5), 0.6)
    np.testing.assert_allclose(line[0], [1, 0.6, 0.36, 0.216])
    plane = exponential_correlation(ArrayGeometry(2, 2, 0.5), 0.6)
    np.testing.assert_allclose(plane[0], [1, 0.6, 0.6, 0.36])


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (ExponentialCorrelation(0.8), exponential_correlation(ArrayGeometry(2, 3, 0.5), 0.8)),
        (OneRing(12.0), one_ring_correlation(ArrayGeometry(2, 3, 0.5), 12.0, 0.7)),
    ],
)
def test_roots_are_roots(law: ExponentialCorrelation | OneRing, expected: np.ndarray) -> None:
    root = law.root(ArrayGeometry(2, 3, 0.5), np.array([0.7]))[0]
    np.testing.assert_allclose(root @ root.conj().T, expected, atol=1e-12)


def test_the_first_antenna_is_that_of_a_receiver_with_one() -> None:
    """More antennas draw no other numbers for the first, and independent ones for the others."""
    one = gains({"antennas": 1})
    four = gains({"antennas": 4})
    np.testing.assert_array_equal(four[:, 0], one[:, 0])
    for antenna in range(1, 4):
        assert_uncorrelated(four[:, 0].real, four[:, antenna].real)
        assert_uncorrelated(four[:, 0].imag, four[:, antenna].imag)


def test_scattering_is_correlated_as_stated() -> None:
    """The sample covariance of CN(0, R) gains: each entry has variance R_aa R_bb/n in modulus."""
    found = gains({"antennas": 4, "correlation": {"model": "exponential", "coefficient": 0.7}})
    covariance = found.T @ found.conj() / len(found)
    expected = exponential_correlation(ArrayGeometry(1, 4, 0.5), 0.7)
    assert np.abs(covariance - expected).max() < standard_errors() / np.sqrt(len(found)) * np.sqrt(2)


def test_a_direct_ray_is_a_plane_wave_from_the_clients_direction() -> None:
    """Without scattering the phases of neighbours differ by π sin φ, φ uniform within 60° of broadside."""
    found = gains({"antennas": 3}, channel__fading={"model": "static"})
    turns = np.angle(found[:, 1] / found[:, 0]) / np.pi
    np.testing.assert_allclose(np.abs(found), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found[:, 2] / found[:, 1], found[:, 1] / found[:, 0], rtol=1e-9)
    angles = np.sort(np.arcsin(turns)) / SECTOR_RAD
    uniform = (np.arange(len(angles)) + 0.5) / len(angles) * 2 - 1
    assert np.abs(angles - uniform).max() / 2 < np.sqrt(np.log(2 / 1e-9) / (2 * len(angles)))


def test_directions_are_those_of_the_places() -> None:
    """A client at (0, 100) m sends along a linear array, one at (100, 0) m across it."""
    places = {"scheme": "positions", "points_m": [[0.0, 100.0], [100.0, 0.0], [100.0, 100.0], *[[9.0, 9.0]] * 3]}
    found = source(
        uplink__receiver={"antennas": 2},
        channel__fading={"model": "static"},
        channel__placement=places,
        channel__pathloss={"model": "log_distance"},
    )
    channel = found.channels(np.arange(3), NOW).channel[:, 0, 0]
    turned = np.exp(1j * np.pi * np.array([1.0, 0.0, np.sqrt(0.5)]))
    np.testing.assert_allclose(channel[:, 1] / channel[:, 0], turned, rtol=1e-9)


def test_rician_gains_have_ray_and_scattering_of_one_client() -> None:
    """K = 6 dB: the mean over rounds, with the ray's phase taken out, is the ray; the rest has power 1/(K+1)."""
    k = 10**0.6
    found = gains({"antennas": 3}, channel__fading={"model": "rician", "k_db": 6.0})
    assert np.mean(np.abs(found) ** 2) == pytest.approx(1.0, abs=0.02)
    other = source(uplink__receiver={"antennas": 3}, channel__fading={"model": "rician", "k_db": 6.0})
    ray = other._specular(NODES, np.zeros(len(NODES), dtype=np.bool_), NOW, np.zeros(1))[:, 0, 0]
    np.testing.assert_allclose(np.abs(ray) ** 2, k / (k + 1), rtol=1e-12)
    assert np.mean(np.abs(found - ray) ** 2) == pytest.approx(1 / (k + 1), rel=0.02)
    covariance = (found - ray).T @ (found - ray).conj() / len(ray)
    np.testing.assert_allclose(covariance, np.eye(3) / (k + 1), atol=standard_errors() / np.sqrt(len(ray)))


@pytest.mark.parametrize("correlation", ["gauss_markov", "clarke"])
def test_gains_of_all_antennas_move_in_time(correlation: str) -> None:
    """Two instants with J0(2π f_D t) = 0.85 at each antenna, and independent antennas."""
    law = {"model": correlation, "doppler_hz": 5.0}
    found = source(uplink__receiver={"antennas": 2}, channel__correlation=law)
    first = found.channels(NODES, Moment(1, 0.0)).channel[:, 0, 0]
    second = found.channels(NODES, Moment(2, 0.025)).channel[:, 0, 0]
    expected = special.j0(2 * np.pi * 5.0 * 0.025)
    for antenna in range(2):
        same = np.mean(second[:, antenna] * first[:, antenna].conj())
        assert same == pytest.approx(expected, abs=0.03)
    assert abs(np.mean(second[:, 1] * first[:, 0].conj())) < 0.03


def test_estimates_err_at_every_antenna_on_its_own() -> None:
    found = source(uplink__receiver={"antennas": 3}, channel__csi={"error_std": 0.5})
    drawn = found.channels(NODES, NOW)
    error = (drawn.estimate - drawn.channel)[:, 0, 0]
    covariance = error.T @ error.conj() / len(error)
    np.testing.assert_allclose(covariance, 0.25 * np.eye(3), atol=0.25 * standard_errors() / np.sqrt(len(error)))


@pytest.mark.parametrize(("columns", "spacing", "spread_deg"), [(64, 0.5, 180.0), (16, 100.0, 10.0), (8, 5.0, 60.0)])
def test_a_ring_around_a_long_array_is_resolved(columns: int, spacing: float, spread_deg: float) -> None:
    """R by the mean over a million directions, between neighbours and ends; a wide spacing takes no time."""
    found = one_ring_correlation(ArrayGeometry(1, columns, spacing), spread_deg, 0.4)
    around = np.deg2rad(spread_deg) * ((np.arange(1_000_000) + 0.5) / 500_000 - 1)
    for lag in (1, columns - 1):
        expected = np.exp(2j * np.pi * spacing * lag * np.sin(0.4 + around)).mean()
        np.testing.assert_allclose(found[lag, 0], expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found[0, lag], np.conj(expected), rtol=0, atol=1e-6)
