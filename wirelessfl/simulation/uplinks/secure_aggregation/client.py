"""A client of secure aggregation: local training, then an answer to every request of the server."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.secagg import Message
from wirelessfl.simulation.client import ClientTraining, train
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import ProtocolMessage, Report
from wirelessfl.simulation.uplinks.secure_aggregation.transport import Transport
from wirelessfl.trace import EventKind


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
