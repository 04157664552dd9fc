"""Random waypoint: legs, speeds, pauses, and the density it settles to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from tests.statistics import assert_follows, assert_mean, shifted
from wirelessfl.radio.placement import Journey, RandomWaypoint
from wirelessfl.streams import NodeStream, Streams

COUNT = 20_000
WALK = RandomWaypoint(radius=100.0, min_speed=2.0, max_speed=2.0)


def stream(round_index: int = 0, count: int = COUNT) -> NodeStream:
    return Streams(shifted(71)).nodes("mobility", round_index, np.arange(count))


def setting_out(target: np.ndarray) -> Journey:
    """One node on its way from the middle at 2 m/s."""
    return Journey(np.zeros((1, 2)), target, np.array([2.0]), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64))


def moved(first: Journey, second: Journey) -> np.ndarray:
    return np.asarray(np.linalg.norm(second.position - first.position, axis=1))


def test_the_mean_leg_between_two_uniform_points_is_known() -> None:
    """128 R/(45π), the mean distance in a disc; its mean square is R²."""
    journey = WALK.start(stream())
    leg = np.linalg.norm(journey.target - journey.position, axis=1)
    mean = 128 * 100.0 / (45 * np.pi)
    assert_mean(leg, mean, std=float(np.sqrt(100.0**2 - mean**2)))


def test_on_a_leg_a_node_moves_straight_at_its_speed() -> None:
    journey = WALK.start(stream())
    later = WALK.advance(journey, np.full(COUNT, 0.5), stream(1))
    same_leg = np.all(later.target == journey.target, axis=1)
    assert same_leg.mean() > 0.9
    np.testing.assert_allclose(moved(journey, later)[same_leg], 1.0)
    way = (journey.target - journey.position)[same_leg]
    step = (later.position - journey.position)[same_leg]
    np.testing.assert_allclose(way[:, 0] * step[:, 1], way[:, 1] * step[:, 0], atol=1e-9)


def test_nobody_is_faster_than_allowed_or_leaves_the_disc() -> None:
    walk = RandomWaypoint(100.0, 1.0, 30.0, pause_s=3.0)
    journey = walk.start(stream())
    for round_index, elapsed in enumerate((0.0, 1.0, 200.0, 0.1, 37.0), start=1):
        later = walk.advance(journey, np.full(COUNT, elapsed), stream(round_index))
        assert np.all(moved(journey, later) <= 30.0 * elapsed + 1e-9)
        assert np.all(np.hypot(*later.position.T) <= 100.0 + 1e-9)
        assert np.all((later.speed >= 1.0) & (later.speed <= 30.0))
        journey = later


def test_no_time_no_move() -> None:
    journey = WALK.start(stream())
    still = WALK.advance(journey, np.zeros(COUNT), stream(1))
    np.testing.assert_array_equal(still.position, journey.position)
    np.testing.assert_array_equal(still.target, journey.target)


def test_a_node_waits_at_its_waypoint() -> None:
    walk = replace(WALK, pause_s=10.0)
    start = setting_out(np.array([[6.0, 8.0]]))
    arrived = walk.advance(start, np.array([5.0]), stream(1, 1))
    np.testing.assert_allclose(arrived.position, [[6.0, 8.0]])
    waiting = walk.advance(start, np.array([12.0]), stream(1, 1))
    np.testing.assert_allclose(waiting.position, [[6.0, 8.0]])
    assert waiting.pause[0] == pytest.approx(3.0)
    assert waiting.velocity[0].tolist() == [0.0, 0.0] and waiting.travelled[0] == pytest.approx(10.0)
    gone = walk.advance(start, np.array([15.5]), stream(1, 1))
    assert moved(waiting, gone)[0] == pytest.approx(1.0)
    assert np.hypot(*gone.velocity[0]) == pytest.approx(2.0) and gone.travelled[0] == pytest.approx(11.0)


def test_a_waypoint_under_its_own_feet_is_reached_at_once() -> None:
    here = setting_out(np.zeros((1, 2)))
    np.testing.assert_array_equal(WALK.advance(here, np.zeros(1), stream(1, 1)).position, [[0.0, 0.0]])


def test_a_way_does_not_depend_on_how_often_it_is_asked_for() -> None:
    """Over many legs and pauses; the length of the way is that of its legs, however it is cut."""
    walk, journey = RandomWaypoint(100.0, 1.0, 30.0, pause_s=3.0), WALK.start(stream())
    once = walk.advance(journey, np.full(COUNT, 90.0), stream())
    for elapsed in np.full(36, 2.5):
        step = walk.advance(journey, np.full(COUNT, elapsed), stream())
        assert np.all(step.travelled - journey.travelled >= moved(journey, step) - 1e-9)
        journey = step
    for name, values in vars(once).items():
        np.testing.assert_allclose(vars(journey)[name], values, atol=1e-7, err_msg=name)
    assert once.legs.mean() > 3 and np.all(once.travelled <= 30.0 * 90.0)


def test_a_node_walks_the_same_way_whoever_else_is_there() -> None:
    elapsed = np.full(COUNT, 500.0)
    everyone = WALK.advance(WALK.start(stream()), elapsed, stream(1))
    nodes = np.array([17, 3, 911])
    streams = Streams(shifted(71))
    start = WALK.start(streams.nodes("mobility", 0, nodes))
    some = WALK.advance(start, elapsed[:3], streams.nodes("mobility", 1, nodes))
    np.testing.assert_array_equal(some.position, everyone.position[nodes])


def stationary_density(radius: float) -> float:
    """Density over the area of the unit disc, constant speed and no pause (Hyytiä, Lassila, Virtamo 2006)."""
    chords = integrate.quad(lambda angle: np.sqrt(1 - (radius * np.cos(angle)) ** 2), 0, np.pi)[0]
    return float(45 * (1 - radius**2) / (64 * np.pi) * chords)


def test_the_density_settles_to_the_known_one() -> None:
    """After 40 mean legs each node is a sample of the stationary law, which crowds to the middle."""
    grid = np.linspace(0, 1, 401)
    weighted = np.array([2 * np.pi * r * stationary_density(r) for r in grid])
    cumulative = integrate.cumulative_simpson(weighted, x=grid, initial=0)
    assert cumulative[-1] == pytest.approx(1.0, abs=1e-4)
    journey = WALK.advance(WALK.start(stream()), np.full(COUNT, 40 * 90.5 / 2.0), stream(1))
    radius = np.hypot(*journey.position.T) / 100.0
    assert_follows(radius, lambda r: np.interp(r, grid, cumulative))


@pytest.mark.parametrize(
    "arguments", [(0.0, 1.0, 2.0, 0.0), (1.0, 0.0, 2.0, 0.0), (1.0, 2.0, 1.0, 0.0), (1.0, 1.0, 2.0, -1.0)]
)
def test_bad_settings_are_refused(arguments: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"radius|speed|pause"):
        RandomWaypoint(*arguments)


@pytest.mark.parametrize("elapsed", [-1.0, np.inf, np.nan])
def test_bad_times_are_refused(elapsed: float) -> None:
    with pytest.raises(ValueError, match="elapsed"):
        WALK.advance(WALK.start(stream(0, 1)), np.array([elapsed]), stream(1, 1))
