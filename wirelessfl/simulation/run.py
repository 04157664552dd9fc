"""Runs a simulation from its state, round by round, and tells what each round was."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import simpy

from wirelessfl.learning.cohort import one_torch_thread
from wirelessfl.privacy import Ledger
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.server import Deployment, ParameterServer
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import EventBatch


@dataclass(frozen=True)
class StopRules:
    """What ends a run; the first reached counts.

    Attributes:
        rounds: M.
        accuracy: test accuracy, or None.
        epsilon: accounted ε, or None.
        sim_time_s: simulated seconds, or None.
        energy_j: joules, or None.
    """

    rounds: int
    accuracy: float | None = None
    epsilon: float | None = None
    sim_time_s: float | None = None
    energy_j: float | None = None

    def reached(self, this: Round, energy_j: float) -> bool:
        """Whether the run ends with this round; a value that is NaN reaches nothing."""
        limits = (
            (this.values["test_accuracy"], self.accuracy),
            (this.values["epsilon_accounted"], self.epsilon),
            (this.values["sim_time"], self.sim_time_s),
            (energy_j, self.energy_j),
        )
        return this.index >= self.rounds or any(limit is not None and value >= limit for value, limit in limits)


@dataclass
class Simulation:
    """A scenario made ready to run: the fixed parts, the ledger and the state to go on from."""

    deployment: Deployment
    ledger: Ledger
    state: SimulationState
    stop: StopRules
    log_events: bool

    @property
    def slots(self) -> int:
        """Clients to expect in a round; there may be more where their number is random."""
        parts = self.deployment
        return len(parts.selection.select(parts.network.registry.count, 1, parts.network.streams))

    @property
    def finished(self) -> bool:
        """Whether the last round lies behind the state."""
        return self.state.ended

    def run(self, on_round: Callable[[Round, EventBatch], None]) -> None:
        """Run to the end; ``on_round`` hears of every finished round before the next begins."""
        if self.finished:
            return
        env = simpy.Environment(initial_time=self.state.clock)
        medium = Medium(env, log_events=self.log_events)
        started = time.perf_counter() - self.state.wall_time

        def announce(this: Round) -> bool:
            self.state.wall_time = this.values["wall_time"] = time.perf_counter() - started
            self.state.ended = self.stop.reached(this, self.state.energy_j)
            on_round(this, medium.log.drain())
            return not self.state.ended

        server = ParameterServer(medium, self.deployment, self.ledger, self.state, announce)
        with one_torch_thread():
            env.run(until=env.process(server.run()))
