"""Small scenarios for the tests of ``wirelessfl.simulation``."""

from __future__ import annotations

from typing import Any

from wirelessfl.assembly import build_simulation
from wirelessfl.learning import ExecutionPlan
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.trace import EventBatch

SMALL = """
name: small
seed: 11
rounds: 3
data: {limit: 120, partition: {scheme: iid}}
model: {name: mlp, hidden: [8]}
clients: {count: 6}
training: {algorithm: {name: fedavg}, epochs: 1}
"""

PLAN = ExecutionPlan(device="cpu", threads=1, chunk=4)


def small(**overrides: Any) -> Scenario:
    """The small scenario with overrides; dots of a key path are written as two underscores."""
    return parse_scenario(SMALL, "small", {key.replace("__", "."): value for key, value in overrides.items()})


def run(scenario: Scenario, plan: ExecutionPlan = PLAN) -> tuple[Simulation, list[FinishedRound], list[EventBatch]]:
    """Run a scenario in memory."""
    simulation = build_simulation(scenario, plan)
    rounds: list[FinishedRound] = []
    events: list[EventBatch] = []

    def keep(this: FinishedRound, batch: EventBatch) -> None:
        rounds.append(this)
        events.append(batch)

    simulation.run(keep)
    return simulation, rounds, events
