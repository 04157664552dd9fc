"""What all antennas tell of a signal, against explicit covariances and likelihood ratios."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from wirelessfl.radio import AntennaLinks, floor_amplitude, whitened_amplitude


def drawn(seed: int, *shape: int) -> NDArray[np.complex128]:
    """Complex normal numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal((*shape, 2)) @ np.array([1.0, 1j]), np.complex128)


def stacked(matrix: np.ndarray) -> np.ndarray:
    """The real form of a complex covariance per real dimension."""
    return np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])


@pytest.mark.parametrize("antennas", [1, 2, 3, 5])
@pytest.mark.parametrize("gain", [0.0, 0.7, 300.0])
def test_the_amplitude_is_that_of_the_likelihood_ratio(antennas: int, gain: float) -> None:
    """Two hypotheses, h and −h under N(0, Σ) in real form: their log-likelihood ratio has mean 2 hᵀΣ⁻¹h."""
    channel, jammer, noise_std = drawn(1, 4, antennas), drawn(2, antennas), 1.3
    covariance = noise_std**2 * np.eye(antennas) + gain**2 * np.outer(jammer, jammer.conj())
    inverse = np.linalg.inv(stacked(covariance))
    for h in channel:
        real = np.concatenate([h.real, h.imag])
        expected = np.sqrt(real @ inverse @ real)
        found = whitened_amplitude(h[None], noise_std, gain * jammer[:, None])[0]
        assert found == pytest.approx(expected, rel=1e-6)


def test_one_antenna_is_the_textbook_formula() -> None:
    channel, jamming = drawn(3, 6, 1), drawn(4, 1, 1)
    expected = np.abs(channel[:, 0]) / np.sqrt(4.0 + np.abs(jamming[0, 0]) ** 2)
    np.testing.assert_allclose(whitened_amplitude(channel, 2.0, jamming), expected, rtol=1e-12)
    np.testing.assert_allclose(whitened_amplitude(channel, 2.0), np.abs(channel[:, 0]) / 2.0, rtol=1e-12)
    assert np.all(floor_amplitude(channel, 2.0, jamming) < 1e-15)


def test_two_antennas_null_a_jammer_of_one() -> None:
    """However strong the jamming: what is orthogonal to it remains."""
    channel, jammer = drawn(5, 3, 2), drawn(6, 2)
    direction = jammer / np.linalg.norm(jammer)
    across = channel - np.outer(channel @ direction.conj(), direction)
    jammer = jammer[:, None]
    floor = floor_amplitude(channel, 1.0, jammer)
    np.testing.assert_allclose(floor, np.linalg.norm(across, axis=1), rtol=1e-9)
    np.testing.assert_allclose(whitened_amplitude(channel, 1.0, 1e8 * jammer), floor, rtol=1e-6)
    assert np.all(np.diff([whitened_amplitude(channel, 1.0, g * jammer).sum() for g in (0, 0.1, 1, 10, 100)]) < 0)


def test_a_client_in_the_jammers_direction_is_hidden_from_any_array() -> None:
    jammer = drawn(7, 3)
    found = whitened_amplitude((2j * jammer)[None], 1.0, 50.0 * jammer[:, None])[0]
    size = np.linalg.norm(jammer)
    assert found == pytest.approx(2 * size / np.sqrt(1 + (50 * size) ** 2), rel=1e-9)
    assert floor_amplitude((2j * jammer)[None], 1.0, jammer[:, None])[0] < 1e-12


def test_the_hiding_gain_is_the_least_that_hides() -> None:
    links = AntennaLinks(drawn(8, 5, 1, 1, 1, 2), drawn(9, 1, 1, 1, 2, 1), np.ones((5, 1, 1), dtype=np.bool_))
    floor = links.loudest(np.ones(5), 1.0)
    loudness = np.full(5, 1 / (1.2 * floor))
    gain = links.hiding_gain(loudness, 1.0)
    assert links.loudest(loudness, 1.0, gain) <= 1.0 < links.loudest(loudness, 1.0, gain * (1 - 1e-9))
    assert np.isinf(links.hiding_gain(np.full(5, 1.01 / floor), 1.0))
    assert links.hiding_gain(np.full(5, 1e-6), 1.0) == 0.0


# --- jammers with several antennas --------------------------------------------------------------------------------


