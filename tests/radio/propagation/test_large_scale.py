"""Places, ways, path gains and line of sight over time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistics import assert_probability, assert_variance_gaussian, shifted
from wirelessfl.errors import ModelWarning
from wirelessfl.radio import (
    GivenPositions,
    LogDistance,
    RandomWaypoint,
    Tr38901,
    UniformDisc,
    path_gain,
    tr38901_los_probability,
)
from wirelessfl.radio.propagation import DistanceGain, Draws, Moment, Standing, UnitGain, Walking
from wirelessfl.streams import Streams

DRAWS = Draws(Streams(shifted(81)))
NODES = np.arange(40_000)
UMA = Tr38901("uma", 3.5e9, 25.0, 1.5)
WALK = RandomWaypoint(radius=300.0, min_speed=2.0, max_speed=10.0)
START = Moment(1, 0.0)


def at(*distances: float) -> Standing:
    """Node i at the i-th distance."""
    return Standing(GivenPositions(tuple((d, 0.0) for d in distances)), DRAWS)


def test_without_path_loss_all_gains_are_one_and_nobody_is_anywhere() -> None:
    gains = UnitGain().gains(NODES[:3], START)
    assert gains.path_gain.tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(UnitGain().last_distances(NODES[:3])).all()


def test_the_gain_is_that_of_the_law_over_that_at_the_reference() -> None:
    law = LogDistance(2e9, 3.0, 100.0)
    reference = path_gain(law.loss_db(np.array([100.0]), np.ones(1, dtype=bool)))[0]
    source = DistanceGain(at(50.0, 100.0, 1000.0), law, reference, DRAWS)
    # Half the distance in free space: 4 times the gain; ten times the distance at exponent 3: a thousandth.
    np.testing.assert_allclose(source.gains(NODES[:3], START).path_gain, [4.0, 1.0, 1e-3])
    np.testing.assert_allclose(source.last_distances(NODES[:3]), [50.0, 100.0, 1000.0])
    watts = DistanceGain(at(50.0), law, 1.0, DRAWS).gains(NODES[:1], START).path_gain
    assert watts[0] == pytest.approx(4.0 * reference)


def test_distance_is_to_the_links_own_base_station() -> None:
    source = DistanceGain(at(30.0), LogDistance(2e9, 3.0, 10.0), 1.0, DRAWS, site=(0.0, 40.0))
    assert source.last_distances(NODES[:1])[0] == pytest.approx(50.0)


def test_sight_and_shadowing_follow_the_standard() -> None:
    standing = Standing(GivenPositions(((0.0, 150.0),) * len(NODES)), DRAWS)
    gains = DistanceGain(standing, UMA, 1.0, DRAWS).gains(NODES, START)
    seen = gains.line_of_sight
    assert_probability(int(seen.sum()), len(NODES), float(tr38901_los_probability("uma", np.array([150.0]), 1.5)[0]))
    shadowing = -10 * np.log10(gains.path_gain) - UMA.loss_db(np.full(len(NODES), 150.0), seen)
    assert_variance_gaussian(shadowing[seen], 4.0**2)
    assert_variance_gaussian(shadowing[~seen], 6.0**2)


def test_who_stands_still_keeps_his_surroundings_and_nothing_is_remembered() -> None:
    source = DistanceGain(Standing(UniformDisc(300.0, 20.0), DRAWS), UMA, 1.0, DRAWS)
    first, later = source.gains(NODES[:50], START), source.gains(NODES[:50], Moment(9, 1e4))
    np.testing.assert_array_equal(first.path_gain, later.path_gain)
    np.testing.assert_array_equal(source.gains(NODES[10:20], START).path_gain, first.path_gain[10:20])
    assert len(source.state()["nodes"]) == 0


def test_nobody_walks_faster_than_allowed_and_a_moment_asked_twice_is_one_place() -> None:
    walking, nodes = Walking(WALK, DRAWS), NODES[:500]
    before = walking.motion(nodes, Moment(1, 3.0)).position
    np.testing.assert_array_equal(walking.motion(nodes, Moment(1, 3.0)).position, before)
    for round_index, time in ((2, 4.0), (5, 50.0), (6, 51.5)):
        elapsed = time - {2: 3.0, 5: 4.0, 6: 50.0}[round_index]
        now = walking.motion(nodes, Moment(round_index, time)).position
        assert np.linalg.norm(now - before, axis=1).max() <= 10.0 * elapsed * (1 + 1e-9)
        assert np.linalg.norm(now, axis=1).max() <= 300.0 * (1 + 1e-9)
        before = now


def test_a_walk_does_not_depend_on_when_it_is_asked_for() -> None:
    seldom, often = Walking(WALK, DRAWS), Walking(WALK, DRAWS)
    for time in np.linspace(0.0, 200.0, 23):
        # Several times in a round, as uploads one after the other ask.
        often.motion(NODES[:200], Moment(1, float(time)))
    np.testing.assert_allclose(
        seldom.motion(NODES[:200], Moment(7, 200.0)).position,
        often.motion(NODES[:200], Moment(7, 200.0)).position,
        atol=1e-7,
    )


def test_a_walk_does_not_depend_on_who_else_is_asked() -> None:
    together, alone = Walking(WALK, DRAWS), Walking(WALK, DRAWS)
    for moment in (Moment(1, 2.0), Moment(4, 90.0)):
        everyone = together.motion(NODES[:20], moment).position
        np.testing.assert_array_equal(alone.motion(NODES[7:8], moment).position, everyone[7:8])


def test_outside_its_range_a_model_is_used_with_a_warning() -> None:
    with pytest.warns(ModelWarning, match=r"channel\.pathloss"):
        DistanceGain(at(100.0, 6000.0), UMA, 1.0, DRAWS).gains(NODES[:2], START)
