"""Gains of all antennas and paths in one draw: bit for bit those of every path drawn alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.radio import ChannelSource, Instants, Moment
from wirelessfl.radio.propagation import (
    AntennaGains,
    ImportedChannels,
    ImportedFading,
    ImportedGains,
    joint,
    joint_gains,
)
from wirelessfl.radio.propagation.fading import AT_START
from wirelessfl.radio.slot_schedule import AT_ONCE

NODES = np.array([0, 3, 4, 9, 11])
CLARKE = {"model": "clarke", "doppler_hz": 30.0}
MOVING = {
    "pathloss": {"model": "tr38901", "scenario": "umi", "carrier_hz": 3.5e9},
    "placement": {"scheme": "random_waypoint", "radius_m": 200.0, "max_speed": 20.0},
}
CHANNELS: dict[str, dict[str, Any]] = {
    "rayleigh": {},
    "rician": {"fading": {"model": "rician", "k_db": 3.0}},
    "nakagami": {"fading": {"model": "nakagami", "m": 2.0}},
    "clarke": {"correlation": CLARKE},
    "clarke, rician": {"correlation": CLARKE, "fading": {"model": "rician", "k_db": 3.0}},
    "delay line": {"fading": {"model": "tdl", "profile": "C", "groups": 8}},
    "delay line in sight": {"fading": {"model": "tdl", "profile": "D", "groups": 8}, "correlation": CLARKE},
    "line of sight by chance": {**MOVING},
    "moving": {**MOVING, "correlation": {"model": "clarke"}},
}


class OneByOne:
    """The gains at all antennas, each path with a draw of its own."""

    def __init__(self, antennas: tuple[AntennaGains, ...]) -> None:
        self._antennas = antennas

    def over(self, *link: Any) -> NDArray[np.complex128]:
        """(n, T, F, A) gains."""
        return np.stack([each.over(*link) for each in self._antennas], axis=3)

    def specular(self, *link: Any) -> NDArray[np.complex128]:
        """(n, T, F, A) known parts."""
        return np.stack([each.specular(*link) for each in self._antennas], axis=3)


def source(channel: Mapping[str, Any], antennas: int) -> ChannelSource:
    """Channels of the clients of a scenario to an array."""
    keys = {f"channel__{name}": value for name, value in channel.items()}
    nakagami = channel.get("fading", {}).get("model") == "nakagami"  # which has no part that could be correlated
    receiver: dict[str, Any] = {"combiner": "random", "antennas": antennas}
    if not nakagami:
        receiver["correlation"] = {"model": "exponential"}
    scenario = small(clients__count=12, uplink__receiver=receiver, **keys)
    return build_simulation(scenario, PLAN).deployment.network.clients


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=list(CHANNELS))
@pytest.mark.parametrize("at_once", [1, 1 << 14])
def test_the_numbers_of_every_path(channel: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the slot's beginning, at common times and at times of each node; however many links are drawn at once."""
    monkeypatch.setattr(joint, "_MOST_LINKS", at_once)
    links = source(channel, 3)
    together = joint_gains(links.antennas)
    assert together is not None
    apart = OneByOne(links.antennas)
    sight = np.array([True, False, True, True, False])
    for moment in (Moment(1, 0.0), Moment(2, 0.5 + 0.1 * np.arange(5.0)), Moment(3, 1.25)):
        links.large_scale.gains(NODES, moment)
        for offsets in (AT_START, np.array([0.0, 1e-3]), 1e-3 * np.arange(10.0).reshape(5, 2)):
            for ask in ("over", "specular"):
                found = getattr(together, ask)(NODES, sight, moment, offsets)
                expected = getattr(apart, ask)(NODES, sight, moment, offsets)
                np.testing.assert_array_equal(found, expected)
                assert found.strides == expected.strides  # sums over antennas round by the order in memory


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=list(CHANNELS))
@pytest.mark.parametrize("csi", [{}, {"error_std": 0.3, "estimator": "mmse"}])
def test_channels_and_estimates(channel: dict[str, Any], csi: dict[str, Any]) -> None:
    """All that a receiver learns, behind the correlation of its antennas, with frequency offsets and in pieces."""
    instants = Instants(np.zeros(1), np.array([0.0, 1e-3, 2e-3]))
    for slot in (AT_ONCE, instants):
        together = source({**channel, "csi": csi, "sync": {"cfo_hz": 20.0}}, 3)
        apart = source({**channel, "csi": csi, "sync": {"cfo_hz": 20.0}}, 3)
        vars(apart)["_joint"] = None
        found, expected = (vars(each.channels(NODES, Moment(2, 0.5), slot)) for each in (together, apart))
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_imported_gains_of_all_antennas(kind: type[np.complexfloating]) -> None:
    """Number by number from the file, at times of each node; the first antennas of more, and none that are mixed up."""
    drawn = np.random.default_rng(5).standard_normal((4, 12, 5, 3, 2)).view(np.complex128)[..., 0].astype(kind)
    channels = ImportedChannels(drawn, np.array([0.0, 1.0, 3.0, 4.0]), 0, True, "h.h5")
    fading = ImportedFading(channels)
    antennas = [ImportedGains(fading, number) for number in range(4)]
    together, sight = joint_gains(antennas), np.zeros(5, dtype=np.bool_)
    assert together is not None
    moment, offsets = Moment(2, np.array([0.0, 0.5, 1.0, 2.9, 3.5])), np.array([0.0, 0.2])
    found = together.over(NODES, sight, moment, offsets)
    holds = np.array([[0, 0], [0, 0], [1, 1], [1, 2], [2, 2]])
    for (n, t, f, a), gain in np.ndenumerate(found):
        scale = np.sqrt(np.mean(np.abs(drawn[:, NODES[n]].astype(np.complex128)) ** 2))
        assert gain == pytest.approx(
            drawn[holds[n, t], NODES[n], a, f] / scale, rel=1e-6 if kind is np.complex64 else 1e-12
        )
    apart = OneByOne(tuple(antennas))
    np.testing.assert_array_equal(found, apart.over(NODES, sight, moment, offsets))
    assert found.strides == apart.over(NODES, sight, moment, offsets).strides
    assert not together.specular(NODES, sight, moment, offsets).any()
    assert together.specular(NODES, sight, moment, offsets).shape == found.shape == (5, 2, 3, 4)
    assert joint_gains(antennas[1:]) is None and joint_gains(antennas[:1]) is not None


