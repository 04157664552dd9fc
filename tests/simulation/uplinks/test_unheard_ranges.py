"""Groups of subcarriers in which nobody is heard: what the server knows of their coordinates stays as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.simulation import FinishedRound, rehearse
from wirelessfl.simulation.uplinks.air.groups import GroupedPlan
from wirelessfl.simulation.uplinks.air.plan import AirPlan

RARE = {
    "rounds": 4,
    "model": {"name": "logistic"},
    "clients__count": 2,
    "training__epochs": None,
    "training__steps": 2,
    "channel__fading": {"model": "tdl", "profile": "C", "groups": 16, "delay_spread_s": 1e-6},
    "faults__fade_threshold": 0.8,
    "uplink__kind": "over_the_air",
    "uplink__power_control": {"policy": "truncated_inversion"},
}
CASES: dict[str, dict[str, Any]] = {
    "scaffold": {"training__algorithm": {"name": "scaffold", "payload": 1}},
    "feddyn": {"training__algorithm": {"name": "feddyn"}},
    "momentum": {"training__server_optimizer": {"name": "sgd", "momentum": 0.9}},
    "adam": {"training__server_optimizer": {"name": "adam"}},
    "obda": {"uplink__modulation": {"scheme": "obda"}},
    "scaffold with two vectors": {"training__algorithm": {"name": "scaffold"}},
    "packed": {"training__algorithm": {"name": "feddyn"}, "uplink__iq_packing": True},
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_stepped_where_nobody_is_heard(case: str) -> None:
    simulation = build_simulation(small(**{**RARE, **CASES[case]}), PLAN)
    before, unheard_ranges, moved = [known(simulation.state)], 0, np.zeros(0, dtype=np.bool_)

    def look(this: FinishedRound, _: Any) -> None:
        nonlocal unheard_ranges, moved
        plan = this.round.heard
        after = known(simulation.state)
        if isinstance(plan, AirPlan):
            dimension = simulation.state.parameters.size
            vectors = 2 if case == "scaffold with two vectors" else 1
            uses = np.array_split(
                np.arange(vectors * dimension // (2 if "uplink__iq_packing" in CASES[case] else 1)), 16
            )
            heard = np.repeat(plan.sends[:, 0].any(axis=0), [len(part) for part in uses])
            heard = np.repeat(heard, vectors * dimension // heard.size)
            unheard_ranges += int(np.count_nonzero(~heard[:dimension]))
            for name in set(before[0]) & set(after) if vectors == 1 else ("model",):
                same = after[name] == before[0][name]
                assert same[~heard[:dimension]].all(), (this.index, name)
                moved = same[heard[:dimension]] if name == "model" else moved
        before[0] = after

    simulation.run(look)
    assert unheard_ranges > 100 and not moved.all()


def known(state: Any) -> dict[str, np.ndarray]:
    """Copies of the model and of all vectors that algorithm and optimizer remember."""
    vectors = {"model": state.parameters, **state.server_memory, **state.optimizer_memory}
    return {name: value.copy() for name, value in vectors.items() if value.shape == state.parameters.shape}


def test_rehearsals_pass_over_them() -> None:
    """A forecast plays the slots of the run, with a learner whose model stays as it is."""
    forecast = rehearse(build_simulation(small(**RARE), PLAN))
    assert forecast.rounds == RARE["rounds"]


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_nothing_is_stepped_where_no_group_of_clients_is_heard(rule: str) -> None:
    """Two clients in a slot of their own each: what neither sends moves by no momentum of the server."""
    optimizer = {"name": "sgd", "momentum": 0.9}
    scenario = small(
        **RARE, uplink__slot_groups=2, training__robust={"rule": rule}, training__server_optimizer=optimizer
    )
    simulation = build_simulation(scenario, PLAN)
    before, counts = [known(simulation.state)], np.zeros((2, 2), dtype=np.int64)

    def look(this: FinishedRound, _: Any) -> None:
        after, plan = known(simulation.state), this.round.heard
        if isinstance(plan, GroupedPlan):
            parts = np.array_split(np.arange(simulation.state.parameters.size), 16)
            of_group = np.any([slot.sends[:, 0].any(axis=0) for slot in plan.slots], axis=0)
            heard = np.repeat(of_group, [len(part) for part in parts])
            for name, value in after.items():
                same = value == before[0].get(name, np.nan)
                assert this.index == 1 or same[~heard].all(), (this.index, name)
                counts[int(name == "model")] += [np.count_nonzero(~heard), np.count_nonzero(heard & ~same)]
        before[0] = after

    simulation.run(look)
    assert np.all(counts > 100)
