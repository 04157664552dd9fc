"""Runs that end after some rounds and go on from their checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.scenarios import PLAN
from wirelessfl.assembly import build_simulation
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.state import SimulationState
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import RunIdentity, load_checkpoint, save_checkpoint


class Enough(Exception):
    """The end of the first part."""


def resumed(scenario: Scenario, folder: Path, after: int = 2) -> Simulation:
    """A run whose rounds beyond ``after`` go on from a checkpoint in a folder."""
    first, identity = build_simulation(scenario, PLAN), RunIdentity("0" * 32, "digest", STREAM_VERSION, "0")

    def stop(this: Any, _: Any) -> None:
        if this.index == after:
            save_checkpoint(folder / "checkpoint.bin", first.state.as_mapping(), identity)
            raise Enough

    with pytest.raises(Enough):
        first.run(stop)
    restored = SimulationState.from_mapping(load_checkpoint(folder / "checkpoint.bin", identity))
    rest = build_simulation(scenario, PLAN, restored)
    rest.run(lambda this, batch: None)
    return rest
