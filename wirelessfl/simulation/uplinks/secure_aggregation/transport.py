"""Messages of one round of secure aggregation: their transport, their costs by stage, and the clients that answer."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.secagg import Message, Stage
from wirelessfl.simulation.cell import Cell, ClientTraining, train
from wirelessfl.simulation.medium import AirTime, Medium, ProtocolMessage, Report, ticks
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.digital.round_links import RoundLinks
from wirelessfl.trace import EventKind, SecAggStage, Status

COLUMNS = ("messages_up", "bits_up", "messages_down", "bits_down", "seconds", "energy", "dropouts", "refused")


class StageCosts:
    """Sums per stage: messages and bits sent in either direction, seconds, joules, and who was not heard.

    A message counts when it begins to be sent, also where it is cut short or refused.

    Attributes:
        table: (stages,) float64 of each column.
    """

    def __init__(self) -> None:
        self.table: dict[str, NDArray[np.float64]] = {name: np.zeros(len(SecAggStage)) for name in COLUMNS}

    def uplink(self, stage: SecAggStage, bits: float) -> None:
        """A client begins to send."""
        self.add(stage, messages_up=1.0, bits_up=bits)

    def downlink(self, stage: SecAggStage, bits: float) -> None:
        """The server begins to send."""
        self.add(stage, messages_down=1.0, bits_down=bits)

    @property
    def energy(self) -> float:
        """Joules of all stages; NaN where watts are unknown."""
        return float(self.table["energy"].sum())

    def add(self, stage: SecAggStage, **amounts: float) -> None:
        """Addition to some columns."""
        for name, amount in amounts.items():
            self.table[name][stage] += amount


_COLUMN = {
    Stage.ADVERTISE_KEYS: SecAggStage.ADVERTISE_KEYS,
    Stage.SHARE_KEYS: SecAggStage.SHARE_KEYS,
    Stage.MASKED_INPUT: SecAggStage.MASKED_INPUT,
    Stage.UNMASK: SecAggStage.UNMASK,
}
_EVENT = {
    Stage.ADVERTISE_KEYS: EventKind.ADVERTISE_KEYS,
    Stage.SHARE_KEYS: EventKind.SHARE_KEYS,
    Stage.MASKED_INPUT: EventKind.MASKED_INPUT,
    Stage.UNMASK: EventKind.UNMASK,
}


def column_of(stage: Stage) -> SecAggStage:
    """The stage of the protocol as the trace numbers it."""
    return _COLUMN[stage]


class Transport:
    """Transport of messages between the server and the clients of one round.

    Attributes:
        air_time: who was on the air, by stage.
        costs: messages and bits.
        lost: status of clients, by position, that will not be heard again.
        losses_show: whether the server notices a loss at once; else it has to wait until its time is up.
        first_message_at: when the first message of the stage under way was sent, in ticks; None before.
    """

    def __init__(
        self,
        cell: Cell,
        this: Round,
        positions: NDArray[np.int64],
        links: RoundLinks,
        vanishing: NDArray[np.float64],
        costs: StageCosts,
    ) -> None:
        """Transport for the clients at ``positions``.

        Args:
            cell: the cell.
            this: the round.
            positions: (m,) who takes part.
            links: of the clients.
            vanishing: (n, messages) share of its first, second, ... message after which the client at each position
                vanishes for good; NaN where it does not.
            costs: of the round.
        """
        self.air_time = AirTime()
        self.costs = costs
        self.lost: dict[int, Status] = {}
        self.losses_show = True
        self.first_message_at: int | None = None
        self._cell = cell
        self._medium = cell.medium
        self._this = this
        self._links = links
        self._vanishing = vanishing
        self._sent = np.zeros(len(this.clients), dtype=np.int64)
        self._inboxes = {position: simpy.Store(cell.medium.env) for position in positions.tolist()}

    def inbox(self, position: int) -> simpy.Store:
        """The client's inbox."""
        return self._inboxes[position]

    def reaches_server(self, position: int) -> bool:
        """Whether the client's channel lets it send at all; if not, that is noted."""
        if self._links.at(position, self._medium.now).sends:
            return True
        self._lose(position, Status.DEEP_FADE, EventKind.DEEP_FADE)
        return False

    def send(self, message: ProtocolMessage) -> Generator[simpy.Event, Any, bool]:
        """A client sends to the server; returns whether the message arrived, in time or not."""
        position, medium = message.position, self._medium
        if not self.reaches_server(position):
            return False
        link = self._links.at(position, medium.now, message.bits)
        node = int(self._this.clients[position])
        share = float(self._vanishing[position, self._sent[position]])
        self._sent[position] += 1
        self._begin()
        medium.note(_EVENT[message.stage], node, message.bits)
        self.costs.uplink(column_of(message.stage), message.bits)
        vanishes = not np.isnan(share)
        duration = ticks(link.duration(message.bits * share if vanishes else message.bits))
        yield from self.air_time.send(medium, position, duration, column_of(message.stage), link.active)
        if vanishes:
            self._lose(position, Status.CRASHED, EventKind.VANISH)
            return False
        if not link.delivers:
            self._lose(position, Status.OUTAGE, EventKind.OUTAGE)
            return False
        medium.note(EventKind.ARRIVE, node, message.bits)
        medium.send(message)
        return True

    def _begin(self) -> None:
        if self.first_message_at is None:
            self.first_message_at = self._medium.now

    def _lose(self, position: int, status: Status, kind: EventKind) -> None:
        self._medium.note(kind, int(self._this.clients[position]))
        self.lost[position] = status
        if self.losses_show:
            self._medium.send(Report(position, status))

    def delivery_time(self, messages: Sequence[Message]) -> float:
        """Seconds in which the server sends its messages, one after the other."""
        return sum(message.bits for message in messages) / self._cell.timing.downlink_bps

    def deliver(self, stage: SecAggStage, messages: Sequence[Message]) -> Generator[simpy.Event, Any, None]:
        """The server sends to its clients, one after the other, until it is done or interrupted."""
        position_of = {int(node): position for position, node in enumerate(self._this.clients)}
        self._begin()
        with suppress(simpy.Interrupt):
            for message in messages:
                self.costs.downlink(stage, message.bits)
                yield self._medium.occupy(message.bits / self._cell.timing.downlink_bps)
                self._medium.note(EventKind.REQUEST, message.receiver, message.bits)
                self._inboxes[position_of[message.receiver]].put(message)


class ClientSide(ABC):
    """The client's side of a protocol: what each client sends."""

    @abstractmethod
    def opening(self, position: int) -> ProtocolMessage | None:
        """What a client says once it has trained; None for a report that takes no time."""

    @abstractmethod
    def answer(self, position: int, request: Message) -> ProtocolMessage:
        """A client's answer to a message of the server."""


def protocol_client(
    medium: Medium, training: ClientTraining, transport: Transport, protocol: ClientSide
) -> Generator[simpy.Event, Any, None]:
    """Train, then take part in secure aggregation: answer the server for as long as it asks.

    Args:
        medium: carries reports.
        training: the client's round.
        transport: carries the messages of the protocol.
        protocol: says what the client says.
    """
    busy = True
    try:
        if not (yield from train(medium, training)) or not transport.reaches_server(training.position):
            return
        message = protocol.opening(training.position)
        if message is None:
            medium.send(Report(training.position))
        while message is None or (yield from transport.send(message)):
            busy = False
            request = yield transport.inbox(training.position).get()
            busy = True
            message = protocol.answer(training.position, request)
    except simpy.Interrupt:
        if busy:
            medium.note(EventKind.LATE, training.node)
