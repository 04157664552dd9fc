"""One round of secure aggregation: the part common to its protocols."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning.compression import SparseUploads
from wirelessfl.radio.recorded_links import UploadLinks
from wirelessfl.secagg import HEADER_BITS, Message, RingVector, RoundAborted, RoundResult, Stage, SumEncoding
from wirelessfl.simulation.cell import Cell, ClientTraining, train
from wirelessfl.simulation.medium import Incoming, ProtocolMessage, Report, seconds, ticks
from wirelessfl.simulation.records import Round, TrainingRecord
from wirelessfl.simulation.uplinks.digital.round_links import RoundLinks
from wirelessfl.simulation.uplinks.secure_aggregation.transport import (
    StageCosts,
    Transport,
    column_of,
)
from wirelessfl.simulation.window import WaitFor, Window
from wirelessfl.streams import Streams
from wirelessfl.trace import SERVER_NODE, EventKind, Status

Outcome = RoundResult | RoundAborted


@dataclass(frozen=True, kw_only=True)
class SecureUploads:
    """Uploads under secure aggregation: masked inputs, and how long the server waits for them.

    Attributes:
        links: of the clients.
        encoding: how updates become elements of the ring.
        stage_timeout_s: how long the server waits for answers; None where it notices who is lost.
        vanish_probability: that a client vanishes while it sends its first, second, ... message of a round.
        sparse: which coordinates are sent; None for all.
    """

    links: UploadLinks
    encoding: SumEncoding
    stage_timeout_s: float | None
    vanish_probability: tuple[float, ...]
    sparse: SparseUploads | None = None

    @property
    def payload_bits(self) -> int:
        """Size of a masked input."""
        return HEADER_BITS + self.encoding.ring.bits * self.encoding.length

    def sparse_of(self, this: Round, streams: Streams) -> SparseUploads | None:
        """The coordinates that are sent in a round; None for all."""
        return None if self.sparse is None else self.sparse.drawn(streams.generator("common_coordinates", this.index))

    def vanishing(self, this: Round, streams: Streams) -> NDArray[np.float64]:
        """(n, messages) share of each message of a round that a client sends before it vanishes; NaN where it stays."""
        probability = np.array(self.vanish_probability)
        drawn = streams.nodes("vanish", this.index, this.clients).uniform(2 * len(probability))
        decides, moment = np.split(drawn, 2, axis=1)
        return np.where(decides < probability, moment, np.nan)


class ProtocolRun(ABC):
    """One round: a process for each client, stages that the server opens and closes, and a sum or none.

    Clients train first and aggregate afterwards. A masked input is sent in simulated time only; its numbers are
    computed together with those of all others that arrived in time.

    Attributes:
        transport: carries the messages.
        threshold: share holders that recover a secret; NaN where there are no shares.
        neighbours: clients with which each client has masks in common, as planned.
        attempts: attempts at the sum so far.
        present: (m,) positions of the clients that are there.
        window: of the stage under way; its ``ready`` are those heard in it.
    """

    first_stage: ClassVar[Stage]
    """That of a client's first message."""

    def __init__(self, uplink: SecureUploads, cell: Cell, this: Round, costs: StageCosts) -> None:
        self.uplink = uplink
        self.cell = cell
        self.this = this
        self.present = this.with_status(Status.PARTICIPATED)
        links, vanishing = RoundLinks(uplink.links, this, self.present), uplink.vanishing(this, cell.network.streams)
        self.transport = Transport(cell, this, self.present, links, vanishing, costs, ticks(uplink.links.grant_s))
        self.window: Window
        self.threshold = math.nan
        self.neighbours = math.nan
        self.attempts = 0
        self._deadline: int | None = None
        self._processes: list[simpy.Process] = []

    @abstractmethod
    def opening(self, position: int) -> ProtocolMessage | None:
        """First message of a client that has trained; None for a report that takes no time."""

    @abstractmethod
    def answer(self, position: int, request: Message) -> ProtocolMessage:
        """A client's answer to a message of the server."""

    @abstractmethod
    def accepts(self, message: ProtocolMessage) -> bool:
        """Whether the server takes a message that has arrived; a late one is refused."""

    @abstractmethod
    def protocol(self) -> Generator[simpy.Event, Any, Outcome]:
        """The server's side, from the end of the first window on."""

    def play(self) -> Generator[simpy.Event, Any, Outcome]:
        """The whole round, from the broadcast of the model to the sum."""
        medium, env = self.cell.medium, self.cell.medium.env
        arrives = self.cell.broadcast(self.this)
        trainings = self.cell.training_times(self.this, self.present).by_client(arrives)
        self._processes = [env.process(self._client(one)) for one in trainings]
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

    def _client(self, training: ClientTraining) -> Generator[simpy.Event, Any, None]:
        # Training, then an answer to every request of the server, for as long as it asks
        medium, transport, position, busy = self.cell.medium, self.transport, training.position, True
        try:
            if not (yield from train(medium, training)):
                return
            message = self.opening(position)
            if message is None:
                if not (yield from transport.reaches_server(position, self.first_stage)):
                    return
                medium.send(Report(position))
            while message is None or (yield from transport.send(message)):
                busy = False
                request = yield transport.inboxes[position].get()
                busy = True
                message = self.answer(position, request)
        except simpy.Interrupt:
            if busy:
                medium.note(EventKind.LATE, training.node)

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
        sparse = self.uplink.sparse_of(this, network.streams)
        for block in self.cell.train(this, positions):
            members, updates = positions[block.positions], block.updates.cpu().numpy()
            this.training.append(TrainingRecord.of(members, block))
            sent = updates if sparse is None else sparse.reduced(updates)
            if this.roles is not None:  # no encoding holds more of one that scales its update
                bound = encoding.fixed_point.bound
                sent = np.clip(sent, -bound, bound)
            for position, update in zip(members.tolist(), sent, strict=True):
                node = int(this.clients[position])
                generator = network.streams.generator("fixed_point", this.index, node)
                take(position, encoding.encode(update, int(network.registry.samples[node]), generator))

    def masked_input(self, position: int, session: bytes) -> ProtocolMessage:
        """A masked input as it is sent, before its numbers are known."""
        return ProtocolMessage(position, session, Stage.MASKED_INPUT, self.uplink.payload_bits, None)

    def _receive(self, message: Incoming) -> None:
        if isinstance(message, ProtocolMessage) and not self.accepts(message):
            self.transport.costs.add(column_of(message.stage), refused=1.0)
            self.cell.medium.note(EventKind.REFUSE, int(self.this.clients[message.position]))
            return
        if isinstance(message, Report) and message.outcome == Status.CRASHED:
            self.transport.lost[message.position] = Status.CRASHED
        self.window.take(message)
