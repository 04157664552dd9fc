"""Channel estimates: their law, the bias of least squares, and the deep-fade probability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_follows, assert_mean, assert_probability, assert_uncorrelated, shifted
from wirelessfl.radio import Links, Rayleigh, Rician, Static, estimate_channel, mean_estimate_power
from wirelessfl.radio.csi import Estimator
from wirelessfl.streams import Streams

COUNT = 200_000
ERROR_STD = 0.6
NODES = np.arange(COUNT)
PATH_GAIN = np.full(COUNT, 4.0)


def channel_and_estimate(estimator: Estimator) -> tuple[np.ndarray, np.ndarray]:
    streams = Streams(shifted(21))
    channel = np.sqrt(PATH_GAIN) * Rayleigh().draw(streams.nodes("fading", 0, NODES))
    return channel, estimate_channel(channel, PATH_GAIN, ERROR_STD, estimator, streams.nodes("csi", 0, NODES))


@pytest.mark.parametrize("estimator", ["ls", "mmse"])
def test_without_error_the_estimate_is_the_channel_exactly(estimator: Estimator) -> None:
    channel = np.array([0.3 - 0.4j, 2.0j])
    stream = Streams(1).nodes("csi", 0, np.arange(2))
    np.testing.assert_array_equal(estimate_channel(channel, np.ones(2), 0.0, estimator, stream), channel)


@pytest.mark.parametrize("estimator", ["ls", "mmse"])
def test_the_estimate_is_circular_gaussian_of_the_stated_power(estimator: Estimator) -> None:
    _, estimate = channel_and_estimate(estimator)
    power = mean_estimate_power(PATH_GAIN, ERROR_STD, estimator)[0]
    assert_follows(np.abs(estimate) ** 2, stats.expon(scale=power).cdf)
    assert_follows(np.angle(estimate), stats.uniform(-np.pi, 2 * np.pi).cdf)


def test_the_stated_power_in_numbers() -> None:
    """Powers beta (1 + e²) = 4 · 1.36 for least squares, beta/(1 + e²) = 4/1.36 for mmse."""
    assert mean_estimate_power(PATH_GAIN, ERROR_STD, "ls")[0] == pytest.approx(5.44)
    assert mean_estimate_power(PATH_GAIN, ERROR_STD, "mmse")[0] == pytest.approx(4 / 1.36)


def test_the_error_of_least_squares_is_independent_of_the_channel() -> None:
    channel, estimate = channel_and_estimate("ls")
    error = estimate - channel
    assert_follows(np.abs(error) ** 2, stats.expon(scale=4.0 * ERROR_STD**2).cdf)
    assert_uncorrelated(error.real, channel.real)
    assert_uncorrelated(error.imag, channel.real)


@pytest.mark.parametrize(("estimator", "slope"), [("ls", 1 / (1 + ERROR_STD**2)), ("mmse", 1.0)])
def test_the_regression_of_channel_on_estimate(estimator: Estimator, slope: float) -> None:
    """E[h | ĥ] = slope · ĥ: tested as E[(h − slope ĥ) conj(ĥ)] = 0, whose real part has the variance shown below."""
    channel, estimate = channel_and_estimate(estimator)
    residual_power = 4.0 * ERROR_STD**2 / (1 + ERROR_STD**2)
    estimate_power = mean_estimate_power(PATH_GAIN, ERROR_STD, estimator)[0]
    product = ((channel - slope * estimate) * estimate.conj()).real
    assert_mean(product, 0.0, std=np.sqrt(residual_power * estimate_power / 2))


def test_least_squares_without_the_scale_would_be_seen_as_biased() -> None:
    channel, estimate = channel_and_estimate("ls")
    product = ((channel - estimate) * estimate.conj()).real
    with pytest.raises(AssertionError, match="mean"):
        assert_mean(product, 0.0, std=np.sqrt(4.0 * ERROR_STD**2 / (1 + ERROR_STD**2) * 5.44 / 2))


@pytest.mark.parametrize("estimator", ["ls", "mmse"])
@pytest.mark.parametrize("threshold", [0.01, 0.3])
def test_deep_fade_has_the_same_probability_at_any_path_gain(estimator: Estimator, threshold: float) -> None:
    """Pr(silent) = 1 − e^{−g}, whatever beta and the estimator."""
    channel, estimate = channel_and_estimate(estimator)
    power = mean_estimate_power(PATH_GAIN, ERROR_STD, estimator)
    ones = np.ones(COUNT)
    silent = Links(channel, estimate, ones, ones, PATH_GAIN, power).in_deep_fade(threshold)
    assert_probability(int(silent.sum()), COUNT, -np.expm1(-threshold))


def rician_and_estimate(estimator: Estimator, known: bool) -> tuple[np.ndarray, np.ndarray]:
    """K = 8 and an error of 0.3, the case of RADIO's closed form."""
    streams, law = Streams(shifted(23)), Rician(8.0)
    draws = streams.nodes("fading", 0, NODES)
    channel = 2.0 * law.draw(draws)
    specular = law.specular(draws) if known else 0j
    return channel, estimate_channel(channel, PATH_GAIN, 0.3, estimator, streams.nodes("csi", 0, NODES), specular)


