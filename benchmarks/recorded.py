"""Runs of the simulator with everything on disk, and what their rounds took."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.api import record_run
from wirelessfl.assembly import build_simulation, choose_plan
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import catch_interrupts
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.drift import ClientDrift
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation, SimulationState
from wirelessfl.simulation.assessment import Assessment
from wirelessfl.simulation.learner import Learner


@dataclass(frozen=True)
class RoundTimes:
    """What the rounds of a run took.

    Attributes:
        seconds: of each round, from the end of the one before, trace and checkpoint on disk.
        cpu_seconds: the same, of the processor, all threads together.
        loss: of the final model on all training samples; NaN where nothing is trained.
        clients: active in a round.
        trace_bytes: size of the trace.
    """

    seconds: list[float]
    cpu_seconds: list[float]
    loss: float = math.nan
    clients: int = 0
    trace_bytes: int = 0


class Clock:
    """Wall and processor time between laps."""

    def __init__(self) -> None:
        """Begins now."""
        self._readings: list[tuple[float, float]] = []
        self.start()

    def start(self) -> None:
        """Forget everything and begin now."""
        self._readings = []
        self.lap()

    def lap(self) -> None:
        """A round is over."""
        self._readings.append((time.perf_counter(), time.process_time()))

    def times(self, loss: float = math.nan, clients: int = 0, trace_bytes: int = 0) -> RoundTimes:
        """The laps as rounds."""
        wall, cpu = np.diff(np.array(self._readings), axis=0).T.tolist() if len(self._readings) > 1 else ([], [])
        return RoundTimes(wall, cpu, loss, clients, trace_bytes)


@dataclass(frozen=True)
class IdleLearner(Learner):
    """Hands out updates that nobody trained and keeps the model: what remains of a round is shell, air and trace."""

    @cached_property
    def _zeros(self) -> torch.Tensor:
        return torch.zeros(self.plan.chunk, self.dimension)

    def train(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None = None,
        drift: ClientDrift | None = None,
    ) -> Iterator[CohortBlock]:
        """Blocks of zeros, as large as those of a real cohort."""
        updates = self._zeros
        for first in range(0, len(clients), len(updates)):
            positions = np.arange(first, min(first + len(updates), len(clients)))
            k = len(positions)
            numbers = np.zeros(k)
            yield CohortBlock(positions, updates[:k], numbers, numbers, numbers)

    def evaluate(self, parameters: NDArray[np.float32], round_index: int, *, last: bool) -> Assessment:
        """Nothing is tested."""
        return Assessment()


def prepare(scenario: Scenario, threads: int | None, device: str = "cpu") -> Simulation:
    """A simulation that is ready to run; without a number of threads on all cores."""
    return build_simulation(scenario, choose_plan(scenario.compute, device, threads))


def with_idle_learner(simulation: Simulation) -> Simulation:
    """The same simulation, in which nobody trains."""
    learner = simulation.deployment.learner
    idle = IdleLearner(**{item.name: getattr(learner, item.name) for item in fields(Learner)})
    return replace(simulation, deployment=replace(simulation.deployment, learner=idle))


def time_scenario(scenario: Scenario, threads: int) -> RoundTimes:
    """A whole run."""
    return time_simulation(prepare(scenario, threads), scenario)


def time_shell(scenario: Scenario, threads: int) -> RoundTimes:
    """A whole run in which nobody trains."""
    return time_simulation(with_idle_learner(prepare(scenario, threads)), scenario)


def time_simulation(
    simulation: Simulation, scenario: Scenario, after_round: Callable[[], None] = lambda: None
) -> RoundTimes:
    """Run, with scenario, trace and checkpoint in a folder that is thrown away.

    Args:
        simulation: ready to run.
        scenario: what it was built from.
        after_round: called after each round.
    """
    clock = Clock()
    loss, clients = math.nan, 0

    def note(this: FinishedRound) -> None:
        nonlocal loss, clients
        clock.lap()
        loss, clients = this.values["test_loss"], len(this.clients)  # a round is not kept: memory is measured
        after_round()

    with tempfile.TemporaryDirectory(prefix="wirelessfl-bench-") as place, catch_interrupts() as interrupts:
        folder = RunFolder(Path(place))
        clock.start()
        record_run(simulation, folder, scenario, interrupts, note)
        trace_bytes = folder.trace.stat().st_size
    return clock.times(loss, clients, trace_bytes)
