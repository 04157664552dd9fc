"""Arrays in rounds in which nobody sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.radio.propagation.array import ArrayGeometry, ExponentialCorrelation, OneRing
from wirelessfl.trace import Status

NOBODY = {"rounds": 2, "faults__availability": {"model": "bernoulli", "p": 0.0}}
RING = {"model": "one_ring"}
MEDIAN = {"training__robust": {"rule": "median"}}
AIR: dict[str, Any] = {"kind": "over_the_air", "receiver": {"antennas": 3, "combiner": "max_min", "correlation": RING}}
UPLINKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sum of all": (AIR, {}),
    "a direct path": (AIR, {"channel__fading": {"model": "rician", "k_db": 3.0}}),
    "a jammer": ({**AIR, "jammer": {"epsilon": 2.0, "antennas": 2}}, {}),
    "groups": ({**AIR, "slot_groups": 2}, MEDIAN),
    "digital": ({"kind": "digital", "receiver": {"antennas": 3, "combiner": "zf", "correlation": RING}}, {}),
}


@pytest.mark.parametrize("name", UPLINKS)
def test_the_model_stays_where_nobody_is_there(name: str) -> None:
    uplink, changes = UPLINKS[name]
    scenario = small(**NOBODY, uplink=uplink, **changes)
    start = build_simulation(scenario, PLAN).state.parameters.copy()
    simulation, rounds, _ = run(scenario)
    assert [this.status for this in (each.round for each in rounds) if (this.status != Status.UNAVAILABLE).any()] == []
    np.testing.assert_array_equal(simulation.state.parameters, start)


@pytest.mark.parametrize("correlation", [OneRing(10.0), ExponentialCorrelation(0.5)], ids=["ring", "exponential"])
@pytest.mark.parametrize("antennas", [2, 200])
def test_no_links_have_no_correlations(correlation: Any, antennas: int) -> None:
    root = correlation.root(ArrayGeometry(1, antennas, 0.5), np.zeros(0))
    assert (np.zeros((0, 4, antennas)) @ root).shape == (0, 4, antennas)
