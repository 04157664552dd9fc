"""A client of secure aggregation: local training, then an answer to every request of the server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.secagg import Message
from wirelessfl.simulation.client import Job, train
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Letter, Ready
from wirelessfl.simulation.uplinks.secure_aggregation.post import Post
from wirelessfl.trace import EventKind


class ClientSide(ABC):
    """The client's side of a protocol: what each client sends."""

    @abstractmethod
    def opening(self, position: int) -> Letter | None:
        """What a client says once it has trained; None for a report that takes no time."""

    @abstractmethod
    def answer(self, position: int, request: Message) -> Letter:
        """A client's answer to a message of the server."""


def protocol_client(medium: Medium, job: Job, post: Post, protocol: ClientSide) -> Generator[simpy.Event, Any, None]:
    """Train, then take part in secure aggregation: answer the server for as long as it asks.

    Args:
        medium: carries reports.
        job: the client's round.
        post: carries the messages of the protocol.
        protocol: says what the client says.
    """
    busy = True
    try:
        if not (yield from train(medium, job)) or not post.reaches_server(job.position):
            return
        letter = protocol.opening(job.position)
        if letter is None:
            medium.send(Ready(job.position))
        while letter is None or (yield from post.send(letter)):
            busy = False
            request = yield post.inbox(job.position).get()
            busy = True
            letter = protocol.answer(job.position, request)
    except simpy.Interrupt:
        if busy:
            medium.note(EventKind.LATE, job.node)
