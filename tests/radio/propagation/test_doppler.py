"""Doppler shifts: given ones, those of a node's own speed, and those of the direct ray."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from tests.statistics import assert_mean, shifted
from wirelessfl.radio import GivenPositions, LogDistance, RandomWaypoint, Rician, Tr38901
from wirelessfl.radio.propagation import (
    ClarkeFading,
    DirectRay,
    Draws,
    GaussMarkovFading,
    GivenDoppler,
    Moment,
    Motion,
    MotionDoppler,
    Standing,
    Walking,
)
from wirelessfl.streams import Streams

COUNT = 20_000
NODES = np.arange(COUNT)
BLIND = np.zeros(COUNT, dtype=np.bool_)
DRAWS = Draws(Streams(shifted(321)))
LAW = LogDistance(3e9, 3.0, 100.0)
SITE = (0.0, 0.0)


@dataclass(frozen=True)
class Driving:
    """Node i drives outwards along x at i mod 3 metres a second, from 50 m."""

    moves: bool = True

    def motion(self, nodes: NDArray[np.int64], moment: Moment) -> Motion:
        speed = (nodes % 3).astype(np.float64)
        way = speed * moment.time_s
        across = np.zeros(len(nodes))
        return Motion(np.stack([50.0 + way, across], axis=1), way, np.stack([speed, across], axis=1))

    def positions(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        return self.motion(nodes, moment).position

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full((len(nodes), 2), np.nan)


MOVING = MotionDoppler(Driving(), LAW, SITE)


def products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.asarray((first.conj() * second).real)


def test_the_shift_is_the_speed_over_the_wavelength() -> None:
    np.testing.assert_allclose(MOVING.shift_hz(NODES[:3], Moment(1, 2.0)), [0.0, 10.007, 20.014], rtol=1e-4)
    np.testing.assert_allclose(MOVING.cycles(NODES[:3], Moment(1, 2.0)), [0.0, 20.014, 40.028], rtol=1e-4)


def test_each_node_fades_as_fast_as_it_drives_and_who_rests_not_at_all() -> None:
    fading = ClarkeFading(DirectRay(Rician(0.0), None, MOVING, DRAWS), MOVING, DRAWS)
    first, second = (fading.gains(NODES, BLIND, Moment(1, time)) for time in (3.0, 3.02))
    np.testing.assert_array_equal(first[::3], second[::3])
    for speed in (1, 2):
        rho = float(special.j0(2 * np.pi * speed / LAW.wavelength * 0.02))
        assert_mean(products(first[speed::3], second[speed::3]), rho, std=float(np.sqrt((1 + rho**2) / 2)))


def test_the_recursion_takes_each_node_s_own_shift() -> None:
    fading = GaussMarkovFading(DirectRay(Rician(0.0), None, MOVING, DRAWS), MOVING, DRAWS, 0.02)
    first, second = (fading.gains(NODES, BLIND, Moment(m, 0.02 * m)) for m in (1, 2))
    np.testing.assert_allclose(first[::3], second[::3], atol=1e-12)
    for speed in (1, 2):
        rho = float(special.j0(2 * np.pi * speed / LAW.wavelength * 0.02))
        assert_mean(products(first[speed::3], second[speed::3]), rho, std=float(np.sqrt((1 + rho**2) / 2)))


def test_parked_cars_do_not_fade() -> None:
    walking = Walking(RandomWaypoint(50.0, 8.0, 14.0, pause_s=4.0), DRAWS)
    doppler = MotionDoppler(walking, Tr38901("uma", 8e8, 25.0, 1.5), SITE)
    fading = ClarkeFading(DirectRay(Rician(0.0), Rician(8.0), doppler, DRAWS), doppler, DRAWS)
    nodes, seen = NODES[:500], NODES[:500] % 2 == 0
    found = []
    for time in (20.0, 20.1, 20.2):
        parked = walking.motion(nodes, Moment(1, time)).speed == 0
        found.append((parked, fading.gains(nodes, seen, Moment(1, time))))
    still = found[0][0] & found[2][0]
    assert 50 < still.sum() < 450
    np.testing.assert_array_equal(found[0][1][still], found[2][1][still])
    driving = ~found[0][0] & ~found[2][0]
    assert np.abs(found[0][1] - found[1][1])[driving].mean() > 0.3


def ray(doppler: GivenDoppler | MotionDoppler) -> ClarkeFading:
    return ClarkeFading(DirectRay(Rician(1e12), None, doppler, DRAWS), doppler, DRAWS)


def test_the_direct_ray_of_a_node_that_drives_away_lags_by_its_length() -> None:
    fading, nodes = ray(MOVING), NODES[:30]
    first, second = (fading.gains(nodes, BLIND[:30], Moment(1, time)) for time in (0.0, 0.013))
    expected = np.exp(-2j * np.pi * (nodes % 3) * 0.013 / LAW.wavelength)
    np.testing.assert_allclose(second / first, expected, atol=1e-5)


def test_the_ray_is_as_long_as_the_antennas_are_apart() -> None:
    model = Tr38901("uma", 3e9, 25.0, 1.5)
    doppler = MotionDoppler(Driving(), model, (50.0, 100.0))
    lengths = -doppler.ray_cycles(NODES[1:2], Moment(1, 40.0)) * model.wavelength
    assert lengths[0] == pytest.approx(np.sqrt(40.0**2 + 100.0**2 + 23.5**2))


def test_a_given_shift_turns_the_ray_by_its_direction() -> None:
    """Over uniform directions the ray's autocorrelation is J0(2π f_D τ) as well; each ray turns at its own rate."""
    fading = ray(GivenDoppler(10.0, False, DRAWS))
    first, second, third = (fading.gains(NODES, BLIND, Moment(1, time)) for time in (0.0, 0.02, 0.04))
    rho = float(special.j0(2 * np.pi * 10.0 * 0.02))
    assert_mean(products(first, second), rho, std=1.0)
    np.testing.assert_allclose(second / first, third / second, atol=1e-4)
    assert np.abs(np.angle(second / first)).max() <= 2 * np.pi * 10.0 * 0.02 + 1e-4