def test_fading_that_remembers_is_drawn_by_itself() -> None:
    """As is a single path, for which there is nothing to be saved."""
    remembers = source({"correlation": {"model": "gauss_markov", "doppler_hz": 1.0}}, 3)
    assert joint_gains(remembers.antennas) is None
    assert joint_gains(source({}, 1).antennas) is None


def test_paths_of_other_laws_are_not_mixed() -> None:
    antennas = source({}, 2).antennas[0], source(CHANNELS["rician"], 2).antennas[1]
    assert joint_gains(antennas) is None


def test_a_direct_ray_of_zero_leaves_no_trace() -> None:
    """What is scattered as it is, with any correlation: the plane wave is not even computed."""
    links, generator = source({}, 3), np.random.default_rng(3)
    scattered = generator.standard_normal((5, 2, 1, 3, 2)).view(np.complex128)[..., 0]
    assert links.array is not None
    found = links.array.received(scattered, np.zeros((5, 2, 1), dtype=np.complex128), NODES, Moment(1, 0.0))
    root = links.array.correlation.root(links.array.geometry, np.zeros(5))
    assert root is not None
    wave = 0.0 * links.array.geometry.steering(*links.array.directions(NODES, Moment(1, 0.0)))[:, None, None]
    np.testing.assert_array_equal(found, scattered @ root.swapaxes(-1, -2)[:, None] + wave)
