"""Block fading against the named distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tests.statistics import assert_follows, assert_mean, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.radio import FadingModel, Nakagami, Rayleigh, Recorded, Rician, Static
from wirelessfl.streams import NodeStream, Streams

COUNT = 200_000


def stream(count: int = COUNT, round_index: int = 0) -> NodeStream:
    return Streams(shifted(3)).nodes("fading", round_index, np.arange(count))


def test_rayleigh_is_circular_gaussian_of_mean_power_one() -> None:
    gains = Rayleigh().draw(stream())
    assert_follows(np.abs(gains), stats.rayleigh(scale=np.sqrt(0.5)).cdf)
    assert_follows(np.angle(gains), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert_variance_gaussian(gains.real, 0.5)
    assert_variance_gaussian(gains.imag, 0.5)
    assert_uncorrelated(gains.real, gains.imag)
    assert_mean(np.abs(gains) ** 2, 1.0, std=1.0)


def test_rayleigh_blocks_are_independent_from_round_to_round() -> None:
    first, second = (Rayleigh().draw(stream(round_index=m)) for m in (4, 5))
    assert_uncorrelated(first.real, second.real)
    assert_uncorrelated(first.real, second.imag)
    assert_uncorrelated(np.abs(first), np.abs(second))


def test_static_is_one() -> None:
    np.testing.assert_array_equal(Static().draw(stream(5)), np.ones(5))


@pytest.mark.parametrize("model", [Rayleigh(), Static(), Rician(2.0), Nakagami(0.7)])
def test_a_gain_does_not_depend_on_who_else_is_active(model: FadingModel) -> None:
    everyone = model.draw(Streams(9).nodes("fading", 1, np.arange(10)))
    some = model.draw(Streams(9).nodes("fading", 1, np.array([7, 2])))
    np.testing.assert_array_equal(some, everyone[[7, 2]])


def power_law(model: FadingModel) -> Callable[[np.ndarray], np.ndarray]:
    """The distribution of |h|², written with scipy's laws."""
    match model:
        case Rician(k):
            return lambda power: stats.ncx2.cdf(2 * (k + 1) * power, 2, 2 * k)
        case Nakagami(m):
            return stats.gamma(m, scale=1 / m).cdf  # type: ignore[no-any-return]
    raise AssertionError


def power_std(model: FadingModel) -> float:
    """The standard deviation of |h|²."""
    match model:
        case Rician(k):
            return float(np.sqrt(2 * k + 1) / (k + 1))
        case Nakagami(m):
            return float(1 / np.sqrt(m))
    raise AssertionError


@pytest.mark.parametrize("model", [Rician(0.3), Rician(8.0), Nakagami(0.5), Nakagami(2.5), Nakagami(40.0)])
def test_power_and_phase_follow_the_named_law(model: FadingModel) -> None:
    gains = model.draw(stream())
    power = np.abs(gains) ** 2
    assert_follows(power, power_law(model))
    assert_follows(np.angle(gains), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert_mean(power, 1.0, std=power_std(model))


@pytest.mark.parametrize("model", [Rician(0.0), Nakagami(1.0)])
def test_the_limits_are_rayleigh_gain_by_gain(model: FadingModel) -> None:
    np.testing.assert_allclose(model.draw(stream(1000)), Rayleigh().draw(stream(1000)), rtol=1e-12)


def test_a_strong_line_of_sight_stops_fading() -> None:
    np.testing.assert_allclose(np.abs(Rician(1e12).draw(stream(100))), 1.0, rtol=1e-5)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_rician_factors_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="rician_k"):
        Rician(bad)


@pytest.mark.parametrize("bad", [0.49, np.nan, np.inf])
def test_bad_nakagami_shapes_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="nakagami_m"):
        Nakagami(bad)


def test_recorded_gains_are_looked_up_by_round_and_node() -> None:
    recorded = Recorded((np.arange(6).reshape(2, 3) * (1 + 1j)).astype(np.complex128))
    streams = Streams(0)
    np.testing.assert_array_equal(recorded.draw(streams.nodes("fading", 1, np.array([2, 0]))), [5 + 5j, 3 + 3j])
    with pytest.raises(ValueError, match="2 rounds of 3 nodes"):
        recorded.draw(streams.nodes("fading", 2, np.array([0])))
    with pytest.raises(ValueError, match="2 rounds of 3 nodes"):
        recorded.draw(streams.nodes("fading", 0, np.array([3])))


def test_a_gap_in_the_recording_is_an_error() -> None:
    recorded = Recorded(np.array([[1.0, np.nan + 0j]]))
    with pytest.raises(ValueError, match="node 1 in round 0"):
        recorded.draw(Streams(0).nodes("fading", 0, np.array([0, 1])))
