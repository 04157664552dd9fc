"""Gaussian fields along a way: their covariances against the closed forms, over steps of any lengths."""

from __future__ import annotations

import numpy as np

from tests.statistics import assert_mean, shifted
from wirelessfl.radio import PairedFields, ornstein_uhlenbeck

COUNT = 60_000
STEPS = [0.0, 3.0, 0.4, 80.0, 17.0]
POINTS = np.cumsum(STEPS)
DISTANCES = np.array([37.0, 50.0])


def assert_covariance(first: np.ndarray, second: np.ndarray, covariance: float) -> None:
    """Of standard normal numbers: their product has variance 1 + r²."""
    assert_mean(first * second, covariance, std=float(np.sqrt(1 + covariance**2)))


def test_the_autocorrelation_is_exponential_at_every_lag() -> None:
    generator = np.random.default_rng(shifted(301))
    fields = [generator.standard_normal(COUNT)]
    for step in STEPS[1:]:
        fields.append(ornstein_uhlenbeck(fields[-1], np.full(COUNT, step), 50.0, generator.standard_normal(COUNT)))
    for i, first in enumerate(fields):
        for j, second in enumerate(fields):
            assert_covariance(first, second, float(np.exp(-abs(POINTS[i] - POINTS[j]) / 50.0)))


def test_paired_fields_have_each_their_own_and_share_the_noise() -> None:
    """One white noise through two kernels: the cross-covariance over a way s is C e^{−s/d}, d of the later field."""
    generator, pair = np.random.default_rng(shifted(302)), PairedFields(DISTANCES)
    fields = [pair.start(generator.standard_normal((COUNT, 2)))]
    for step in STEPS[1:]:
        fields.append(pair.advance(fields[-1], np.full(COUNT, step), generator.standard_normal((COUNT, 2))))
    cross = 2 * np.sqrt(DISTANCES.prod()) / DISTANCES.sum()
    for i in range(len(STEPS)):
        for j in range(i, len(STEPS)):
            kept = np.exp(-(POINTS[j] - POINTS[i]) / DISTANCES)
            for early in range(2):
                for late in range(2):
                    expected = float(kept[late] * (1.0 if early == late else cross))
                    assert_covariance(fields[i][:, early], fields[j][:, late], expected)


def test_a_node_that_does_not_move_keeps_its_fields() -> None:
    generator, still = np.random.default_rng(1), np.zeros(5)
    normals, pair = generator.standard_normal((5, 2)), PairedFields(DISTANCES)
    before = pair.start(normals)
    np.testing.assert_array_equal(pair.advance(before, still, normals), before)
    np.testing.assert_array_equal(ornstein_uhlenbeck(before[:, 0], still, 5.0, normals[:, 1]), before[:, 0])


def test_equal_distances_are_one_field() -> None:
    generator, pair = np.random.default_rng(2), PairedFields(np.array([20.0, 20.0]))
    fields = pair.start(generator.standard_normal((50, 2)))
    later = pair.advance(fields, np.full(50, 7.0), generator.standard_normal((50, 2)))
    np.testing.assert_allclose(fields[:, 0], fields[:, 1])
    np.testing.assert_allclose(later[:, 0], later[:, 1], atol=1e-7)
