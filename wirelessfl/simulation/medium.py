"""The medium carries messages between nodes and keeps the log of what happened when.

Control messages take no time (they are tiny beside a model); the broadcast of the model and the uplink slot take
the time that the radio gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.clock import seconds, ticks
from wirelessfl.simulation.messages import Message
from wirelessfl.trace import EventBatch, EventKind


class EventLog:
    """The events since the last drain; one call adds one row or many, at any one instant."""

    def __init__(self) -> None:
        """An empty log."""
        self._rows: list[tuple[int, EventKind, NDArray[np.int64], float]] = []

    def add(self, now: int, kind: EventKind, nodes: NDArray[np.int64], bits: float) -> None:
        """Log ``kind`` at ``now`` ticks for an array of nodes."""
        self._rows.append((now, kind, nodes, bits))

    def drain(self) -> EventBatch:
        """All rows since the last drain, as columns."""
        rows, self._rows = self._rows, []
        lengths = [len(nodes) for _, _, nodes, _ in rows]
        return EventBatch(
            time=np.repeat([seconds(now) for now, _, _, _ in rows], lengths),
            node=np.concatenate([nodes for _, _, nodes, _ in rows] or [np.zeros(0, dtype=np.int64)]),
            kind=np.repeat(np.array([int(kind) for _, kind, _, _ in rows], dtype=np.uint8), lengths),
            bits=np.repeat(np.array([bits for _, _, _, bits in rows], dtype=np.float64), lengths),
        )


class Medium:
    """Delivers messages to the server and times broadcasts and slots."""

    def __init__(self, env: simpy.Environment, *, log_events: bool) -> None:
        """A medium in ``env``; without ``log_events`` nothing is kept."""
        self.env = env
        self.log = EventLog()
        self._log_events = log_events
        self._deliver: Callable[[Message], None] | None = None

    @property
    def now(self) -> int:
        """The simulated time in ticks."""
        return int(self.env.now)

    def note(self, kind: EventKind, nodes: int | NDArray[np.int64], bits: float = math.nan) -> None:
        """Write what happens now at a node, or at each of several, to the log."""
        if self._log_events:
            self.log.add(self.now, kind, np.atleast_1d(np.asarray(nodes, dtype=np.int64)), bits)

    def listen(self, deliver: Callable[[Message], None]) -> None:
        """Name the server's inbox."""
        self._deliver = deliver

    def send(self, message: Message) -> None:
        """Deliver a control message to the server at this instant."""
        if self._deliver is None:
            raise RuntimeError("a message was sent before any server listens")
        self._deliver(message)

    def occupy(self, duration_s: float) -> simpy.Event:
        """The channel is in use for a while: a model broadcast or an uplink slot; the event fires at its end."""
        return self.env.timeout(ticks(duration_s))
