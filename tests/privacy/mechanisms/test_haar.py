"""Haar noise: norms, variances, and the multiplier that really holds for each clip domain."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from tests.privacy.mechanisms.draws import draws, example_step
from tests.privacy.range_sums import range_sum_noise_variance
from tests.privacy.test_wavelet import transform_matrix
from tests.speed import rest_slow
from tests.statistics import assert_follows, assert_mean, assert_variance_gaussian
from wirelessfl.privacy import element_noise_variance, haar_weights, lemma_1_variance, padded_length
from wirelessfl.privacy.clipping import Constant
from wirelessfl.privacy.clipping.conformance import FormedGradients
from wirelessfl.privacy.laws import ClipDomain, HaarNoise
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    HaarMechanism,
    clip_by_haar_norm,
    haar_squared_norms,
    standard_normals,
)

DOMAINS: list[ClipDomain] = ["coefficients", "weighted", "gradient"]


def coefficients_by_hand(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """H of the zero-padded vector, by the matrix that defines the transform."""
    length = 1
    while length < len(vector):
        length *= 2
    return np.asarray(transform_matrix(length)[:, : len(vector)] @ vector)


@pytest.mark.parametrize(("dimension", "length"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128)])
def test_padding_goes_to_the_next_power_of_two(dimension: int, length: int) -> None:
    assert padded_length(dimension) == length


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3)))
def test_norms_are_those_of_the_coefficients(vector: NDArray[np.float64]) -> None:
    coefficients = coefficients_by_hand(vector)
    weighted = coefficients * haar_weights(len(coefficients))
    tensor = torch.from_numpy(vector)
    expected = {"coefficients": np.sum(coefficients**2), "weighted": np.sum(weighted**2)}
    assert float(haar_squared_norms(tensor, "coefficients")) == pytest.approx(expected["coefficients"], rel=1e-12)
    assert float(haar_squared_norms(tensor, "weighted")) == pytest.approx(expected["weighted"], rel=1e-12)


def test_norms_are_taken_sample_by_sample_and_chunk_by_chunk() -> None:
    gradients = torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    formed = FormedGradients(gradients, torch.ones(2, 5, dtype=torch.bool), (6, 4, 1), at_once=2)
    found = HaarMechanism(Constant(1.0), "weighted").squared_norms(formed)
    assert found.shape == (2, 5, 1)
    for client in range(2):
        for sample in range(5):
            coefficients = coefficients_by_hand(gradients[client, sample].numpy())
            assert float(found[client, sample, 0]) == pytest.approx(np.sum((coefficients * haar_weights(16)) ** 2))
    plain = HaarMechanism(Constant(1.0), "gradient").squared_norms(formed)
    assert torch.equal(plain, GaussianMechanism(Constant(1.0)).squared_norms(formed))


@pytest.mark.parametrize("dimension", rest_slow([5, 64, 1, 100], fast=2))
def test_every_element_has_the_published_variance(dimension: int) -> None:
    """σ²C²(1/m² + Σ 4^−l) for every element inside the true dimension, and Gaussian."""
    variance = (0.7 * 1.9) ** 2 * element_noise_variance(padded_length(dimension))
    noise = draws(HaarMechanism(Constant(0.7)), 20_000, dimension, sensitivity=1.9)
    alarm = 1e-6 / min(dimension, 5)
    for element in range(0, dimension, max(1, dimension // 4)):
        assert_mean(noise[:, element], 0.0, np.sqrt(variance), alarm)
        assert_variance_gaussian(noise[:, element], variance, false_alarm=alarm)
    assert_follows(noise[:, -1], stats.norm(0, np.sqrt(variance)).cdf)


def test_the_golden_variance() -> None:
    assert element_noise_variance(64) == pytest.approx(0.33350, abs=5e-6)


@pytest.mark.slow
def test_range_sums_and_elements_have_different_variances() -> None:
    """Lemma 1 speaks of range sums: the noise of one is far from that of an element, and both are as stated."""
    noise = draws(HaarMechanism(Constant(1.0)), 20_000, 64, sensitivity=1.0)
    for start, stop in [(0, 64), (1, 63), (5, 38), (31, 33)]:
        variance = range_sum_noise_variance(64, start, stop)
        assert_variance_gaussian(noise[:, start:stop].sum(1), variance, false_alarm=2.5e-7)
        assert variance <= lemma_1_variance(64)


def test_noise_comes_from_the_coefficients_of_the_stream() -> None:
    """The same draws through the matrix of the transform."""
    step = example_step(1, step=3, round_index=2)
    total = torch.zeros(1, 11, dtype=torch.float64)
    HaarMechanism(Constant(0.7)).add(total, torch.tensor([1.9], dtype=torch.float64), step)
    drawn = standard_normals("gradient_noise", step, torch.empty(1, 16, dtype=torch.float64)).numpy()[0]
    expected = np.linalg.solve(transform_matrix(16), 0.7 * 1.9 * drawn / haar_weights(16))
    np.testing.assert_allclose(total.numpy()[0], expected[:11], rtol=1e-12)


def norm_matrix(clip_domain: ClipDomain, length: int) -> NDArray[np.float64]:
    """The quadratic form whose unit ball is what clipping to C = 1 allows."""
    transform = transform_matrix(length)
    weighted = haar_weights(length)[:, None] * transform
    matrices = {"coefficients": transform, "weighted": weighted, "gradient": np.eye(length)}
    return np.asarray(matrices[clip_domain].T @ matrices[clip_domain])


@pytest.mark.parametrize("clip_domain", DOMAINS)
@pytest.mark.parametrize("length", [2, 8, 64])
def test_the_true_multiplier_of_each_clip_domain(clip_domain: ClipDomain, length: int) -> None:
    """The farthest shift, in noise standard deviations, of a gradient inside the clip: a generalised eigenvalue.

    Noise covariance Σ = σ²C² (A^T W² A)^−1, so that a shift g stands out by √(g^T Σ^−1 g); its largest value over
    the clip ball is 1/(true multiplier).
    """
    sigma = 0.7
    precision = norm_matrix("weighted", length) / sigma**2
    ball = norm_matrix(clip_domain, length)
    farthest = np.sqrt(np.max(np.real(np.linalg.eigvals(np.linalg.solve(ball, precision)))))
    assert 1 / farthest == pytest.approx(sigma * HaarNoise(length, clip_domain).accounted_factor(), rel=1e-9)


@pytest.mark.parametrize("clip_domain", ["coefficients", "weighted"])
def test_clipping_by_a_haar_norm(clip_domain: str) -> None:
    vectors = torch.randn(4, 11, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    vectors[1] *= 1e-3
    vectors[2, 5] = torch.nan
    clipped, norms = clip_by_haar_norm(vectors, 0.5, clip_domain)  # type: ignore[arg-type]
    for row in (0, 1, 3):
        coefficients = coefficients_by_hand(vectors[row].numpy())
        norm = float(np.linalg.norm(coefficients * (haar_weights(16) if clip_domain == "weighted" else 1.0)))
        assert float(norms[row]) == pytest.approx(norm)
        torch.testing.assert_close(clipped[row], vectors[row] * min(1.0, 0.5 / norm))
    assert torch.equal(clipped[2], torch.zeros(11, dtype=torch.float64))


def test_unknown_words_are_refused() -> None:
    with pytest.raises(ValueError, match="clip_domain must be one of"):
        HaarMechanism(Constant(1.0), "fourier")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reading must be"):
        HaarMechanism(Constant(1.0), "weighted", "lemma_3")  # type: ignore[arg-type]