@pytest.mark.parametrize(
    "doppler",
    [
        GivenDoppler(10.0, True, DRAWS),
        MotionDoppler(Standing(GivenPositions(((30.0, 40.0),) * COUNT), DRAWS), LAW, SITE),
    ],
    ids=["given", "own"],
)
def test_the_ray_of_a_node_at_rest_keeps_its_phase(doppler: GivenDoppler | MotionDoppler) -> None:
    fading = ray(doppler)
    first, second = (fading.gains(NODES[:50], BLIND[:50], Moment(m, 0.7 * m)) for m in (1, 2))
    np.testing.assert_allclose(first, second, atol=1e-4)
    assert np.std(np.angle(first)) > 1


def test_the_shift_of_the_direct_ray_is_the_rate_of_its_turns() -> None:
    """Along the way of walkers, and for a given shift: the difference quotient of the phase."""
    nodes = np.arange(3)
    for doppler in (MotionDoppler(Driving(), LAW, (0.0, 20.0)), GivenDoppler(7.0, False, DRAWS)):
        later = doppler.ray_cycles(nodes, Moment(1, 2.0 + 1e-6)) - doppler.ray_cycles(nodes, Moment(1, 2.0))
        np.testing.assert_allclose(doppler.ray_shift_hz(nodes, Moment(1, 2.0)), later / 1e-6, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", [LAW, Tr38901("uma", 3.5e9, 25.0, 1.5)])
def test_a_node_at_the_site_neither_approaches_nor_recedes(model: LogDistance | Tr38901) -> None:
    doppler = MotionDoppler(Standing(GivenPositions(((0.0, 0.0),)), DRAWS), model, (0.0, 0.0))
    assert doppler.ray_shift_hz(np.arange(1), Moment(1, 0.0)).tolist() == [0.0]
