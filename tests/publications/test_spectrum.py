"""Where noise on Haar coefficients helps at equal accounted ε, against the mechanism itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from publications.spectrum import (
    digits_gradients,
    level_costs,
    level_shares,
    noise_ratio,
    on_level,
    prefix_sum_shares,
    published_ratio,
    white_shares,
)
from wirelessfl.privacy.mechanisms import clip_by_haar_norm
from wirelessfl.privacy.wavelet import element_noise_variance, haar_weights, inverse_haar

LEVELS = 6
LENGTH = 1 << LEVELS


def alternating(block: int) -> np.ndarray:
    """(1, m) ones whose sign changes every ``block`` elements: all on the level whose halves have that length."""
    signs = 1.0 - 2.0 * ((np.arange(LENGTH) // block) % 2)
    return signs[None]


@pytest.mark.parametrize(("block", "level"), [(1, 1), (2, 2), (8, 4), (LENGTH // 2, LEVELS), (LENGTH, 0)])
def test_a_square_wave_lies_on_one_level(block: int, level: int) -> None:
    np.testing.assert_allclose(level_shares(alternating(block)), on_level(level, LEVELS), atol=1e-15)


def test_shares_add_up_and_white_gradients_have_white_shares() -> None:
    vectors = np.random.default_rng(3).standard_normal((4000, LENGTH))
    shares = level_shares(vectors)
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    # A share is Beta distributed with variance below 2 share / m. Its mean over 4000 passes six standard deviations
    # fewer than once in 10^8 runs, any of the seven fewer than once in 10^7.
    white = white_shares(LEVELS)
    assert white.sum() == pytest.approx(1.0)
    np.testing.assert_array_less(np.abs(shares - white), 6 * np.sqrt(2 * white / LENGTH / 4000))


def test_padding_is_zeros_and_zero_vectors_do_not_count() -> None:
    vectors = np.random.default_rng(4).standard_normal((2, 50))
    padded = np.concatenate([vectors, np.zeros((2, 14))], axis=1)
    with_zero = np.concatenate([vectors, np.zeros((1, 50))])
    np.testing.assert_allclose(level_shares(vectors), level_shares(padded))
    np.testing.assert_allclose(level_shares(vectors), level_shares(with_zero))
    with pytest.raises(ValueError, match="zero"):
        level_shares(np.zeros((3, 8)))


@pytest.mark.parametrize("shares", [on_level(1, LEVELS), white_shares(LEVELS), on_level(4, LEVELS)])
def test_ratio_is_that_of_the_mechanism(shares: np.ndarray) -> None:
    """Clip with the engine, take the exact covariance of the noise, and compare noise over signal with flat DP-SGD."""
    gradient = _with_shares(shares)
    clipped, _ = clip_by_haar_norm(torch.from_numpy(1e3 * gradient), 1.0, "weighted")
    signal = float(clipped.square().sum())
    basis = inverse_haar(np.eye(LENGTH) / haar_weights(LENGTH)[:, None])
    noise = float((basis**2).sum())  # trace of the covariance at σ = C = 1
    flat_signal, flat_noise = 1.0, float(LENGTH)
    expected = (noise / signal) / (flat_noise / flat_signal)
    assert noise_ratio(shares) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shares", [on_level(1, LEVELS), white_shares(LEVELS), on_level(4, LEVELS)])
def test_published_ratio_is_that_of_the_mechanism(shares: np.ndarray) -> None:
    clipped, _ = clip_by_haar_norm(torch.from_numpy(1e3 * _with_shares(shares)), 1.0, "coefficients")
    expected = element_noise_variance(LENGTH) / float(clipped.square().sum())
    assert published_ratio(shares) == pytest.approx(expected, rel=1e-6)


def test_as_published_white_gradients_have_a_third_of_the_noise() -> None:
    assert published_ratio(white_shares(LEVELS)) == pytest.approx(element_noise_variance(LENGTH) ** 2)
    assert published_ratio(white_shares(LEVELS)) == pytest.approx(1 / 9, rel=1e-2)


def _with_shares(shares: np.ndarray) -> np.ndarray:
    """(1, m) a vector of norm 1 with these shares, spread evenly over the coefficients of a level."""
    coefficients = np.zeros(LENGTH)
    coefficients[0] = np.sqrt(shares[0] / LENGTH)
    for level in range(1, LEVELS + 1):
        count = LENGTH >> level
        coefficients[count : 2 * count] = np.sqrt(shares[level] / count / 2**level)
    vector = inverse_haar(coefficients)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    return vector[None]


def test_it_helps_on_the_finest_level_by_a_third_and_never_by_more() -> None:
    assert noise_ratio(on_level(1, LEVELS)) == pytest.approx(2 * element_noise_variance(LENGTH))
    assert noise_ratio(on_level(1, LEVELS)) < 0.67
    assert noise_ratio(on_level(2, LEVELS)) > 1
    assert noise_ratio(white_shares(LEVELS)) == pytest.approx((1 + LEVELS) * element_noise_variance(LENGTH))
    assert noise_ratio(on_level(0, LEVELS)) == pytest.approx(LENGTH * element_noise_variance(LENGTH))
    assert level_costs(LEVELS).min() == 2  # so no spectrum does better than the finest level


def test_it_never_helps_where_errors_count_as_gradients_do() -> None:
    random = np.random.default_rng(5)
    for _ in range(200):
        shares = random.dirichlet(np.full(LEVELS + 1, 0.3))
        assert noise_ratio(shares, shares) >= 1 - 1e-12
    for level in range(LEVELS + 1):
        assert noise_ratio(on_level(level, LEVELS), on_level(level, LEVELS)) == pytest.approx(1)


def test_prefix_sums_of_white_gradients_are_what_the_transform_was_made_for() -> None:
    """The ratio against variances of all prefix sums, computed one by one from the transform's covariance."""
    basis = inverse_haar(np.eye(LENGTH) / haar_weights(LENGTH)[:, None])
    wavelet = (np.cumsum(basis, axis=1) ** 2).sum()
    flat = LENGTH * (LENGTH + 1) / 2
    cost_of_white = 1 + LEVELS  # Σ 2^l E_l
    ratio = noise_ratio(white_shares(LEVELS), prefix_sum_shares(LEVELS))
    assert ratio == pytest.approx(cost_of_white * wavelet / flat)
    assert ratio < 1


def test_errors_need_as_many_shares() -> None:
    with pytest.raises(ValueError, match="of errors"):
        noise_ratio(white_shares(3), white_shares(4))


def test_gradients_of_digits_are_nearly_white() -> None:
    shares = level_shares(digits_gradients(0, samples=50))
    assert len(shares) == 13  # d = 2410 is padded to 4096
    assert noise_ratio(shares) > 1
    assert noise_ratio(shares, shares) > 1
