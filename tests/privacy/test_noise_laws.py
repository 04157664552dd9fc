"""Wavelet rows: how far one contribution stands out of noise on Haar coefficients, by singular values."""

from __future__ import annotations

import numpy as np
import pytest

from wirelessfl.privacy import HaarNoise, WhiteNoise, haar, haar_weights, inverse_haar

LENGTH = 16
WEIGHTED = haar_weights(LENGTH)[:, None] * haar(np.eye(LENGTH)).T  # W∘H as a matrix on the elements


def test_wavelet_clipping_coefficients_has_the_true_multiplier_sigma_over_m() -> None:
    reach = np.linalg.svd(WEIGHTED @ inverse_haar(np.eye(LENGTH)).T, compute_uv=False).max()
    assert reach == pytest.approx(LENGTH)
    assert HaarNoise(LENGTH, "coefficients").accounted_factor() == pytest.approx(1 / reach)


def test_wavelet_clipping_the_gradient_has_the_true_multiplier_sigma_over_root_m() -> None:
    reach = np.linalg.svd(WEIGHTED, compute_uv=False).max()
    assert reach == pytest.approx(np.sqrt(LENGTH))
    assert HaarNoise(LENGTH, "gradient").accounted_factor() == pytest.approx(1 / reach)
    assert HaarNoise(LENGTH, "gradient").published_factor() is None


def test_wavelet_clipping_weighted_coefficients_has_the_true_multiplier_sigma() -> None:
    assert HaarNoise(LENGTH, "weighted").accounted_factor() == 1.0
    assert next(HaarNoise(LENGTH, "weighted").remarks()).startswith("The published figure reads")


def test_wavelet_has_two_published_readings_and_names_which() -> None:
    first, second = HaarNoise(64), HaarNoise(64, reading="lemma_2")
    assert first.published_factor() == 1.0
    assert second.published_factor() == pytest.approx(np.sqrt((2 + 6) / 2))
    assert "Algorithm 1" in next(first.remarks())
    assert "Lemma 2" in next(second.remarks())


def test_a_contribution_of_length_one_makes_no_difference() -> None:
    for domain in ("coefficients", "gradient", "weighted"):
        assert HaarNoise(1, domain).accounted_factor() == WhiteNoise().accounted_factor() == 1.0


def test_bad_wavelets_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two"):
        HaarNoise(12)
    with pytest.raises(ValueError, match="clip_domain"):
        HaarNoise(8, "leaves")  # type: ignore[arg-type]
