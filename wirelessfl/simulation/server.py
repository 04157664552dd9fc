"""The parameter server: broadcast, wait, open the slot, update, evaluate, announce."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.privacy import Ledger
from wirelessfl.simulation.client import client
from wirelessfl.simulation.clock import after_all_else, seconds, ticks
from wirelessfl.simulation.faults import Faults
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import SERVER, Medium
from wirelessfl.simulation.messages import Crashed, Message, SlotGrant
from wirelessfl.simulation.network import Network
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.selection import Selection
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.timing import BITS_PER_PARAMETER, Timing, WaitFor
from wirelessfl.simulation.uplinks import Uplink
from wirelessfl.trace import Status


@dataclass(frozen=True)
class Deployment:
    """Everything a server works with, fixed before the run; built from a scenario by ``build``."""

    network: Network
    selection: Selection
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Learner
    uplink: Uplink


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
            announce: called with each finished round; returns False to stop.
        """
        self._medium = medium
        self._env = medium.env
        self._parts = deployment
        self._ledger = ledger
        self._state = state
        self._announce = announce
        self._window: Window | None = None
        medium.listen(self._receive)

    def run(self) -> Generator[simpy.Event, Any, None]:
        """Round after round, until ``announce`` says that it is enough."""
        going_on = True
        while going_on:
            finished = yield from self._round(Round(self._state.round_index + 1, self._select()))
            going_on = self._announce(finished)

    def _select(self) -> NDArray[np.int64]:
        network = self._parts.network
        return self._parts.selection.select(network.registry.count, self._state.round_index + 1, network.streams)

    def _receive(self, message: Message) -> None:
        if self._window is not None:
            self._window.take(message)

    def _round(self, this: Round) -> Generator[simpy.Event, Any, Round]:
        """One round of the protocol."""
        self._check_presence(this)
        jammer = self._parts.uplink.appoint_jammer(this)
        ready, slot_opens = yield from self._train(this)
        yield from self._upload(this, ready, slot_opens, jammer)
        self._evaluate(this)
        return this

    def _check_presence(self, this: Round) -> None:
        """Who of the selected can take part at all."""
        faults, streams = self._parts.faults, self._parts.network.streams
        reachable = faults.availability.available(this.clients, this.index, streams)
        this.status[~reachable] = Status.UNAVAILABLE
        if faults.battery_j is not None:
            empty = self._parts.uplink.battery_used(self._state, this.clients) >= faults.battery_j
            this.status[empty & reachable] = Status.BATTERY_EMPTY
        for status, kind in ((Status.UNAVAILABLE, "unavailable"), (Status.BATTERY_EMPTY, "battery_empty")):
            self._medium.note(kind, this.clients[this.status == status])

    def _train(self, this: Round) -> Generator[simpy.Event, Any, tuple[NDArray[np.int64], simpy.Event]]:
        """Broadcast the model and wait for reports; returns who reported, ascending, and the slot's opening."""
        parts, env = self._parts, self._env
        active = this.with_status(Status.PARTICIPATED)
        clients = this.clients[active]
        streams = parts.network.streams
        processed = parts.learner.samples_processed(parts.network.registry.samples[clients])
        compute = parts.timing.compute_time(processed, clients, this.index, streams)
        crash = parts.faults.crash_after(clients, this.index, streams)
        this.put("compute_time", active, compute)

        dimension = parts.learner.dimension
        arrives = self._medium.broadcast(BITS_PER_PARAMETER * dimension, parts.timing.downlink_time(dimension))
        slot_opens = env.event()
        processes = {
            int(position): env.process(
                client(
                    self._medium,
                    int(position),
                    int(node),
                    ticks(duration),
                    ticks(until_crash) if until_crash < duration else None,
                    arrives,
                    slot_opens,
                )
            )
            for position, node, duration, until_crash in zip(active, clients, compute, crash, strict=True)
        }
        yield arrives
        window = self._window = Window(env, parts.wait_for, len(this.clients), set(processes))
        yield window.closed
        self._window = None
        for position in sorted(window.outstanding):
            processes[position].interrupt()
        this.status[sorted(window.outstanding)] = Status.LATE
        this.status[sorted(window.crashed)] = Status.CRASHED
        return np.array(sorted(window.ready), dtype=np.int64), slot_opens

    def _upload(
        self, this: Round, ready: NDArray[np.int64], slot_opens: simpy.Event, jammer: int | None
    ) -> Generator[simpy.Event, Any, None]:
        """Open the slot for those who reported, hear the superposition, update the model."""
        parts, state = self._parts, self._state
        plan = parts.uplink.plan(this, ready, parts.network, jammer)
        this.status[ready[plan.silent]] = Status.DEEP_FADE
        silent = np.zeros(len(this.clients), dtype=np.bool_)
        silent[ready[plan.silent]] = True
        slot_opens.succeed(SlotGrant(silent, plan.jammer_gain))
        this.values["participants"] = float(len(plan.senders))
        this.values["airtime"] = plan.airtime if len(plan.senders) else 0.0
        if len(plan.senders):
            yield self._medium.slot(plan.airtime)
            blocks = parts.learner.train(state.parameters, this.clients[plan.senders], this.index)
            reception = parts.uplink.receive(this, plan, blocks, parts.network)
            self._ledger.add(reception.release) if reception.release is not None else None
            state.parameters = parts.learner.update(state.parameters, reception.aggregate, this.index)
        self._medium.note("update", SERVER)

    def _evaluate(self, this: Round) -> None:
        """Test the global model and close the books of the round."""
        accuracy, loss = self._parts.learner.evaluate(self._state.parameters, this.index)
        this.values.update(
            test_accuracy=accuracy,
            test_loss=loss,
            sim_time=seconds(self._env.now),  # type: ignore[arg-type]
            epsilon_published=self._ledger.epsilon_published(),
            epsilon_accounted=self._ledger.epsilon_accounted(),
        )


class Window:
    """The time in which the server takes reports.

    It closes when enough clients have reported, when nobody is left who could report, or at the deadline; and
    always after everything else at its instant (see ``clock``).
    """

    def __init__(self, env: simpy.Environment, wait_for: WaitFor, selected: int, started: set[int]) -> None:
        """Open a window for the clients at the positions ``started`` of ``selected`` asked."""
        self.ready: set[int] = set()
        self.crashed: set[int] = set()
        self.outstanding = started
        self.closed = env.event()
        self._env = env
        self._needed = wait_for.needed(selected)
        self._closing = False
        if wait_for.deadline_s is not None:
            after_all_else(env, ticks(wait_for.deadline_s)).callbacks.append(self._close)  # type: ignore[union-attr]
        self._close_if_done()

    def take(self, message: Message) -> None:
        """A report or the news of a crash."""
        self.outstanding.discard(message.position)
        (self.crashed if isinstance(message, Crashed) else self.ready).add(message.position)
        self._close_if_done()

    def _close_if_done(self) -> None:
        if not self._closing and (len(self.ready) >= self._needed or not self.outstanding):
            self._closing = True
            after_all_else(self._env).callbacks.append(self._close)  # type: ignore[union-attr]

    def _close(self, _: simpy.Event) -> None:
        if not self.closed.triggered:
            self.closed.succeed()
