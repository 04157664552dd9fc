"""The parameter server: broadcast, wait, open the slot, update, evaluate, announce."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.privacy import BareRelease, Ledger
from wirelessfl.simulation.client import client
from wirelessfl.simulation.clock import seconds, ticks
from wirelessfl.simulation.faults import Faults
from wirelessfl.simulation.jammer import jammer
from wirelessfl.simulation.learner import Training
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Message, SlotGrant
from wirelessfl.simulation.network import Network
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.selection import Selection
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.timing import BITS_PER_PARAMETER, Timing, WaitFor
from wirelessfl.simulation.uplinks import SlotPlan, Uplink
from wirelessfl.simulation.window import Window
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventKind, Status

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Deployment:
    """Everything a server works with, fixed before the run; built from a scenario by ``build``."""

    network: Network
    selection: Selection
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Training
    uplink: Uplink
    jams: bool


class ParameterServer:
    """The server's process. It decides when; the core decides what."""

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
        self._env = medium.env
        self._parts = deployment
        self._ledger = ledger
        self._state = state
        self._announce = announce
        self._window: Window | None = None
        medium.listen(self._receive)

    def run(self) -> Process:
        """Round after round, until ``announce`` says that it is enough."""
        going_on = True
        while going_on:
            index = self._state.round_index + 1
            network = self._parts.network
            this = Round(index, self._parts.selection.select(network.registry.count, index, network.streams))
            yield from self._round(this)
            going_on = self._announce(this)

    def _receive(self, message: Message) -> None:
        if self._window is not None:
            self._window.take(message)

    def _round(self, this: Round) -> Process:
        """One round of the protocol."""
        self._call_the_roll(this)
        slot_opens = self._env.event()
        jamming = self._appoint_jammer(this, slot_opens)
        yield from self._train(this, slot_opens)
        plan = self._parts.uplink.plan(this, this.with_status(Status.PARTICIPATED), jamming)
        this.status[plan.silent] = Status.DEEP_FADE
        silent = np.zeros(len(this.clients), dtype=np.bool_)
        silent[plan.silent] = True
        slot_opens.succeed(SlotGrant(silent, plan.jammer_gain))
        if len(plan.senders):
            yield self._medium.occupy(plan.airtime)
            self._update(this, plan)
        this.values["participants"] = len(plan.senders)
        this.values["airtime"] = plan.airtime if len(plan.senders) else 0.0
        this.values.setdefault("energy", 0.0)
        self._close_the_books(this)

    def _call_the_roll(self, this: Round) -> None:
        """Who of the selected can take part at all."""
        faults, streams = self._parts.faults, self._parts.network.streams
        reachable = faults.availability.available(this.clients, this.index, streams)
        if faults.battery_j is not None:
            empty = self._state.battery_used_j[this.clients] >= faults.battery_j
            this.status[empty] = Status.BATTERY_EMPTY
        this.status[~reachable] = Status.UNAVAILABLE
        self._note(this, Status.UNAVAILABLE, EventKind.UNAVAILABLE)
        self._note(this, Status.BATTERY_EMPTY, EventKind.BATTERY_EMPTY)

    def _note(self, this: Round, status: Status, kind: EventKind) -> None:
        self._medium.note(kind, this.clients[this.with_status(status)])

    def _appoint_jammer(self, this: Round, slot_opens: simpy.Event) -> int | None:
        """Start the jammer; where its role goes round, the clients present take turns and the jammer does not train.

        Returns:
            The position of the client that jams, None where the jammer is a node of its own or there is none.
        """
        if not self._parts.jams:
            return None
        if not self._parts.uplink.rotating_jammer:
            self._env.process(jammer(self._medium, JAMMER_NODE, slot_opens))
            return None
        present = this.with_status(Status.PARTICIPATED)
        if len(present) < 2:
            return None
        position = int(present[this.index % len(present)])
        this.status[position] = Status.JAMMING
        self._env.process(jammer(self._medium, int(this.clients[position]), slot_opens))
        return position

    def _train(self, this: Round, slot_opens: simpy.Event) -> Process:
        """Broadcast the model, let the clients work, close the window and sort out who did not make it."""
        parts, env = self._parts, self._env
        dimension = parts.learner.dimension
        self._medium.note(EventKind.BROADCAST, SERVER_NODE, BITS_PER_PARAMETER * dimension)
        arrives = self._medium.occupy(parts.timing.downlink_time(dimension))
        active = this.with_status(Status.PARTICIPATED)
        processes = self._start_clients(this, active, arrives, slot_opens)
        yield arrives
        self._medium.note(EventKind.COMPUTE_START, this.clients[active])
        window = self._window = Window(env, parts.wait_for, len(this.clients), set(processes))
        yield window.closed
        self._window = None
        late, crashed = sorted(window.outstanding), sorted(window.crashed)
        for position in late:
            processes[position].interrupt()
        this.status[late] = Status.LATE
        this.status[crashed] = Status.CRASHED

    def _start_clients(
        self, this: Round, active: NDArray[np.int64], arrives: simpy.Event, slot_opens: simpy.Event
    ) -> dict[int, simpy.Process]:
        """A process for each client that takes part, in ascending order, with what this round has in store for it."""
        parts = self._parts
        streams, clients = parts.network.streams, this.clients[active]
        samples = parts.learner.samples_processed(parts.network.registry.samples[clients])
        compute_time = parts.timing.compute_time(samples, clients, this.index, streams)
        crash_after = parts.faults.crash_after(clients, this.index, streams)
        this.put("compute_time", active, compute_time)
        crashes = crash_after < compute_time
        return {
            position: self._env.process(
                client(
                    self._medium,
                    position,
                    node,
                    ticks(duration),
                    ticks(survival) if crash else None,
                    arrives,
                    slot_opens,
                )
            )
            for position, node, duration, survival, crash in zip(
                active.tolist(), clients.tolist(), compute_time.tolist(), crash_after.tolist(), crashes, strict=True
            )
        }

    def _update(self, this: Round, plan: SlotPlan) -> None:
        """Compute the training of those who are heard, superpose, and step the global model."""
        parts, state = self._parts, self._state
        blocks = parts.learner.train(state, this.clients[plan.senders], this.index)
        reception = parts.uplink.receive(this, plan, blocks)
        self._medium.note(EventKind.SUPERPOSE, SERVER_NODE)
        local = parts.learner.releases(this.index, this.clients[plan.senders], reception.secure_sum)
        # Where clients add noise of their own, that the uplink adds none is no release of its own.
        this.releases = local + tuple(r for r in reception.releases if not (local and isinstance(r, BareRelease)))
        for release in this.releases:
            self._ledger.add(release)
        weight = parts.network.registry.weight(this.clients[plan.senders])
        this.values["train_loss"] = float(np.average(this.train_loss[plan.senders], weights=weight))
        if parts.faults.battery_j is not None:
            state.battery_used_j[this.clients[plan.senders]] += reception.battery_drain_j
        parts.learner.update(state, reception.aggregate, this.index)
        self._medium.note(EventKind.AGGREGATE, SERVER_NODE)

    def _close_the_books(self, this: Round) -> None:
        """Test the global model, and bring the state to the end of the round."""
        state, learner = self._state, self._parts.learner
        this.values["test_accuracy"], this.values["test_loss"] = learner.evaluate(state.parameters, this.index)
        self._medium.note(EventKind.EVALUATE, SERVER_NODE)
        this.values["sim_time"] = seconds(self._medium.now)
        this.values["epsilon_published"] = self._ledger.epsilon_published()
        this.values["epsilon_accounted"] = self._ledger.epsilon_accounted()
        state.round_index = this.index
        state.clock = self._medium.now
        state.energy_j += this.values["energy"]
        state.ledger = self._ledger.state()