@pytest.mark.parametrize("antennas", [1, 2, 3, 5])
@pytest.mark.parametrize("streams", [1, 2, 3, 7])
@pytest.mark.parametrize("gain", [0.0, 0.7, 300.0])
def test_streams_add_up_in_the_covariance(antennas: int, streams: int, gain: float) -> None:
    """Against the inverse of σ² I + Σ_n g_n g_nᴴ in real form."""
    channel, jamming, noise_std = drawn(11, 4, antennas), gain * drawn(12, antennas, streams), 1.3
    covariance = noise_std**2 * np.eye(antennas) + sum(np.outer(g, g.conj()) for g in jamming.T)
    inverse, real = np.linalg.inv(stacked(covariance)), np.concatenate([channel.real, channel.imag], axis=1)
    expected = np.sqrt(np.einsum("na,ab,nb->n", real, inverse, real))
    np.testing.assert_allclose(whitened_amplitude(channel, noise_std, jamming), expected, rtol=1e-6)


@pytest.mark.parametrize(("antennas", "streams"), [(2, 1), (3, 1), (3, 2), (5, 2), (5, 4)])
def test_fewer_streams_than_antennas_leave_a_subspace_free(antennas: int, streams: int) -> None:
    """The floor is what a basis of the null space of the jammer's channels hears, under noise alone."""
    channel, jammer = drawn(13, 6, antennas), drawn(14, antennas, streams)
    free = null_space(jammer.conj().T)
    assert free.shape[1] == antennas - streams
    floor = floor_amplitude(channel, 2.0, jammer)
    np.testing.assert_allclose(floor, np.linalg.norm(channel @ free.conj(), axis=1) / 2.0, rtol=1e-9)
    np.testing.assert_allclose(whitened_amplitude(channel, 2.0, 1e8 * jammer), floor, rtol=1e-6)


@pytest.mark.parametrize(("antennas", "streams"), [(1, 1), (2, 2), (2, 5), (4, 4)])
def test_as_many_streams_as_antennas_leave_nothing(antennas: int, streams: int) -> None:
    channel, jammer = drawn(15, 6, antennas), drawn(16, antennas, streams)
    assert np.all(floor_amplitude(channel, 1.0, jammer) < 1e-12)
    quiet = whitened_amplitude(channel, 1.0, 1e6 * jammer)
    np.testing.assert_allclose(quiet, whitened_amplitude(channel, 1.0, 1e8 * jammer) * 100, rtol=1e-6)


def test_streams_from_one_direction_are_as_one() -> None:
    """Antennas whose channels are parallel, as on a line of sight, hide no more than one with all of their power."""
    channel, jammer = drawn(17, 6, 3), drawn(18, 3)
    together = jammer[:, None] * np.array([1.0, 0.5j, -0.3])
    one = jammer[:, None] * np.sqrt(1 + 0.25 + 0.09)
    np.testing.assert_allclose(whitened_amplitude(channel, 1.0, together), whitened_amplitude(channel, 1.0, one))
    np.testing.assert_allclose(floor_amplitude(channel, 1.0, together), floor_amplitude(channel, 1.0, one), rtol=1e-9)


def test_the_amplitude_is_the_distance_of_sampled_likelihood_ratios() -> None:
    """Ln p/q of 200,000 draws, three antennas, two streams: mean μ²/2 to 4.9 standard errors (false alarm 1e-6)."""
    random, draws = np.random.default_rng(19), 200_000
    h, jamming = drawn(20, 3), 2.0 * drawn(21, 3, 2)
    thermal = random.standard_normal((2, draws, 3))
    streams = random.standard_normal((2, draws, 2))
    noise = thermal[0] + 1j * thermal[1] + (streams[0] + 1j * streams[1]) @ jamming.T
    law = multivariate_normal(np.zeros(6), stacked(np.eye(3) + jamming @ jamming.conj().T))
    heard = h + noise
    ratio = law.logpdf(_real(heard - h)) - law.logpdf(_real(heard))
    mu = float(whitened_amplitude(h, 1.0, jamming))
    assert abs(ratio.mean() - mu**2 / 2) <= 4.9 * ratio.std() / np.sqrt(draws)
    assert ratio.std() == pytest.approx(mu, rel=0.01)


def _real(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    return np.concatenate([values.real, values.imag], axis=-1)


def test_the_mean_over_channels_falls_with_the_streams() -> None:
    """At equal power, over 4,000 Rayleigh channels to four antennas: the floor, and what strong jamming leaves."""
    channel, floors, left = drawn(22, 4000, 4), [], []
    for streams in (1, 2, 3, 4):
        jammer = drawn(23, 4000, 4, streams) / np.sqrt(streams)
        floors.append(float((floor_amplitude(channel, 1.0, jammer) ** 2).mean()))
        left.append(float((whitened_amplitude(channel, 1.0, 30.0 * jammer) ** 2).mean()))
    assert np.allclose(floors, [6.0, 4.0, 2.0, 0.0], rtol=0.05, atol=1e-9)  # 2 (A − N): each |h|² has the mean 2
    assert np.all(np.diff(left) < -1.0)
