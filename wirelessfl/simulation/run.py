"""A run from its state: the process of the parameter server, round by round, and the limits that end it."""

import math
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import simpy

from wirelessfl.learning.cohort import one_torch_thread
from wirelessfl.learning.faults import Faults
from wirelessfl.learning.server_step import step_norm
from wirelessfl.learning.timing import Timing
from wirelessfl.memory import Memory, restore_memories
from wirelessfl.privacy import (
    ENDED_AT_A_LIMIT,
    ENDED_BY_ITS_OUTPUTS,
    BareRelease,
    Ledger,
    LossRelease,
    Release,
    of_clients,
)
from wirelessfl.radio.network import Network
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.lost_uploads import keeping
from wirelessfl.simulation.medium import Medium, seconds
from wirelessfl.simulation.personalisation import Personalisation
from wirelessfl.simulation.query import loss_release, reported_beside_uploads, selected_round
from wirelessfl.simulation.recorder import FinishedRound
from wirelessfl.simulation.records import Round, ServerRecord
from wirelessfl.simulation.roles import Roles
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.stop_rules import StopRules, diverged_in, unlearnt_since
from wirelessfl.simulation.uplinks import Collected, OverTheAir, Uplink
from wirelessfl.simulation.window import WaitFor
from wirelessfl.trace import SERVER_NODE, EventBatch, EventKind, Role, Status

Process = Generator[simpy.Event, Any, None]
# Statuses of clients that cannot take part, with the events that say so
_ABSENT = {Status.UNAVAILABLE: EventKind.UNAVAILABLE, Status.BATTERY_EMPTY: EventKind.BATTERY_EMPTY}