def test_mmse_about_the_line_of_sight_inverts_a_rician_channel_without_bias() -> None:
    """E[h/ĥ | ĥ] = 1 at every ĥ, and so over all above half the mean amplitude, where the ratio has a variance."""
    channel, estimate = rician_and_estimate("mmse", known=True)
    ratio = (channel / estimate)[np.abs(estimate) > 1.0]
    assert_mean(ratio.real, 1.0, std=float(ratio.real.std()))
    assert_mean(ratio.imag, 0.0, std=float(ratio.imag.std()))
    residual, least = np.mean(np.abs(channel - estimate) ** 2), 4.0 * 0.09 / (1 + 9 * 0.09)
    assert residual == pytest.approx(least, rel=0.02)
    power = mean_estimate_power(PATH_GAIN, 0.3, "mmse", specular_power=8 / 9)[0]
    assert_mean(np.abs(estimate) ** 2, power, std=float((np.abs(estimate) ** 2).std()))


def test_mmse_about_zero_over_inverts_a_rician_channel_by_the_closed_form() -> None:
    """(1 + σ²)[a + (1 − a)(1 − e^{−K/(1 + (K+1)σ²)})] with a = 1/(1 + (K+1)σ²): 1.084 at K = 8, σ = 0.3."""
    share = 1 / (1 + 9 * 0.09)
    bias = 1.09 * (share + (1 - share) * -np.expm1(-8 * share))
    assert bias == pytest.approx(1.084, abs=5e-4)
    channel, estimate = rician_and_estimate("mmse", known=False)
    ratio = (channel / estimate).real
    assert ratio.mean() == pytest.approx(bias, abs=0.01)


def test_what_does_not_fade_is_known_and_mmse_says_so() -> None:
    streams, law = Streams(1), Static()
    draws = streams.nodes("fading", 0, np.arange(3))
    channel = law.draw(draws)
    estimate = estimate_channel(
        channel, np.ones(3), 0.5, "mmse", streams.nodes("csi", 0, np.arange(3)), law.specular(draws)
    )
    np.testing.assert_array_equal(estimate, channel)


def test_every_client_may_have_an_error_of_its_own() -> None:
    channel, path_gain, error_std = np.ones(3, dtype=complex), np.array([1.0, 4.0, 1.0]), np.array([0.0, 0.2, 0.4])
    stream = Streams(1).nodes("csi", 0, np.arange(3))
    together = estimate_channel(channel, path_gain, error_std, "mmse", stream)
    for i, std in enumerate(error_std):
        alone = Streams(1).nodes("csi", 0, np.array([i]))
        assert together[i] == estimate_channel(channel[[i]], path_gain[[i]], float(std), "mmse", alone)[0]
        power = mean_estimate_power(path_gain, error_std, "mmse")[i]
        assert power == mean_estimate_power(path_gain[[i]], float(std), "mmse")[0]


@pytest.mark.parametrize("error_std", [-0.1, np.nan, np.inf])
def test_a_bad_error_std_is_refused(error_std: float) -> None:
    stream = Streams(1).nodes("csi", 0, np.arange(1))
    with pytest.raises(ValueError, match="error_std"):
        estimate_channel(np.ones(1, dtype=complex), np.ones(1), error_std, "ls", stream)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="estimator"):
        mean_estimate_power(np.ones(1), 0.1, "map")  # type: ignore[arg-type]
