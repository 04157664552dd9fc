"""Line of sight and shadowing of nodes on the move, against TR 38.901's probabilities and correlation distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.statistics import assert_mean, assert_probability, assert_uncorrelated, shifted
from wirelessfl.radio import LogDistance, Tr38901, tr38901_los_probability
from wirelessfl.radio.propagation import DistanceGain, Draws, Moment, Motion
from wirelessfl.streams import Streams

COUNT = 20_000
NODES = np.arange(COUNT)


@dataclass(frozen=True)
class Circling:
    """Nodes that go round the base station at 1 m/s on a circle, on which every distance is the same."""

    radius: float
    moves: bool = True

    def positions(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        angle = moment.time_s / self.radius + nodes
        return np.asarray(self.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))

    def motion(self, nodes: NDArray[np.int64], moment: Moment) -> Motion:
        return Motion(self.positions(nodes, moment), np.full(len(nodes), moment.time_s), np.ones(len(nodes)))

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full((len(nodes), 2), np.nan)


def draws(seed: int, kind: str = "") -> Draws:
    return Draws(Streams(shifted(seed)), kind)


def standard(scenario: str) -> Tr38901:
    return Tr38901(scenario, 3.5e9, {"uma": 25.0, "umi": 10.0, "inh": 3.0}[scenario], 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scenario", "distance", "probability"), [("uma", 100.0, 0.348), ("umi", 80.0, 0.309), ("inh", 6.0, 0.360)]
)
def test_who_moves_sees_the_base_station_as_often_as_the_standard_says(
    scenario: str, distance: float, probability: float
) -> None:
    """Where a link's state decided when it was drawn again, the shares were 0.284, 0.257 and 0.496."""
    model = standard(scenario)
    source = DistanceGain(Circling(distance), model, 1.0, draws(311))
    expected = float(model.line_of_sight_probability(np.array([distance]))[0])
    assert expected == pytest.approx(probability, abs=5e-4)
    for step in range(25):
        seen = source.gains(NODES, Moment(step + 1, 11.0 * step)).line_of_sight
        if step in (0, 3, 24):
            assert_probability(int(seen.sum()), COUNT, expected)


@pytest.mark.parametrize(("model", "far"), [(standard("uma"), 50.0), (standard("umi"), 10.0)], ids=["uma", "umi"])
def test_the_shadowing_of_who_moves_is_exponentially_correlated(model: Tr38901, far: float) -> None:
    """UMa at 50 m: e^{−50/37} = 0.26 in sight, e^{−50/50} = 0.37 without; UMi at 10 m: 0.37 and 0.46."""
    source = DistanceGain(Circling(100.0), model, 1.0, draws(312))
    at, found = (0.0, 0.3 * far, 0.5 * far, far), {}
    for step, time in enumerate(at):
        gains = source.gains(NODES, Moment(step + 1, time))
        seen = gains.line_of_sight
        shadowing = -10 * np.log10(gains.path_gain) - model.loss_db(np.full(COUNT, 100.0), seen)
        found[time] = (seen, shadowing / model.shadowing_std_db(seen))
    for early, late in ((at[0], at[3]), (at[1], at[2]), (at[0], at[1])):
        (seen_before, before), (seen_after, after) = found[early], found[late]
        for in_sight in (True, False):
            both = (seen_before == in_sight) & (seen_after == in_sight)
            rho = float(np.exp(-(late - early) / model.decorrelation_distance(np.array([in_sight]))[0]))
            assert both.sum() > 2000
            assert_mean(before[both] * after[both], rho, std=float(np.sqrt(1 + rho**2)))


def test_the_line_of_sight_is_correlated_over_50_metres_and_independent_of_the_shadowing() -> None:
    """P(both) of a bivariate normal of correlation e^{−Δd/50} (UMa), against its own draws."""
    probability, way = float(tr38901_los_probability("uma", np.array([100.0]), 1.5)[0]), 20.0
    source = DistanceGain(Circling(100.0), standard("uma"), 1.0, draws(313))
    first, second = (source.gains(NODES, Moment(k + 1, k * way)) for k in range(2))
    both = int((first.line_of_sight & second.line_of_sight).sum())
    generator, rho = np.random.default_rng(shifted(314)), np.exp(-way / 50.0)
    one, other = generator.standard_normal((2, 2_000_000))
    threshold = np.quantile(one, probability)
    expected = float(np.mean((one < threshold) & (rho * one + np.sqrt(1 - rho**2) * other < threshold)))
    assert_probability(both, COUNT, expected, false_alarm=1e-5)
    shadowing = -10 * np.log10(second.path_gain)
    loss = standard("uma").loss_db(np.full(COUNT, 100.0), second.line_of_sight)
    normalised = (shadowing - loss) / np.where(second.line_of_sight, 4.0, 6.0)
    assert_uncorrelated(second.line_of_sight.astype(np.float64), normalised)


def test_the_way_counts_and_not_where_it_leads() -> None:
    """Once round the circle: back at the start, and nothing is left of the shadowing after 12 correlation distances."""
    law = LogDistance(2e9, 3.0, 10.0, shadowing=8.0, decorrelation=50.0)
    source = DistanceGain(Circling(100.0), law, 1.0, draws(315))
    first, last = (np.log10(source.gains(NODES, Moment(k + 1, k * 200 * np.pi)).path_gain) for k in range(2))
    assert_uncorrelated(first, last)


def test_how_often_a_node_is_asked_does_not_change_the_law() -> None:
    law = LogDistance(2e9, 3.0, 10.0, shadowing=1.0, decorrelation=50.0)
    source = DistanceGain(Circling(100.0), law, 1.0, draws(316))

    def shadowing(nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        return -10 * np.log10(source.gains(nodes, moment).path_gain) - law.loss_db(
            np.full(len(nodes), 100.0), nodes >= 0
        )

    first = shadowing(NODES, Moment(1, 0.0))
    for step in range(1, 20):
        # Several times in one round, as uploads that follow each other ask.
        shadowing(NODES[::2], Moment(1, float(step)))
    last = shadowing(NODES, Moment(2, 20.0))
    rho = float(np.exp(-20 / 50))
    for some in (slice(None, None, 2), slice(1, None, 2)):
        assert_mean(first[some] * last[some], rho, std=float(np.sqrt(1 + rho**2)))
    np.testing.assert_array_equal(shadowing(NODES, Moment(2, 20.0)), last)


def test_each_base_station_has_fields_of_its_own() -> None:
    law, place = LogDistance(2e9, 3.0, 10.0, shadowing=8.0, decorrelation=50.0), Circling(100.0)
    sources = [DistanceGain(place, law, 1.0, draws(317, kind)) for kind in ("", "site1_")]
    for moment in (Moment(1, 0.0), Moment(2, 30.0)):
        first, second = (np.log10(source.gains(NODES, moment).path_gain) for source in sources)
        assert_uncorrelated(first, second)
