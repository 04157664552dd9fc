"""The norm of the server's step, taken in blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wirelessfl.learning.server_step import _BLOCK, step_norm


@pytest.mark.parametrize("dimension", [1, 1000, _BLOCK, 2 * _BLOCK + 3])
def test_it_is_that_of_the_difference_in_double_precision(dimension: int) -> None:
    """A model whose steps are far smaller than its values: single precision would have three digits of them."""
    numbers = np.random.default_rng(dimension)
    before = (100 + numbers.standard_normal(dimension)).astype(np.float32)
    after = before + (1e-3 * numbers.standard_normal(dimension)).astype(np.float32)
    expected = math.sqrt(math.fsum((after.astype(float) - before.astype(float)) ** 2))
    assert step_norm(before, after) == pytest.approx(expected, rel=1e-12)
    assert step_norm(before, after, threads=3) == step_norm(before, after)


def test_a_step_that_is_not_finite_has_no_finite_norm() -> None:
    before = np.zeros(3, dtype=np.float32)
    assert math.isnan(step_norm(before, np.array([1, np.nan, 2], dtype=np.float32)))
    assert math.isinf(step_norm(before, np.array([1, np.inf, 2], dtype=np.float32)))
    large = np.zeros(2 * _BLOCK, dtype=np.float32)
    diverged = np.concatenate([[np.inf], large[2:], [-np.inf]]).astype(np.float32)
    assert math.isinf(step_norm(large, diverged, threads=2))
