"""What all antennas tell of a signal, against explicit covariances and likelihood ratios."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

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
