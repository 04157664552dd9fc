"""Every part that remembers: cut off after any round, saved, restored, it goes on to the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.resuming import bits, goes_on_to_the_same_bits, play
from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import SimulationState

MOVING = {"scheme": "random_waypoint", "radius_m": 200.0, "min_speed": 4e3, "max_speed": 9e3}
"""So fast that waypoints are reached between two of these short rounds."""
SELECTION = {"scheme": "uniform", "count": 3}
URBAN = {"model": "log_distance", "shadowing_db": 6.0, "decorrelation_m": 20.0, "carrier_hz": 1e6}
"""At a wavelength at which even such speeds are Doppler shifts of 30 Hz."""
JAMMER = {"epsilon": 1.0}

CELLS = {"rings": 1, "inter_site_distance_m": 150.0}
WALKING = {"channel__placement": MOVING, "channel__pathloss": URBAN}

STATEFUL: dict[str, Scenario] = {
    "hierarchical": small(
        topology={"kind": "hierarchical", "edge_rounds": 3, **CELLS},
        channel__correlation={"model": "gauss_markov"},
        **WALKING,
    ),
    "privacy_for_free in cells": small(
        topology={"kind": "multi_cell", **CELLS}, uplink__power_control={"policy": "privacy_for_free"}, **WALKING
    ),
    "gauss_markov": small(channel__correlation={"model": "gauss_markov", "doppler_hz": 10.0}, uplink__jammer=JAMMER),
    "gauss_markov on the move": small(channel__correlation={"model": "gauss_markov"}, **WALKING),
    "lines of sight on the move": small(
        channel__placement=MOVING,
        channel__pathloss={"model": "tr38901", "carrier_hz": 1e6},
        channel__correlation={"model": "clarke"},
        topology={"kind": "multi_cell", **CELLS},
    ),
    "random_waypoint": small(channel__placement=MOVING, channel__pathloss=URBAN, uplink__jammer=JAMMER),
    "clarke on the move": small(
        channel__placement=MOVING, channel__pathloss=URBAN, channel__correlation={"model": "clarke"}
    ),
    "uploads in time": small(
        uplink={"kind": "digital", "access": "tdma"},
        channel__correlation={"model": "gauss_markov", "doppler_hz": 10.0},
        channel__csi={"error_std": 0.1, "refresh": "piece"},
        timing__deadline_s=0.1,
        **WALKING,
    ),
    "messages in time": small(
        channel__csi={"refresh": "piece"},
        uplink={"kind": "secure_aggregation"},
        channel__correlation={"model": "gauss_markov"},
        **WALKING,
    ),
    "work in flight in time": small(
        channel__csi={"refresh": "piece"},
        training__algorithm={"name": "fedavg"},
        aggregation={"mode": "asynchronous", "buffer": 2},
        uplink={"kind": "digital"},
        channel__correlation={"model": "gauss_markov", "doppler_hz": 10.0},
        **WALKING,
    ),
    "gilbert_elliott": small(faults__availability={"model": "gilbert_elliott", "p_leave": 0.05, "p_return": 0.05}),
    "work in flight": small(
        training__algorithm={"name": "fedavg"},
        aggregation={"mode": "asynchronous", "buffer": 2},
        uplink={"kind": "digital"},
        timing={"straggler_scale": 3.0, "cycles_per_sample": 1e7},
        faults={"crash_rate_per_s": 0.5, "server_restart": {"p": 0.4, "downtime_s": 0.7}},
    ),
    "privacy_for_free": small(uplink__power_control={"policy": "privacy_for_free"}, uplink__snr_db=20.0),
}
SCENARIOS = {
    name: scenario.model_copy(update={"rounds": 6, "clients": small(clients__selection=SELECTION).clients})
    for name, scenario in STATEFUL.items()
}


@pytest.mark.filterwarnings("ignore:timing.deadline_s:wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_run_that_is_cut_off_goes_on_to_the_same_bits(name: str, stop_after: int, tmp_path: Path) -> None:
    goes_on_to_the_same_bits(SCENARIOS[name], tmp_path, stop_after)


@pytest.mark.filterwarnings("ignore:timing.deadline_s:wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_remembered_is_used_and_grows_with_the_active_only(name: str) -> None:
    state = play(SCENARIOS[name], 2).state
    before = state.memories
    assert before and any(len(bits(memory)) for memory in before.values())
    seen = {int(node) for memory in before.values() for node in memory.get("nodes", ())}
    assert len(seen) <= 6
    blank = build_simulation(SCENARIOS[name], PLAN).deployment.memories
    nothing = {part: memory.state() for part, memory in blank.items()}
    forgetful = SimulationState.from_mapping({**state.as_mapping(), "memories": nothing})
    forgotten, kept = play(SCENARIOS[name], None, forgetful).rounds, play(SCENARIOS[name]).rounds
    later = [[(bits(this.slots), bits(this.status)) for this in rounds] for rounds in (forgotten, kept[2:])]
    assert later[0] != later[1], "a state without memories gives the same run"
