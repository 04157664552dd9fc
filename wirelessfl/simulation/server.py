"""The parameter server: availability, collection of updates, step of the model, evaluation."""

import math
from collections.abc import Callable, Generator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import simpy

from wirelessfl.learning.faults import Faults
from wirelessfl.learning.timing import Timing
from wirelessfl.memory import Memory
from wirelessfl.privacy import BareRelease, Ledger
from wirelessfl.privacy.releases import LossReport
from wirelessfl.radio.network import Network
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.clock import after_all_else, seconds, ticks
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.learner import Training
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.records import ServerRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.uplinks import Collected, Uplink
from wirelessfl.simulation.window import WaitFor
from wirelessfl.trace import SERVER_NODE, EventKind, Status

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Deployment:
    """Everything a server works with, fixed before the run; built from a scenario in ``assembly``.

    ``jobs`` is the work in flight of asynchronous aggregation, empty with rounds.
    """

    network: Network
    selection: ClientSelection
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Training
    uplink: Uplink
    jobs: JobsInFlight = field(default_factory=JobsInFlight)
    memories: Mapping[str, Memory] = field(default_factory=dict)


class ParameterServer:
    """The server's process: the order of a round; the numbers come from the core."""

    def __init__(
        self,
        medium: Medium,
        deployment: Deployment,
        ledger: Ledger,
        state: SimulationState,
        announce: Callable[[Round], bool],
    ) -> None:
        """A server on a medium.

        Args:
            medium: the air and the log.
            deployment: the fixed parts of the simulation.
            ledger: takes the record of what each round released.
            state: the state to continue from; kept up to date.
            announce: called with each finished round; returns False when it is enough.
        """
        self._medium = medium
        self._parts = deployment
        self._ledger = ledger
        self._state = state
        self._announce = announce
        parts = deployment
        self._cell = Cell(medium, parts.network, parts.timing, parts.wait_for, parts.faults, parts.learner, state)

    def run(self) -> Process:
        """Round after round, until ``announce`` says that it is enough."""
        going_on = True
        while going_on:
            index = self._state.round_index + 1
            this = Round(index, self._parts.selection.select(index, self._parts.network.streams))
            yield from self._round(this)
            going_on = self._announce(this)

    def _round(self, this: Round) -> Process:
        self._check_availability(this)
        restarts = self._parts.faults.server_restarts(this.index, self._parts.network.streams)
        rows = deepcopy(self._state.client_rows) if restarts else {}
        collected = yield from self._parts.uplink.collect(self._cell, this)
        self._charge(this, collected)
        self._cell.charge_for_computing(this)
        if restarts:
            collected = yield from self._restart(this, collected)
            self._state.client_rows = rows  # of an upload that is lost a client keeps nothing
        if collected.aggregate is not None:
            arrived = this.clients[collected.heard]
            weights = self._parts.network.registry.weight(arrived)
            self._parts.learner.update(self._state, collected.aggregate, this.index, arrived, weights)
            self._state.model_version += 1
            self._medium.note(EventKind.AGGREGATE, SERVER_NODE)
        self._finish_round(this, collected)

    def _restart(self, this: Round, collected: Collected) -> Generator[simpy.Event, Any, Collected]:
        # The server goes down with what it has received: the model stays, and privacy is spent all the same
        this.status[collected.heard] = Status.LOST
        self._medium.note(EventKind.SERVER_RESTART, SERVER_NODE)
        # After all that clients do at the instant of its return, so that nothing of that instant is still to come.
        yield after_all_else(self._medium.env, ticks(self._parts.faults.downtime_s))
        return replace(collected, heard=collected.heard[:0], aggregate=None)

    def _check_availability(self, this: Round) -> None:
        # Statuses of the selected clients that cannot take part
        faults, streams, jobs = self._parts.faults, self._parts.network.streams, self._parts.jobs
        if len(jobs):
            this.status[jobs.at_work(this.clients)] = Status.UNDERWAY
        asked = this.with_status(Status.PARTICIPATED)
        clients = this.clients[asked]
        reachable = faults.availability.available(clients, this.index, streams)
        if faults.battery_j is not None:
            this.status[asked[self._state.battery_used_j[clients] >= faults.battery_j]] = Status.BATTERY_EMPTY
        this.status[asked[~reachable]] = Status.UNAVAILABLE
        self._note(this, Status.UNAVAILABLE, EventKind.UNAVAILABLE)
        self._note(this, Status.BATTERY_EMPTY, EventKind.BATTERY_EMPTY)

    def _note(self, this: Round, status: Status, kind: EventKind) -> None:
        self._medium.note(kind, this.clients[this.with_status(status)])

    def _charge(self, this: Round, collected: Collected) -> None:
        """Releases of the round for the ledger, of all clients that sent something: also of those that were not heard.

        What a trusted server releases counts also where nobody sent anything: that it was so is part of the secret.
        """
        clients = this.clients[collected.transmitted]
        if len(clients):
            this.local_releases = self._parts.learner.releases(this.index, clients, collected.secure_sum)
        # An upload without noise is no release of its own where clients add noise, or where nobody uploads.
        bare_counts = len(clients) > 0 and not this.local_releases
        uplink = collected.releases if self._parts.learner.unvouched is None else ()
        this.uplink_releases = tuple(r for r in uplink if bare_counts or not isinstance(r, BareRelease))
        if self._parts.selection.reads_losses and len(clients):  # no noise of another release hides them
            this.local_releases, this.uplink_releases = (), (LossReport(this.index, clients),)
        for release in this.releases:
            self._ledger.add(release)

    def _finish_round(self, this: Round, collected: Collected) -> None:
        # Test of the global model, and the state at the end of the round
        state, heard, loss = self._state, collected.heard, math.nan
        if collected.aggregate is not None and len(heard):
            weight = self._parts.network.registry.weight(this.clients[heard])
            loss = float(np.average(this.train_loss(heard), weights=weight))
        accuracy, test_loss = self._parts.learner.evaluate(state.parameters, this.index)
        self._medium.note(EventKind.EVALUATE, SERVER_NODE)
        this.server = ServerRecord(
            participants=len(heard),
            airtime_s=collected.airtime,
            model_version=state.model_version,
            train_loss=loss,
            test_accuracy=accuracy,
            test_loss=test_loss,
            sim_time_s=seconds(self._medium.now),
            epsilon_published=self._ledger.epsilon_published(),
            epsilon_accounted=self._ledger.epsilon_accounted(),
        )
        state.round_index = this.index
        state.clock = self._medium.now
        state.energy_j += this.energy.joules
        state.nominal_energy_j += this.energy.nominal
        state.ledger = self._ledger.state()
        self._parts.selection.note(this, heard)
        state.memories = {name: memory.state() for name, memory in self._parts.memories.items()}
