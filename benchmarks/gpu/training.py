"""Rounds of the workloads: local training alone, and the whole simulator with everything on disk."""

from __future__ import annotations

import statistics
import time
from functools import partial

import numpy as np

from benchmarks.gpu.setting import Measure, Measured, Setting
from benchmarks.gpu.tasks import CONVOLUTION_TASKS, PAPER_TASKS, W1, W2, WORKLOAD_TASKS, Task
from benchmarks.measurement import steady
from benchmarks.phases import SHELL, TRACE, time_parts
from benchmarks.recorded import prepare, time_simulation
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner

_MOST = 5  # rounds of local training after one that warms up
_LASTING_S = 15.0  # after which no other round begins
_LONG_S = 10.0  # a first round that takes so long is not ruled by what happens once
TWO_CORES = "W2, two CPU cores"
SHELL_AND_TRACE = "W1, shell and trace"


def measure_task(task: Task, setting: Setting) -> Measured:
    """Seconds a round of local training alone, and rounds a second of the whole simulator."""
    here = task.at(setting)
    scenario = here.scenario()
    seconds = training_seconds(prepare(scenario, _threads(setting), setting.device), setting)
    times = time_simulation(prepare(scenario, _threads(setting), setting.device), scenario)
    return Measured(seconds=seconds, rounds_per_s=1 / steady(times.seconds))


def _threads(setting: Setting) -> int | None:
    return 1 if setting.tiny else None


def training_seconds(simulation: Simulation, setting: Setting) -> float:
    """The median round of local training of all clients, updates left on the device.

    The first round warms up, and counts only where it alone takes long.
    """
    first = train_once(simulation, setting, 1)
    if first > _LONG_S:
        return first
    most = 1 if setting.tiny else _MOST
    seconds: list[float] = []
    while len(seconds) < most and sum(seconds) < _LASTING_S:
        seconds.append(train_once(simulation, setting, 2 + len(seconds)))
    return statistics.median(seconds)


def train_once(simulation: Simulation, setting: Setting, round_index: int) -> float:
    """Seconds in which all clients train from the model in the simulation's state."""
    learner = learner_of(simulation)
    clients = np.arange(len(learner.population.sizes))
    setting.synchronise()
    started = time.perf_counter()
    for _ in learner.train(simulation.state.parameters, simulation.state, clients, round_index):
        pass
    setting.synchronise()
    return time.perf_counter() - started


def learner_of(simulation: Simulation) -> Learner:
    """The learning side of a simulation that trains for real."""
    learner = simulation.deployment.learner
    if not isinstance(learner, Learner):
        raise TypeError(f"expected a Learner, found {type(learner).__name__}")
    return learner


def measure_two_cores(setting: Setting) -> Measured:
    """W2's local training on two threads of this machine's processor."""
    here = W2.at(Setting("cpu", setting.tiny))
    simulation = prepare(here.scenario(), 2)
    return Measured(seconds=training_seconds(simulation, Setting("cpu", setting.tiny)))


def measure_shell_and_trace(setting: Setting) -> Measured:
    """Seconds of events, streams, ledger, trace and checkpoint in a round of W1 in which nobody trains.

    By the wall's clock: they are compared with a whole round's seconds, and files are waited for in both.
    """
    parts = time_parts(W1.at(setting).scenario(), 1, time.perf_counter)
    return Measured(seconds=sum(parts[part] for part in (*SHELL, *TRACE)))


def _measures(tasks: tuple[Task, ...]) -> dict[str, Measure]:
    return {task.name: partial(measure_task, task) for task in tasks}


WORKLOADS: dict[str, Measure] = {
    **_measures(WORKLOAD_TASKS),
    TWO_CORES: measure_two_cores,
    SHELL_AND_TRACE: measure_shell_and_trace,
}
CONVOLUTIONS = _measures(CONVOLUTION_TASKS)
PAPERS = _measures(PAPER_TASKS)
