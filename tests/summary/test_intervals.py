"""Intervals in the numbers of their axis, the range that an axis shows of them, and ticks of logarithmic axes."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from wirelessfl.summary.curves import Band
from wirelessfl.summary.drawing import log_scale
from wirelessfl.summary.intervals import Interval, interval_of, lowest_of, on_scale, vertical_range


def flat(mean: list[float], half: float) -> Interval:
    values = np.array(mean)
    return Interval(values, values - half, values + half)


def test_wide_intervals_do_not_flatten_the_means() -> None:
    low, high = vertical_range("test_loss", [flat([1.0, 1.4], 0.0), flat([1.8, 2.0], 12.7)]) or (0.0, 0.0)
    assert low == pytest.approx(1.0 - 0.55) and high == pytest.approx(2.0 + 0.55)
    low, high = vertical_range("test_loss", [flat([1.0, 2.0], 0.1)]) or (0.0, 0.0)
    assert low == pytest.approx(0.9 - 0.05) and high == pytest.approx(2.1 + 0.05)


def test_ranges_of_logarithms_are_taken_there() -> None:
    decades = np.array([0.0, 2.0])
    wide = interval_of("epsilon_accounted", Band(decades, np.full(2, 9.0), 2), -np.inf)
    assert wide.mean.tolist() == [1.0, 100.0] and wide.low[0] == pytest.approx(1e-9)
    low, high = vertical_range("epsilon_accounted", [wide]) or (0.0, 0.0)
    assert np.log10([low, high]) == pytest.approx([-1.1, 3.1])
    assert vertical_range("epsilon_accounted", [flat([np.inf, np.nan], 0.0)]) is None


def test_ranges_stay_where_the_metric_can_be() -> None:
    assert vertical_range("test_accuracy", [flat([2.0, 99.0], 40.0)]) == (0.0, 100.0)
    assert lowest_of("test_loss", [np.array([0.1, np.nan])]) == 0.0
    assert lowest_of("server_step_norm", [np.array([-0.1])]) == -np.inf == lowest_of("epsilon_accounted", [])
    one = interval_of("test_accuracy", Band(np.array([99.0]), np.array([3.0]), 2), 0.0)
    assert (one.low[0], one.high[0]) == (96.0, 100.0)
    assert on_scale("test_accuracy", np.array([0.5])).tolist() == [50.0]
    assert np.isnan(on_scale("epsilon_accounted", np.array([0.0]))).all()


@pytest.mark.parametrize(
    ("values", "ticks"), [([0.0, 0.01, 5.0], {0.01, 0.1, 1.0}), ([0.0, 2.0, 6.0], {2.0, 3.0, 5.0})]
)
def test_a_zero_does_not_hide_the_range_of_a_logarithmic_axis(values: list[float], ticks: set[float]) -> None:
    axes = Figure(figsize=(3, 2)).subplots()
    axes.plot([1, 2, 3], values)
    log_scale(axes.yaxis)
    low, high = axes.get_ylim()
    shown = {round(float(tick), 6) for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high}
    assert ticks <= shown


@pytest.mark.parametrize("across", [1, 2, 4])
def test_labels_of_a_logarithmic_axis_have_room(across: int) -> None:
    figure = Figure(figsize=(3.5, 2))
    axes = np.ravel(figure.subplots(1, across))[0]
    axes.plot([1e-6, 3.0], [0, 1])
    log_scale(axes.xaxis)
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.xaxis.get_majorticklocs() if low <= tick <= high]
    assert 2 <= len(shown) <= max(2, 9 // across)
