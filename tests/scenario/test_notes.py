"""What `validate` says of keys whose meaning is easily overlooked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.scenarios import small
from wirelessfl.api import make_plan
from wirelessfl.assembly.radio import power_budget
from wirelessfl.assembly.slot import data_airtime
from wirelessfl.scenario.scenario import power_notes, slot_notes


@pytest.mark.parametrize(("power", "watts"), [({"snr_db": 3.0}, 2.0), ({"tx_power_dbm": 3.0}, 1.0)])
def test_packing_at_a_fixed_snr_doubles_the_watts_and_is_noted(power: dict[str, Any], watts: float) -> None:
    scenarios = [small(uplink={**power, "iq_packing": packed}) for packed in (False, True)]
    plain, packed = (power_budget(scenario, 610) / data_airtime(scenario, 610) for scenario in scenarios)
    assert packed / plain == pytest.approx(watts)
    notes = [power_notes(scenario) for scenario in scenarios]
    assert notes[0] == () and bool(notes[1]) == (watts == 2.0)


def test_a_plan_carries_the_note() -> None:
    plan = make_plan(small(uplink={"iq_packing": True}))
    assert "twice the watts" in plan.as_mapping()["notes"][0]


def test_several_slots_are_noted_with_their_rule() -> None:
    assert slot_notes(small()) == () == slot_notes(small(uplink={"kind": "digital"}))
    mean = make_plan(small(uplink={"slot_groups": 3}))
    median = make_plan(small(uplink={"slot_groups": 3}, training__robust={"rule": "median"}))
    assert "3 slots a round" in mean.notes[0] and "is not robust" in mean.notes[0]
    assert "combines by median" in median.notes[0] and "is not robust" not in median.notes[0]
