"""Runs that end after some rounds and go on from their checkpoint."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.simulation.scenarios import PLAN
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import RunInterrupted
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.state import SimulationState
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import EventBatch, RunIdentity, load_checkpoint, save_checkpoint


@dataclass(frozen=True)
class Played:
    """A run, or a part of one, with its rounds and events."""

    simulation: Simulation
    rounds: list[FinishedRound]
    events: list[EventBatch]

    @property
    def state(self) -> SimulationState:
        """The state at its end."""
        return self.simulation.state


def play(scenario: Scenario, stop_after: int | None = None, state: SimulationState | None = None) -> Played:
    """A run from a state, to its end or up to a round."""
    played = Played(build_simulation(scenario, PLAN, state), [], [])

    def keep(this: FinishedRound, batch: EventBatch) -> None:
        played.rounds.append(this)
        played.events.append(batch)
        if this.index == stop_after:
            raise RunInterrupted

    with suppress(RunInterrupted):
        played.simulation.run(keep)
    return played


def saved_and_loaded(state: SimulationState, folder: Path) -> SimulationState:
    """A state as a checkpoint in a folder brings it back."""
    identity = RunIdentity("0" * 32, "digest", STREAM_VERSION, "0")
    save_checkpoint(folder / "checkpoint.bin", state.as_mapping(), identity)
    return SimulationState.from_mapping(load_checkpoint(folder / "checkpoint.bin", identity))


def bits(value: Any) -> Any:
    """A value as what two runs must agree in."""
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items() if name != "wall_time"}
    return np.asarray(value).tobytes()


def goes_on_to_the_same_bits(scenario: Scenario, folder: Path, after: int = 2) -> tuple[Played, Played]:
    """A whole run, and the rest of one that was cut off: states, rounds and events agree to the last bit."""
    whole, first = play(scenario), play(scenario, after).state
    restored = saved_and_loaded(first, folder)
    assert bits(restored.as_mapping()) == bits(first.as_mapping())
    rest = play(scenario, None, restored)
    assert rest.rounds, "nothing is left to go on with"
    assert bits(rest.state.as_mapping()) == bits(whole.state.as_mapping())
    for one, other in zip(whole.rounds[after:], rest.rounds, strict=True):
        for what in ("values", "slots", "status", "clients"):
            assert bits(getattr(one, what)) == bits(getattr(other, what)), (one.index, what)
    for one_batch, other_batch in zip(whole.events[after:], rest.events, strict=True):
        assert bits(vars(one_batch)) == bits(vars(other_batch))
    return whole, rest
