"""The Haar transform, its weights, and both variances of noise on the coefficients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.privacy.range_sums import range_sum_noise_variance
from tests.statistics import assert_variance_gaussian, shifted
from wirelessfl.privacy import (
    element_noise_variance,
    haar,
    haar_weights,
    inverse_haar,
    lemma_1_variance,
)

LENGTHS = [1, 2, 4, 8, 64]


def transform_matrix(length: int) -> np.ndarray:
    """Row j holds coefficient j as a function of the elements, from the definition alone."""
    rows = [np.full(length, 1 / length)]
    block = length
    while block > 1:
        for start in range(0, length, block):
            row = np.zeros(length)
            row[start : start + block // 2] = 1 / block
            row[start + block // 2 : start + block] = -1 / block
            rows.append(row)
        block //= 2
    return np.array(rows)


def test_example_of_the_paper() -> None:
    """[4, 8, 1, 9, 8, 4, 5, 3]: mean 5.25, details [0.25], [0.5, 1], [-2, -4, 2, 1] (Table 2)."""
    np.testing.assert_array_equal(haar(np.array([4, 8, 1, 9, 8, 4, 5, 3])), [5.25, 0.25, 0.5, 1, -2, -4, 2, 1])


@pytest.mark.parametrize("length", LENGTHS)
def test_coefficients_are_the_matrix_product(length: int) -> None:
    x = np.random.default_rng(1).standard_normal((3, 2, length))
    np.testing.assert_allclose(haar(x), x @ transform_matrix(length).T, atol=1e-14)
    np.testing.assert_allclose(inverse_haar(x), x @ np.linalg.inv(transform_matrix(length)).T, atol=1e-12)


@given(hnp.arrays(np.float64, st.sampled_from([(1,), (2,), (5, 8), (32,)]), elements=st.floats(-1e6, 1e6)))
def test_inverse_undoes_the_transform(x: NDArray[np.float64]) -> None:
    tolerance = 1e-15 * x.shape[-1] * max(1.0, np.abs(x).max(initial=0.0))
    np.testing.assert_allclose(inverse_haar(haar(x)), x, rtol=0, atol=tolerance)
    np.testing.assert_allclose(haar(inverse_haar(x)), x, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_and_the_input_left_alone(dtype: type[np.floating[Any]]) -> None:
    x = np.arange(8).astype(dtype)
    before = x.copy()
    assert haar(x).dtype == inverse_haar(x).dtype == dtype
    np.testing.assert_array_equal(x, before)
    assert haar(np.arange(8)).dtype == np.float64


def test_torch_tensors_agree_with_numpy() -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(2).standard_normal((4, 16)).astype(np.float32)
    tensor = torch.from_numpy(x.copy())
    for transform in (haar, inverse_haar):
        result = transform(tensor)
        assert result.dtype == torch.float32
        np.testing.assert_array_equal(result.numpy(), transform(x))
    np.testing.assert_array_equal(tensor.numpy(), x)
    assert haar(torch.arange(4)).dtype == torch.float64


@pytest.mark.parametrize("length", [0, 3, 6, 12, 100])
def test_other_lengths_are_refused(length: int) -> None:
    for transform in (haar, inverse_haar):
        with pytest.raises(ValueError, match="power of two"):
            transform(np.zeros(length))
    for of_length in (haar_weights, element_noise_variance, lemma_1_variance):
        with pytest.raises(ValueError, match="power of two"):
            of_length(length)


def test_weights_are_m_for_the_mean_and_two_to_the_level() -> None:
    np.testing.assert_array_equal(haar_weights(8), [8, 8, 4, 4, 2, 2, 2, 2])
    np.testing.assert_array_equal(haar_weights(1), [1])


@pytest.mark.parametrize("length", LENGTHS)
def test_element_variance_is_the_diagonal_of_the_covariance(length: int) -> None:
    """σ²C²(1/m² + Σ_l 4^−l), against the covariance of the inverse matrix."""
    inverse = np.linalg.inv(transform_matrix(length))
    covariance = inverse @ np.diag(haar_weights(length) ** -2.0) @ inverse.T
    np.testing.assert_allclose(np.diag(covariance), element_noise_variance(length), rtol=1e-12)
    levels = int(np.log2(length))
    assert element_noise_variance(length) == pytest.approx(
        1 / length**2 + sum(4.0**-level for level in range(1, levels + 1))
    )


def test_element_variance_golden() -> None:
    """At m = 64: 0.33350 σ²C² (PRIVACY.md, Goldens)."""
    assert round(element_noise_variance(64), 5) == 0.33350


def test_element_variance_of_simulated_noise() -> None:
    length, trials = 64, 4000
    rng = np.random.default_rng(shifted(7))
    noise = inverse_haar(rng.standard_normal((trials, length)) / haar_weights(length))
    for element in (0, 13, 63):
        assert_variance_gaussian(noise[:, element], element_noise_variance(length))


@pytest.mark.parametrize("length", [1, 2, 8, 16])
def test_range_sum_variance_is_that_of_the_covariance_and_lemma_1_bounds_it(length: int) -> None:
    inverse = np.linalg.inv(transform_matrix(length))
    covariance = inverse @ np.diag(haar_weights(length) ** -2.0) @ inverse.T
    for start, stop in itertools.combinations(range(length + 1), 2):
        expected = covariance[start:stop, start:stop].sum()
        assert range_sum_noise_variance(length, start, stop) == pytest.approx(expected, abs=1e-12)
        assert expected <= lemma_1_variance(length)


def test_lemma_1_is_not_the_variance_of_an_element() -> None:
    """(2 + log2 m)/2 grows with m, an element's variance falls to 1/3: two quantities."""
    assert lemma_1_variance(64) == 4.0
    assert lemma_1_variance(64) / element_noise_variance(64) > 11
    assert element_noise_variance(1 << 20) == pytest.approx(1 / 3, rel=1e-9)
