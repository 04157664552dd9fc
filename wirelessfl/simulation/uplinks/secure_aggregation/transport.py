"""Transport of the messages of one round of secure aggregation, with their costs by stage."""

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.radio import Link
from wirelessfl.secagg import Message, Stage
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.medium import ProtocolMessage, Report
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

    @property
    def energy(self) -> float:
        """Joules of all stages; NaN where watts are unknown."""
        return float(self.table["energy"].sum())

    def add(self, stage: SecAggStage, **amounts: float) -> None:
        """Addition to some columns."""
        for name, amount in amounts.items():
            self.table[name][stage] += amount


def column_of(stage: Stage) -> SecAggStage:
    """The stage of the protocol as the trace numbers it."""
    return SecAggStage[stage.name]


class Transport:
    """Transport of messages between the server and the clients of one round.

    Attributes:
        air_time: who was on the air, by stage.
        costs: messages and bits.
        lost: status of clients, by position, that will not be heard again.
        losses_show: whether the server notices a loss at once; else it has to wait until its time is up.
        inboxes: messages of the server to each client, by position.
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
        grant_ticks: int = 0,
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
            grant_ticks: from a client's request for the band to its grant, before each message.
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
        self._grant_ticks = grant_ticks
        self._sent = np.zeros(len(this.clients), dtype=np.int64)
        self.inboxes = {position: simpy.Store(cell.medium.env) for position in positions.tolist()}

    def reaches_server(self, position: int, stage: Stage) -> Generator[simpy.Event, Any, bool]:
        """Whether the channel of a client that has no message yet lets it send at all; if not, that is noted."""
        link = self._links.at(position, self._medium.now)
        if link.sends:
            return True
        if link.pilot_s > 0:
            yield from self._granted()
        yield from self._stays_silent(position, link, stage)
        return False

    def send(self, message: ProtocolMessage) -> Generator[simpy.Event, Any, bool]:
        """A client sends to the server; returns whether the message arrived, in time or not.

        What its channel is at the instant of the grant decides whether it sends; it asks for no grant where a channel
        that stays as it is would not let it.
        """
        position, medium = message.position, self._medium
        foreseen = self._links.foreseen(position)
        if foreseen is None or foreseen.sends or foreseen.pilot_s > 0:
            yield from self._granted()
        link = self._links.at(position, medium.now, message.bits)
        if not link.sends:
            yield from self._stays_silent(position, link, message.stage)
            return False
        node = int(self._this.clients[position])
        share = float(self._vanishing[position, self._sent[position]])
        self._sent[position] += 1
        self._begin()
        medium.note(EventKind[message.stage.name], node, message.bits)
        self.costs.add(column_of(message.stage), messages_up=1.0, bits_up=message.bits)
        vanishes = not np.isnan(share)
        bits = message.bits * share if vanishes else message.bits
        yield from self.air_time.send(medium, position, link, bits, column_of(message.stage))
        if vanishes:
            self._lose(position, Status.CRASHED, EventKind.VANISH)
            return False
        if not link.delivers:
            self._lose(position, Status.OUTAGE, EventKind.OUTAGE)
            return False
        medium.note(EventKind.ARRIVE, node, message.bits)
        medium.send(message)
        return True

    def _granted(self) -> Generator[simpy.Event, Any, None]:
        # From a client's request for the band to its grant
        if self._grant_ticks:
            yield self._medium.env.timeout(self._grant_ticks)

    def _stays_silent(self, position: int, link: Link, stage: Stage) -> Generator[simpy.Event, Any, None]:
        # A deep fade, behind the pilots that show it
        if link.pilot_s > 0:
            yield from self.air_time.send(self._medium, position, link, 0.0, column_of(stage))
        self._lose(position, Status.DEEP_FADE, EventKind.DEEP_FADE)

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
                self.costs.add(stage, messages_down=1.0, bits_down=message.bits)
                yield self._medium.occupy(message.bits / self._cell.timing.downlink_bps)
                self._medium.note(EventKind.REQUEST, message.receiver, message.bits)
                self.inboxes[position_of[message.receiver]].put(message)