@dataclass(frozen=True)
class Deployment:
    """Everything a server works with, fixed before the run; built from a scenario in ``assembly``.

    ``jobs`` is the work in flight of asynchronous aggregation, empty with rounds. ``roles`` are those of clients
    that do not follow the protocol.
    """

    network: Network
    selection: ClientSelection
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Learner
    uplink: Uplink
    jobs: JobsInFlight = field(default_factory=JobsInFlight)
    roles: Roles | None = None
    personal: Personalisation | None = None
    memories: Mapping[str, Memory] = field(default_factory=dict)


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
        return self.deployment.selection.expected

    @property
    def diverged(self) -> bool:
        """Whether the model is not finite, or nothing has been learnt since updates are not."""
        return self.state.diverged_in > 0 or self.state.unlearnt_since > 0

    def back_to_last_round(self) -> None:
        """Ledger and memories as after the last finished round, without the changes of an unfinished one."""
        if self.state.round_index > 0:
            self.ledger.restore(self.state.ledger)
            restore_memories(self.deployment.memories, self.state.memories)

    def run(self, on_round: Callable[[FinishedRound, EventBatch], None]) -> None:
        """Run to the end; ``on_round`` is called with every finished round before the next begins."""
        parts, env = self.deployment, simpy.Environment(initial_time=self.state.clock)
        medium = Medium(env, log_events=self.log_events)
        fixed = (medium, parts.network, parts.timing, parts.wait_for, parts.faults, parts.learner)
        cell = Cell(*fixed, self.state, parts.roles)
        with one_torch_thread():
            env.run(until=env.process(self._rounds(cell, on_round)))

    def _rounds(self, cell: Cell, on_round: Callable[[FinishedRound, EventBatch], None]) -> Process:
        # The server's process: round after round, until a limit is reached
        state = self.state
        started = time.perf_counter() - state.wall_time
        while not state.ended_by:
            index = state.round_index + 1
            this = yield from selected_round(cell, self.deployment.selection, index)
            at_work = replace(cell, model_sent=this.before.asked is not None)
            if self.deployment.roles is not None:
                this.roles = self.deployment.roles.of(this.clients)
            yield from self._round(at_work, this)
            state.wall_time = this.wall_time = time.perf_counter() - started
            self._note_end(this)
            on_round(FinishedRound(this), cell.medium.drain())

    def _round(self, cell: Cell, this: Round) -> Process:
        self.deployment.learner.calibrate(self.state, this.index)
        self._check_availability(cell, this)
        cell.reach(this)
        restarts = self.deployment.faults.server_restarts(this.index, self.deployment.network.streams)
        set_back = keeping(self.state, self.deployment.memories) if restarts else None
        collected = yield from self.deployment.uplink.collect(cell, this)
        self._charge(this, collected)
        this.energy = this.energy.plus(this.before.joules)
        this.reported = reported_beside_uploads(cell, self.deployment.selection, this, collected.heard)
        cell.charge_for_computing(this)
        if set_back is not None:
            collected = yield from self._restart(cell, this, collected)
            set_back()
        if collected.aggregate is not None:
            hidden = collected.hidden_share is not None
            arrived = this.clients[collected.heard[:0] if hidden else collected.heard]
            weights = self.deployment.network.registry.weight(arrived)
            before = self.state.parameters.copy()
            if self.deployment.personal is not None:
                self.deployment.personal.train(this, self.state, collected.heard)
            steps = this.steps_of(arrived)
            heard = (arrived, weights, steps, collected.unheard, collected.hidden_share)
            self.deployment.learner.update(self.state, collected.aggregate, this.index, *heard)
            this.step_norm = step_norm(before, self.state.parameters, self.deployment.learner.plan.threads)
            self.state.model_version += 1
            cell.medium.note(EventKind.AGGREGATE, SERVER_NODE)
        self._finish_round(cell, this, collected)

    def _restart(self, cell: Cell, this: Round, collected: Collected) -> Generator[simpy.Event, Any, Collected]:
        # The server goes down with what it has received: the model stays, and privacy is spent all the same
        this.status[collected.heard] = Status.LOST
        if not collected.after_restart:
            yield cell.restart_server()
        return replace(collected, heard=collected.heard[:0], aggregate=None)

    def _check_availability(self, cell: Cell, this: Round) -> None:
        # Statuses of the selected clients that cannot take part
        faults, streams, jobs = self.deployment.faults, self.deployment.network.streams, self.deployment.jobs
        if len(jobs):
            this.status[np.isin(this.clients, jobs.clients)] = Status.UNDERWAY
        asked = this.with_status(Status.PARTICIPATED)
        clients = this.clients[asked]
        reachable = faults.reachable(clients, this.index, streams)
        if self.deployment.roles is not None:  # who never sends is to the server as one who is not there
            reachable &= ~self.deployment.roles.have(clients, Role.SILENT)
        if faults.battery_j is not None:
            this.status[asked[self.state.battery_used_j[clients] >= faults.battery_j]] = Status.BATTERY_EMPTY
        this.status[asked[~reachable]] = Status.UNAVAILABLE
        for status, kind in _ABSENT.items():
            cell.medium.note(kind, this.clients[this.with_status(status)])

    def _charge(self, this: Round, collected: Collected) -> None:
        """Releases of the round for the ledger, of all clients that sent something: also of those that were not heard.

        What a trusted server releases counts also where nobody sent anything: that it was so is part of the secret.
        """
        clients, learner = this.clients[collected.transmitted], self.deployment.learner
        losses = loss_release(self.deployment.selection, this, collected.transmitted, learner)
        counts, uplink = len(clients) > 0, collected.releases
        if isinstance(losses, LossRelease) and not counts:  # others might have been selected, who would have sent
            counts, uplink = True, (_release_of_nobody(self.deployment.uplink, this.index),)
        if counts:
            steps, hidden = this.steps_of(clients), collected.secure_sum
            this.local_releases = learner.releases(this.index, clients, hidden, steps)
        # An upload without noise is no release of its own where clients add noise, or where nobody uploads.
        bare_counts = counts and not this.local_releases
        uplink = uplink if learner.unvouched is None else ()
        this.uplink_releases = tuple(r for r in uplink if bare_counts or not isinstance(r, BareRelease))
        if isinstance(losses, LossRelease):
            this.loss_release = losses
            self.ledger.add(losses)
        elif losses is not None:  # no noise of another release hides them
            this.local_releases, this.uplink_releases = (), (losses,)
        roles = self.deployment.roles
        if roles is not None:
            kept = ((release, ~roles.exceed(release.clients)) for release in this.uplink_releases)
            this.uplink_releases = tuple(of_clients(release, who) for release, who in kept)
        for release in this.releases:
            self.ledger.add(release)

    def _finish_round(self, cell: Cell, this: Round, collected: Collected) -> None:
        # Test of the global model, and the state at the end of the round
        state, heard, loss = self.state, collected.heard, math.nan
        if collected.aggregate is not None and len(heard):
            trained = heard if this.roles is None else heard[this.roles[heard] != Role.FREE_RIDER]
            weight = self.deployment.network.registry.weight(this.clients[trained])
            loss = float(np.average(this.train_loss(trained), weights=weight)) if len(trained) else math.nan
        state.energy_j += this.energy.joules
        state.nominal_energy_j += this.energy.nominal
        accounted, now = self.ledger.epsilon_accounted(), seconds(cell.medium.now)
        # Known before the evaluation, so that the model with which a run ends is always evaluated
        this.limits = self.stop.reached_by_spending(this.index, accounted, now, state.nominal_energy_j)
        this.model_is_finite = bool(np.isfinite(state.parameters).all())
        last = bool(this.limits) or (self.stop.diverged and not this.model_is_finite)
        assessed = self.deployment.learner.evaluate(state.parameters, this.index, last=last)
        this.accuracies, personal = assessed.of_clients, self.deployment.personal
        if personal is not None and this.accuracies is not None:
            this.personal_accuracies = personal.accuracies(state, this.index)
        cell.medium.note(EventKind.EVALUATE, SERVER_NODE)
        this.server = ServerRecord(
            participants=len(heard),
            airtime_s=this.before.airtime_s + collected.airtime,
            model_version=state.model_version,
            train_loss=loss,
            test_accuracy=assessed.test.accuracy,
            test_loss=assessed.test.loss,
            validation_accuracy=assessed.validation.accuracy,
            validation_loss=assessed.validation.loss,
            client_drift=this.drift.rms,
            server_step_norm=this.step_norm,
            sim_time_s=now,
            epsilon_published=self.ledger.epsilon_published(),
            epsilon_accounted=accounted,
            selection_epsilon=self._epsilon_of_the_selection(),
        )
        state.round_index = this.index
        state.clock = cell.medium.now
        state.ledger = self.ledger.state()
        if (roles := self.deployment.roles) is not None:
            sent = this.clients[collected.transmitted]
            state.unbounded = np.union1d(state.unbounded, sent[roles.exceed(sent)])
        self.deployment.selection.note(this, heard)
        state.memories = {name: memory.state() for name, memory in self.deployment.memories.items()}

    def _epsilon_of_the_selection(self) -> float:
        selection = self.deployment.selection
        if not selection.reads_losses:
            return math.nan
        return math.inf if selection.reports.noise_std is None else self.ledger.epsilon_selection()

    def _note_end(self, this: Round) -> None:
        # Whether the run ends with this round, and since when nothing was learnt
        state = self.state
        state.diverged_in, state.unlearnt_since = diverged_in(this, state), unlearnt_since(this, state)
        by_limit, by_release = this.limits, self.stop.reached_by_release(this, state)
        state.ended_by = ",".join(by_limit + by_release)
        if not state.ended_by or "rounds" in by_limit:
            return
        if by_limit and self.deployment.selection.reports.noise_std is not None:
            self.ledger.remark(ENDED_AT_A_LIMIT)
        elif not by_limit and not self.stop.reads_clients_data:
            self.ledger.remark(ENDED_BY_ITS_OUTPUTS)
        state.ledger = self.ledger.state()


def _release_of_nobody(uplink: Uplink, round_index: int) -> Release:
    # The record without clients of a round in which nobody sends, for those whom losses might have selected
    if isinstance(uplink, OverTheAir):
        return uplink.release_of_nobody(round_index)
    return BareRelease(round_index, np.zeros(0, dtype=np.int64))  # without any guarantee of the uplink's own
