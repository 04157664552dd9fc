"""The acceptance helpers accept the right law and refuse the likely bug."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.statistics import (
    assert_counts,
    assert_follows,
    assert_mean,
    assert_probability,
    assert_uncorrelated,
    assert_variance_gaussian,
    ks_distance,
    ks_tolerance,
    shifted,
    standard_errors,
)

COUNT = 100_000


@pytest.fixture
def normal() -> np.ndarray:
    return np.random.default_rng(shifted(1)).standard_normal(COUNT)


def test_tolerances_are_the_textbook_ones() -> None:
    assert standard_errors() == pytest.approx(4.8916, abs=1e-4)
    assert ks_tolerance(100_000) == pytest.approx(0.0085, abs=5e-5)


def test_ks_distance_agrees_with_scipy(normal: np.ndarray) -> None:
    assert ks_distance(normal[:500], stats.norm.cdf) == pytest.approx(stats.kstest(normal[:500], "norm").statistic)


def test_the_right_law_passes(normal: np.ndarray) -> None:
    assert_follows(normal, stats.norm.cdf)
    assert_mean(normal, 0.0, 1.0)
    assert_variance_gaussian(normal, 1.0)
    assert_variance_gaussian(normal + 3.0, 1.0, mean=3.0)
    assert_probability(int(np.sum(normal > 1)), COUNT, float(stats.norm.sf(1)))
    assert_uncorrelated(normal[0::2], normal[1::2])
    assert_counts(np.bincount((normal > 0).astype(int)), np.array([0.5, 0.5]))


def test_a_missing_half_per_real_dimension_is_refused(normal: np.ndarray) -> None:
    halved = normal / np.sqrt(2)
    with pytest.raises(AssertionError, match="KS distance"):
        assert_follows(halved, stats.norm.cdf)
    with pytest.raises(AssertionError, match="variance"):
        assert_variance_gaussian(halved, 1.0)
    with pytest.raises(AssertionError, match="hits"):
        assert_probability(int(np.sum(halved > 1)), COUNT, float(stats.norm.sf(1)))


def test_small_defects_are_refused(normal: np.ndarray) -> None:
    with pytest.raises(AssertionError, match="mean"):
        assert_mean(normal + 0.03, 0.0, 1.0)
    with pytest.raises(AssertionError, match="correlation"):
        assert_uncorrelated(normal, normal + 20 * normal[::-1])
    with pytest.raises(AssertionError, match="chi-square"):
        assert_counts(np.array([52_000, 48_000]), np.array([0.5, 0.5]))
    with pytest.raises(AssertionError, match="too few"):
        assert_counts(np.array([3, 4]), np.array([0.5, 0.5]))
