"""The energy of every shipped scenario adds up: of each round from its parts, of the run from its rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import DataError
from wirelessfl.scenario import Scenario, list_shipped, load_scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.rehearsal import without_training
from wirelessfl.trace import SecAggStage

IN_WATTS = {"uplink.snr_db": None, "uplink.tx_power_dbm": 20.0}
ROUNDS = {"rounds": 3, "timing.switched_capacitance": 1e-28}


def rehearsed(scenario: Scenario) -> tuple[Any, list[FinishedRound]]:
    """A run without training: every update has the norm that bounds it."""
    try:
        simulation = build_simulation(scenario, PLAN)
    except DataError as error:
        pytest.skip(str(error))
    without_training(simulation)
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    return simulation, rounds


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("name", [shipped.name for shipped in list_shipped()])
def test_the_energy_of_every_shipped_scenario_adds_up(name: str) -> None:
    kind = load_scenario(name).uplink.kind
    downlink = {"downlink.snr_db": None, "downlink.tx_power_dbm": 30.0} if name == "fading-downlink" else {}
    scenario = load_scenario(name, {**ROUNDS, **({} if kind == "ideal" else {**IN_WATTS, **downlink})})
    simulation, rounds = rehearsed(scenario)
    joules_per_unit = getattr(simulation.deployment.uplink, "joules_per_unit", 0.0)
    for this in rounds:
        sent, computed = (np.nansum(this.slots.get(part, 0.0)) for part in ("tx_energy_j", "compute_energy_j"))
        jammed = np.nansum(this.values.get("jammer_energy", 0.0)) * joules_per_unit
        # Keys are exchanged once by all who are registered, also by those that the first round does not select.
        set_up = (
            0.0 if this.round.secagg is None else np.nan_to_num(this.round.secagg.costs["energy"][SecAggStage.SET_UP])
        )
        asked = np.nan_to_num(this.round.before.joules)  # reports of losses before the round
        assert computed > 0
        if kind == "ideal":
            assert math.isnan(this.values["energy"]), "nobody knows what an ideal uplink costs"
            continue
        assert sent > 0
        assert this.values["energy"] == pytest.approx(float(sent + computed + jammed + set_up + asked), rel=1e-12)
    if kind != "ideal":
        assert simulation.state.energy_j == pytest.approx(sum(this.values["energy"] for this in rounds), rel=1e-12)
