"""Means and their confidence intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from wirelessfl.study import band


@pytest.mark.parametrize("seeds", [2, 3, 10, 50])
def test_the_interval_is_student_s(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(0.8, 0.1, (seeds, 4))
    result = band(list(values))
    for at in range(4):
        sample = values[:, at]
        low, high = stats.t.interval(0.95, seeds - 1, loc=sample.mean(), scale=stats.sem(sample))
        assert result.mean[at] == pytest.approx(sample.mean())
        assert result.mean[at] - result.half_width[at] == pytest.approx(low)
        assert result.mean[at] + result.half_width[at] == pytest.approx(high)


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    # 20,000 samples of 4: covered 95 % of the time. The normal quantile in place of Student's would cover 85.4 %.
    trials, alarm = 20_000, 1e-6
    result = band(list(np.random.default_rng(3).normal(size=(4, trials))))
    covered = int(np.sum(np.abs(result.mean) <= result.half_width))
    assert stats.binom.cdf(covered, trials, 0.95) > alarm / 2
    assert stats.binom.sf(covered - 1, trials, 0.95) > alarm / 2
    narrow = stats.norm.ppf(0.975) / stats.t.ppf(0.975, 3) * result.half_width
    assert stats.binom.cdf(int(np.sum(np.abs(result.mean) <= narrow)), trials, 0.95) < alarm


def test_one_seed_has_no_interval() -> None:
    result = band([[0.25, 0.5]])
    assert list(result.mean) == [0.25, 0.5]
    assert np.isnan(result.half_width).all()
    assert result.text(0, percent=True) == "25.0 %"


def test_no_seed_has_no_mean() -> None:
    assert band([]).text(0) == "–"


def test_a_round_without_a_value_at_one_seed_has_none() -> None:
    result = band([[math.nan, 1.0], [0.5, 2.0]])
    assert math.isnan(result.mean[0]) and math.isnan(result.half_width[0])
    assert result.mean[1] == 1.5


def test_infinity_stays_infinity() -> None:
    result = band([[math.inf], [1.0]])
    assert result.mean[0] == math.inf
    assert math.isnan(result.half_width[0])
    assert result.text(0) == "inf"


def test_the_shortest_run_ends_the_band() -> None:
    assert list(band([[1.0, 2.0, 3.0], [3.0, 4.0]]).mean) == [2.0, 3.0]


def test_words() -> None:
    assert band([[0.9], [0.92]]).text(0, percent=True) == f"91.0 ± {100 * stats.t.ppf(0.975, 1) * 0.01:.1f} %"
    assert band([[2.0], [2.0]]).text(0) == "2 ± 0"
