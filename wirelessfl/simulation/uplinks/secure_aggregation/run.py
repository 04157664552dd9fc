"""One round of a protocol of secure aggregation: the part common to all protocols."""

import math
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.secagg import Message, RingVector, RoundAborted, RoundResult, Stage
from wirelessfl.simulation import messages
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.clock import seconds
from wirelessfl.simulation.messages import ProtocolMessage, Report
from wirelessfl.simulation.records import TrainingRecord
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.digital.round_links import RoundLinks
from wirelessfl.simulation.uplinks.secure_aggregation.client import ClientSide, protocol_client
from wirelessfl.simulation.uplinks.secure_aggregation.costs import StageCosts
from wirelessfl.simulation.uplinks.secure_aggregation.transport import Transport, column_of
from wirelessfl.simulation.uplinks.secure_aggregation.uploads import SecureUploads
from wirelessfl.simulation.window import WaitFor, Window
from wirelessfl.trace import SERVER_NODE, EventKind, Status

Outcome = RoundResult | RoundAborted


class ProtocolRun(ClientSide):
    """One round: a process for each client, stages that the server opens and closes, and a sum or none.

    Clients train first and aggregate afterwards. A masked input is sent in simulated time only; its numbers are
    computed together with those of all others that arrived in time.

    Attributes:
        transport: carries the messages.
        threshold: share holders that recover a secret; NaN where there are no shares.
        neighbours: clients that each client exchanges masks with, as planned.
        attempts: attempts at the sum so far.
        present: (m,) positions of the clients that are there.
        window: of the stage under way; its ``ready`` are those heard in it.
    """

    def __init__(self, uplink: SecureUploads, cell: Cell, this: Round, costs: StageCosts) -> None:
        self.uplink = uplink
        self.cell = cell
        self.this = this
        self.present = this.with_status(Status.PARTICIPATED)
        links, vanishing = RoundLinks(uplink.links, this, self.present), uplink.vanishing(this, cell.network.streams)
        self.transport = Transport(cell, this, self.present, links, vanishing, costs)
        self.window: Window
        self.threshold = math.nan
        self.neighbours = math.nan
        self.attempts = 0
        self._deadline: int | None = None
        self._processes: list[simpy.Process] = []

    @abstractmethod
    def accepts(self, message: ProtocolMessage) -> bool:
        """Whether the server takes a message that has arrived; a late one is refused."""

    @abstractmethod
    def protocol(self) -> Generator[simpy.Event, Any, Outcome]:
        """The server's side, from the end of the first window on."""

    def play(self) -> Generator[simpy.Event, Any, Outcome]:
        """The whole round, from the broadcast of the model to the sum."""
        medium, env = self.cell.medium, self.cell.medium.env
        arrives = self.cell.broadcast()
        trainings = self.cell.training_times(self.this, self.present).by_client(arrives)
        self._processes = [env.process(protocol_client(medium, one, self.transport, self)) for one in trainings]
        yield arrives
        closes_after = self.cell.wait_for.closes_after()
        self._deadline = None if closes_after is None else medium.now + closes_after
        medium.note(EventKind.COMPUTE_START, self.this.clients[self.present])
        self.window = Window(env, self.cell.wait_for, len(self.this.clients), set(self.present.tolist()))
        medium.listen(self._receive)
        yield self.window.closed
        outcome = yield from self.protocol()
        for process in self._processes:
            if process.is_alive:
                process.interrupt()
        yield medium.occupy(0.0)  # those who were interrupted stop sending
        return outcome

    def ask(self, stage: Stage, requests: Sequence[Message]) -> simpy.Event:
        """Requests, and the wait for the answers of all clients that are asked; the event fires when that is over.

        The deadline of the round is that of all its stages: what comes after it counts for nothing.
        """
        env, timeout = self.cell.medium.env, self.uplink.stage_timeout_s
        self.transport.losses_show = timeout is None
        limits = [] if timeout is None else [self.transport.delivery_time(requests) + timeout]
        if self._deadline is not None:
            limits.append(seconds(max(0, self._deadline - self.cell.medium.now)))
        nodes = [request.receiver for request in requests]
        asked = set(np.searchsorted(self.this.clients, nodes).tolist())
        self.window = Window(env, WaitFor(deadline_s=min(limits, default=None)), len(asked), asked)
        self._processes.append(env.process(self.transport.deliver(column_of(stage), requests)))
        return self.window.closed

    def close(self, stage: Stage, expected: int) -> None:
        """Account for a stage that is over, in which so many clients should have been heard."""
        medium, transport = self.cell.medium, self.transport
        if self.window.outstanding:
            medium.note(EventKind.TIME_OUT, SERVER_NODE)
        began = medium.now if transport.first_message_at is None else transport.first_message_at
        transport.first_message_at = None
        duration = seconds(medium.now - began)
        transport.costs.add(column_of(stage), seconds=duration, dropouts=expected - len(self.window.ready))

    def compute_inputs(self, positions: NDArray[np.int64], take: Callable[[int, RingVector], None]) -> None:
        """Positions and encoded inputs of the clients at ``positions``, which train block by block."""
        if not len(positions):
            return
        this, encoding, network = self.this, self.uplink.encoding, self.cell.network
        for block in self.cell.train(this, positions):
            members = positions[block.positions]
            this.training.append(TrainingRecord.of(members, block))
            for position, update in zip(members.tolist(), block.updates.cpu().numpy(), strict=True):
                node = int(this.clients[position])
                generator = network.streams.generator("fixed_point", this.index, node)
                take(position, encoding.encode(update, int(network.registry.samples[node]), generator))

    def masked_input(self, position: int, session: bytes) -> ProtocolMessage:
        """A masked input as it is sent, before its numbers are known."""
        return ProtocolMessage(position, session, Stage.MASKED_INPUT, self.uplink.payload_bits, None)

    def _receive(self, message: messages.Message) -> None:
        if isinstance(message, ProtocolMessage) and not self.accepts(message):
            self.transport.costs.add(column_of(message.stage), refused=1.0)
            self.cell.medium.note(EventKind.REFUSE, int(self.this.clients[message.position]))
            return
        if isinstance(message, Report) and message.outcome == Status.CRASHED:
            self.transport.lost[message.position] = Status.CRASHED
        self.window.take(message)
