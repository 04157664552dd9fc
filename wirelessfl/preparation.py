"""Simulation of a run before its first round: in this process or with workers, from its beginning or a checkpoint."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelessfl.cluster.training import Elsewhere, check_sendable, check_workers, training_elsewhere
from wirelessfl.errors import DataError, PlanWarning, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts
from wirelessfl.scenario import Scenario
from wirelessfl.trace import read_attributes

if TYPE_CHECKING:
    from wirelessfl.simulation import Simulation


@dataclass(frozen=True)
class Means:
    """Means by which a run is computed, as they were asked for.

    Attributes:
        device: "auto", "cpu" or "cuda".
        threads: Torch threads; None for the scenario's, else all cores.
        workers: Processes to start on this machine for the training, or Slurm jobs; None for none.
        scheduler: The address of a Dask scheduler, or "slurm"; None for none.

    Raises:
        InputError: scheduler and workers are not possible together.
    """

    device: str
    threads: int | None
    workers: int | None
    scheduler: str | None

    def __post_init__(self) -> None:
        check_workers(self.workers, self.scheduler)


@contextmanager
def prepared(
    scenario: Scenario, folder: RunFolder, going_on: bool, means: Means, interrupts: Interrupts
) -> Iterator[Simulation]:
    """Simulation of a scenario for as long as its workers are there; nothing is written.

    Args:
        scenario: what to simulate.
        folder: where the run lies that goes on.
        going_on: whether one does.
        means: by which it is computed.
        interrupts: checked where the run can stop.
    """
    with _simulator(interrupts), ExitStack() as resources:
        with interrupts.at_once():
            elsewhere = resources.enter_context(training_elsewhere(means.workers, means.scheduler, interrupts.check))
            simulation = _prepare(scenario, folder, going_on, means, interrupts, elsewhere)
            if elsewhere is not None:
                check_sendable(_sent_beside_training(simulation))
            _tell_of_idle_workers(simulation, scenario, means)
        yield simulation


@contextmanager
def _simulator(interrupts: Interrupts) -> Iterator[None]:
    # A million objects are imported that stay to the end: until then collections do not search them for garbage
    enabled, frozen = gc.isenabled(), gc.get_freeze_count() > 0
    with interrupts.at_once():
        gc.disable()
        try:
            import wirelessfl.assembly  # noqa: F401

            gc.freeze()
        finally:
            if enabled:
                gc.enable()
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()


def _sent_beside_training(simulation: Simulation) -> dict[str, object]:
    # Objects by their key that workers need to form a part of the sum
    from wirelessfl.simulation.uplinks import OverTheAir

    uplink = simulation.deployment.uplink
    if not isinstance(uplink, OverTheAir) or not uplink.sends_parts:
        return {}
    return {"uplink.power_control.policy": uplink.policies[0], "uplink.modulation.scheme": uplink.modulation}


def _tell_of_idle_workers(simulation: Simulation, scenario: Scenario, means: Means) -> None:
    clients, chunk = scenario.clients.expected, simulation.deployment.learner.plan.chunk
    blocks = -(-clients // chunk)
    if means.scheduler is None and means.workers is not None and means.workers > blocks:
        warnings.warn(
            f"--workers: found {means.workers}, of which {means.workers - blocks} have nothing to do: a round of "
            f"{clients} clients has {blocks} block{'s' if blocks > 1 else ''}; set compute.chunk to less than {chunk} "
            "clients for more",
            PlanWarning,
            stacklevel=2,
        )


def _prepare(
    scenario: Scenario,
    folder: RunFolder,
    going_on: bool,
    means: Means,
    interrupts: Interrupts,
    elsewhere: Elsewhere | None,
) -> Simulation:
    from wirelessfl.assembly import build_simulation, choose_plan, other_data, recorded_plan

    device, threads = means.device, means.threads
    if going_on:
        plan = recorded_plan(folder.trace)
        asked = [f"device {device}"] if device not in ("auto", plan.device) else []
        asked += [f"threads {threads}"] if threads not in (None, plan.threads) else []
        if asked:
            warnings.warn(
                f"{folder.trace}: continues as it was begun (device {plan.device}, threads {plan.threads}), not "
                f"with {' and '.join(asked)}: those would give other bits",
                PlanWarning,
                stacklevel=2,
            )
        simulation = build_simulation(scenario, plan, folder.load_state(), interrupts.check, elsewhere)
        other = other_data(read_attributes(folder.trace), scenario, simulation.deployment.learner.population)
        precondition(other is None, f"{folder.trace}: {other}; --resume needs the same", DataError)
        return simulation
    resources = choose_plan(scenario.compute, device, threads, elsewhere=elsewhere is not None)
    return build_simulation(scenario, resources, None, interrupts.check, elsewhere)
