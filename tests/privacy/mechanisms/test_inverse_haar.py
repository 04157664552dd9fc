"""Haar noise row by row: against the transform in double precision, and the kernel against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wirelessfl.privacy import inverse_haar, padded_length
from wirelessfl.privacy.mechanisms.inverse_haar import add_inverse_haar, coefficients_needed, kernel
from wirelessfl.privacy.wavelet import haar_weights

ROUNDING = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 63, 64, 65, 77, 1000, 5001])
def test_noise_is_the_inverse_transform_of_weighted_coefficients(
    dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(4)
    length, needed = padded_length(dimension), coefficients_needed(dimension)
    coefficients = torch.randn(3, needed, generator=generator)
    before = torch.randn(3, dimension + 2, generator=generator)
    whole = np.zeros((3, length))
    whole[:, :needed] = coefficients
    exact = before.numpy()[:, 1:-1] + inverse_haar(whole / haar_weights(length))[:, :dimension]
    found, slowly = before.clone(), before.clone()
    add_inverse_haar(found[:, 1:-1], coefficients)
    np.testing.assert_allclose(found[:, 1:-1], exact, atol=16 * ROUNDING)
    assert torch.equal(found[:, [0, -1]], before[:, [0, -1]])

    monkeypatch.setattr("wirelessfl.privacy.mechanisms.inverse_haar.kernel", lambda: None)
    add_inverse_haar(slowly[:, 1:-1], coefficients)
    assert torch.equal(slowly, found)


@pytest.mark.parametrize("dimension", [1, 2, 3, 31, 33, 100])
def test_coefficients_behind_those_needed_reach_no_element(dimension: int) -> None:
    """And the last of those needed reaches one."""
    length, needed = padded_length(dimension), coefficients_needed(dimension)
    of_each = inverse_haar(np.eye(length))[:, :dimension]
    assert not of_each[needed:].any() and of_each[needed - 1].any()


def test_double_precision_and_columns_apart_are_added_by_torch() -> None:
    coefficients = torch.randn(2, coefficients_needed(9), generator=torch.Generator().manual_seed(1))
    found, apart, double = torch.zeros(2, 9), torch.zeros(9, 2).T, torch.zeros(2, 9, dtype=torch.float64)
    add_inverse_haar(found, coefficients)
    add_inverse_haar(apart, coefficients)
    add_inverse_haar(double, coefficients.double())
    assert torch.equal(apart, found)
    torch.testing.assert_close(double.float(), found)


def test_another_number_of_coefficients_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not \(2, 13\)"):
        add_inverse_haar(torch.zeros(2, 9), torch.zeros(2, 16))


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if kernel() is None:
        pytest.skip("the kernel was not compiled")
    kernel.cache_clear()
    monkeypatch.setattr("wirelessfl.privacy.mechanisms.inverse_haar._add_compiled", lambda *_: None)
    assert kernel() is None
    kernel.cache_clear()
