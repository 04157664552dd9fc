"""Small-scale fading over rounds and time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, special, stats

from tests.speed import rest_slow
from tests.statistics import assert_follows, assert_mean, shifted
from wirelessfl.errors import DataError
from wirelessfl.radio import Rayleigh, Recorded, Rician
from wirelessfl.radio.propagation import (
    BlockFading,
    ClarkeFading,
    DirectRay,
    Draws,
    Fading,
    GaussMarkovFading,
    GivenDoppler,
    Moment,
)
from wirelessfl.streams import Streams

COUNT = 40_000
NODES = np.arange(COUNT)
BLIND = np.zeros(COUNT, dtype=np.bool_)
SEEN = ~BLIND
DRAWS = Draws(Streams(shifted(91)))
FIVE_HERTZ = GivenDoppler(5.0, False, DRAWS)
SCATTERED = DirectRay(Rician(0.0), None, FIVE_HERTZ, DRAWS)
K = 4.0


def recursion(ray: DirectRay = SCATTERED, rho: float = 0.6) -> GaussMarkovFading:
    """With J0(2π f_D T) = ρ at 5 Hz."""
    interval = optimize.brentq(lambda t: special.j0(2 * np.pi * 5.0 * t) - rho, 0.0, 0.1)
    return GaussMarkovFading(ray, FIVE_HERTZ, DRAWS, interval)


def fadings(ray: DirectRay = SCATTERED) -> list[Fading]:
    block = BlockFading(Rayleigh() if ray.law == Rician(0.0) else ray.law, ray.in_sight, DRAWS)
    return [block, recursion(ray), ClarkeFading(ray, FIVE_HERTZ, DRAWS)]


def correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Samples whose mean is the real part of E h₁* h₂, of variance at most 1 for CN(0, 1) gains."""
    return np.asarray((first.conj() * second).real)


@pytest.mark.slow
@pytest.mark.parametrize("fading", fadings(), ids=lambda fading: type(fading).__name__)
def test_at_any_moment_scattered_gains_are_rayleigh(fading: Fading) -> None:
    for moment in (Moment(1, 0.3), Moment(2, 0.9), Moment(7, 4.0)):
        gains = fading.gains(NODES, BLIND, moment)
        assert_follows(np.abs(gains) ** 2, stats.expon.cdf)
        np.testing.assert_array_equal(fading.gains(NODES, BLIND, moment), gains)


@pytest.mark.parametrize(
    "fading", fadings(DirectRay(Rician(0.0), Rician(K), FIVE_HERTZ, DRAWS)), ids=lambda f: type(f).__name__
)
def test_line_of_sight_selects_rician(fading: Fading) -> None:
    seen = NODES % 2 == 0
    power = np.abs(fading.gains(NODES, seen, Moment(1, 0.1))) ** 2
    # |h|² of a Rician gain is noncentral chi-square over 2(K + 1), with 2 degrees of freedom and noncentrality 2K.
    assert_follows(power[seen], stats.ncx2(2, 2 * K, scale=1 / (2 * (K + 1))).cdf)
    assert_follows(power[~seen], stats.expon.cdf)
    assert fading.law_of(True) == Rician(K) and fading.law_of(False) == Rayleigh()


def test_gauss_markov_correlates_as_stated_also_over_rounds_left_out() -> None:
    rho = 0.6
    fading = recursion(rho=rho)
    first = fading.gains(NODES, BLIND, Moment(1, 0.0))
    second = fading.gains(NODES, BLIND, Moment(2, 0.0))
    fifth = fading.gains(NODES, BLIND, Moment(5, 0.0))
    assert_mean(correlation(first, second), rho, 1.0)
    assert_mean(correlation(second, fifth), rho**3, 1.0)
    assert_mean(correlation(first, fifth), rho**4, 1.0)


def test_gauss_markov_correlates_as_the_time_between_two_uses() -> None:
    """J0 of each gap, of whatever length, within a round or from one to another; the product over two of them."""
    fading = GaussMarkovFading(SCATTERED, FIVE_HERTZ, DRAWS, None)
    moments = (Moment(1, 0.01), Moment(1, 0.04, 1), Moment(1, 0.09, 2), Moment(2, 0.1), Moment(5, 0.21))
    gains = [fading.gains(NODES, BLIND, moment) for moment in moments]
    rho = [float(special.j0(2 * np.pi * 5.0 * (later.time_s - before.time_s))) for before, later in pairwise(moments)]
    for (before, after), expected in zip(pairwise(gains), rho, strict=True):
        assert_mean(correlation(before, after), expected, 1.0)
        assert_follows(np.abs(after) ** 2, stats.expon.cdf)
    assert_mean(correlation(gains[0], gains[2]), rho[0] * rho[1], 1.0)
    np.testing.assert_array_equal(fading.gains(NODES, BLIND, Moment(6, 0.21)), gains[-1])


def test_each_node_has_a_time_of_its_own() -> None:
    times = np.linspace(0.3, 0.305, 50)
    markov = (
        GaussMarkovFading(SCATTERED, FIVE_HERTZ, DRAWS, None),
        GaussMarkovFading(SCATTERED, FIVE_HERTZ, DRAWS, None),
    )
    clarke = (fadings()[2], fadings()[2])
    for together, alone in (markov, clarke):
        for shift in (0.0, 0.02):
            gains = together.gains(NODES[:50], BLIND[:50], Moment(1, times + shift))
            one = alone.gains(NODES[7:8], BLIND[:1], Moment(1, float(times[7] + shift)))
            np.testing.assert_array_equal(one, gains[7:8])


def test_gauss_markov_does_not_depend_on_who_else_is_active() -> None:
    together, alone = recursion(), recursion()
    for round_index in (1, 2, 6):
        everyone = together.gains(NODES[:9], BLIND[:9], Moment(round_index, 0.0))
        np.testing.assert_array_equal(alone.gains(NODES[4:5], BLIND[4:5], Moment(round_index, 0.0)), everyone[4:5])


@pytest.mark.parametrize("lag", rest_slow([0.01, 0.05, 0.0765, 0.2, 0.5], fast=2))
def test_clarke_is_bessel_at_the_slots_times(lag: float) -> None:
    fading = ClarkeFading(SCATTERED, FIVE_HERTZ, DRAWS)
    first, second = (fading.gains(NODES, BLIND, Moment(1, time)) for time in (2.0, 2.0 + lag))
    assert_mean(correlation(first, second), float(special.j0(2 * np.pi * 5.0 * lag)), 1.0)


def test_clarke_does_not_mind_rounds() -> None:
    fading = ClarkeFading(SCATTERED, FIVE_HERTZ, DRAWS)
    np.testing.assert_array_equal(
        fading.gains(NODES[:5], BLIND[:5], Moment(1, 2.0)), fading.gains(NODES[:5], BLIND[:5], Moment(8, 2.0))
    )


def test_a_recording_that_lacks_a_gain_is_a_fault_of_the_data() -> None:
    law = Recorded(np.full((3, 2), np.nan + 0j))
    fading = BlockFading(law, None, DRAWS)
    with pytest.raises(DataError, match=r"channel\.fading: the recording holds no gain for node 1 in round 2"):
        fading.gains(np.array([1]), BLIND[:1], Moment(2, 0.0))
