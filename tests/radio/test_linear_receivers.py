"""Zero forcing and linear MMSE against sent symbols, closed forms and the Wiener solution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import assert_follows, shifted, standard_errors
from wirelessfl.radio import LinearMmse, ZeroForcing, stream_sinr

SHAPES = [(1, 1), (4, 1), (4, 3), (4, 4), (8, 5)]
COMBINERS = [ZeroForcing(), LinearMmse()]


def rayleigh(*shape: int, seed: int = 3) -> NDArray[np.complex128]:
    generator = np.random.default_rng(shifted(seed))
    return np.asarray((generator.standard_normal(shape) + 1j * generator.standard_normal(shape)) / np.sqrt(2))


def behind(combiner: ZeroForcing | LinearMmse, channel: NDArray[np.complex128], snr: float) -> NDArray[np.float64]:
    return stream_sinr(combiner.weights(channel, snr), channel, snr)


@pytest.mark.parametrize(("antennas", "streams"), SHAPES)
def test_zero_forcing_is_the_closed_form(antennas: int, streams: int) -> None:
    channel, snr = rayleigh(50, antennas, streams), 7.3
    gram = channel.conj().swapaxes(1, 2) @ channel
    wanted = snr / np.real(np.diagonal(np.linalg.inv(gram), axis1=1, axis2=2))
    np.testing.assert_allclose(behind(ZeroForcing(), channel, snr), wanted, rtol=1e-7)


@pytest.mark.parametrize(("antennas", "streams"), [*SHAPES, (2, 5), (1, 3)])
def test_mmse_is_the_closed_form(antennas: int, streams: int) -> None:
    channel, snr = rayleigh(50, antennas, streams), 7.3
    regular = np.eye(streams) + snr * channel.conj().swapaxes(1, 2) @ channel
    wanted = 1 / np.real(np.diagonal(np.linalg.inv(regular), axis1=1, axis2=2)) - 1
    np.testing.assert_allclose(behind(LinearMmse(), channel, snr), wanted, rtol=1e-9)


@pytest.mark.parametrize(("antennas", "streams"), [(4, 3), (2, 5)])
def test_mmse_is_the_wiener_solution_and_no_other_combiner_is_better(antennas: int, streams: int) -> None:
    """E[y yᴴ]⁻¹ E[y x*] by the covariances; its direction has the largest generalised Rayleigh quotient."""
    channel, snr = rayleigh(antennas, streams), 4.0
    covariance = snr * channel @ channel.conj().T + np.eye(antennas)
    wiener = np.linalg.inv(covariance) @ (np.sqrt(snr) * channel)
    found = LinearMmse().weights(channel, snr)
    np.testing.assert_allclose(found * np.sqrt(snr), wiener, rtol=1e-9)
    best = stream_sinr(found, channel, snr)
    for others in rayleigh(500, antennas, streams, seed=9):
        assert np.all(stream_sinr(others, channel, snr) <= best * (1 + 1e-12))
        assert np.all(stream_sinr(found + 0.05 * others, channel, snr) <= best * (1 + 1e-12))


def test_mmse_is_at_least_zero_forcing_and_becomes_it_without_noise() -> None:
    channel = rayleigh(200, 4, 3)
    for snr in (1e-3, 0.1, 1.0, 100.0):
        assert np.all(behind(LinearMmse(), channel, snr) >= behind(ZeroForcing(), channel, snr) * (1 - 1e-9))
    ratio = behind(LinearMmse(), channel, 1e8) / behind(ZeroForcing(), channel, 1e8)
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-4)


@pytest.mark.parametrize("combiner", COMBINERS, ids=lambda each: type(each).__name__)
def test_a_single_stream_is_maximum_ratio_combined(combiner: ZeroForcing | LinearMmse) -> None:
    channel, snr = rayleigh(30, 6, 1), 2.5
    weights = combiner.weights(channel, snr)
    ratio = weights / channel  # the same number for all antennas
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-9)
    wanted = snr * (np.abs(channel) ** 2).sum(axis=1)
    np.testing.assert_allclose(stream_sinr(weights, channel, snr), wanted, rtol=1e-9)


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@pytest.mark.parametrize("combiner", COMBINERS, ids=lambda each: type(each).__name__)
def test_the_sinr_is_what_symbols_measure(combiner: ZeroForcing | LinearMmse, wrong: float) -> None:
    """200,000 QPSK symbols of each stream; the regression of what arrives on what was sent, and what it leaves.

    The residual variance of n circular samples is off by 1/√n relatively, the gain by the root of the SINR over n: four
    times that bound holds in all but 1e-6 of the seeds for both together.
    """
    generator, count, snr = np.random.default_rng(shifted(5)), 200_000, 10 ** (12 / 10)
    channel = rayleigh(5, 3)
    estimate = channel + wrong * rayleigh(5, 3, seed=21)
    sent = (generator.choice([-1, 1], (3, count)) + 1j * generator.choice([-1, 1], (3, count))) / np.sqrt(2)
    noise = (generator.standard_normal((5, count)) + 1j * generator.standard_normal((5, count))) / np.sqrt(2)
    weights = combiner.weights(estimate, snr)
    arrived = weights.conj().T @ (np.sqrt(snr) * channel @ sent + noise)
    gain = (arrived * sent.conj()).mean(axis=1)
    left = (np.abs(arrived - gain[:, None] * sent) ** 2).mean(axis=1)
    found, wanted = np.abs(gain) ** 2 / left, stream_sinr(weights, channel, snr)
    tolerance = 2 * standard_errors() / np.sqrt(count) * (1 + 1 / np.sqrt(wanted))
    assert np.all(np.abs(found / wanted - 1) <= tolerance)
    if wrong:
        believed = stream_sinr(weights, estimate, snr)
        assert np.any(np.abs(found / believed - 1) > 10 * tolerance)  # the belief is measurably wrong


@pytest.mark.parametrize(("antennas", "streams"), [(4, 1), (4, 3), (4, 4), (8, 2)])
def test_zero_forcing_over_rayleigh_fading_follows_a_gamma_law(antennas: int, streams: int) -> None:
    """SNR · Gamma(A − K + 1) (Winters, Salz, Gitlin 1994); false alarms 1e-6."""
    snr = 3.0
    samples = behind(ZeroForcing(), rayleigh(20_000, antennas, streams, seed=8), snr)[:, 0] / snr
    assert_follows(samples, stats.gamma(antennas - streams + 1).cdf)


@pytest.mark.parametrize("combiner", COMBINERS, ids=lambda each: type(each).__name__)
def test_channels_that_cannot_be_told_apart(combiner: ZeroForcing | LinearMmse) -> None:
    """Two streams of one channel, and one without: no number is lost, and interference remains."""
    same = rayleigh(4, 1)
    channel = np.concatenate([same, same, rayleigh(4, 1, seed=6), np.zeros((4, 1))], axis=1)
    found = behind(combiner, channel, 50.0)
    assert np.all(found[:2] > 0.5) and np.all(found[:2] <= 1.0)
    assert found[2] > 1.0 and found[3] == 0.0
