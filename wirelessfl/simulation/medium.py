"""The medium carries messages between nodes and keeps the log of what happened when.

Control messages take no time (they are tiny beside a model); the broadcast of the model and the uplink slot take
the time that the radio gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.clock import seconds, ticks
from wirelessfl.simulation.messages import Message
from wirelessfl.trace import JAMMER, SERVER, EventBatch

__all__ = ["JAMMER", "SERVER", "EventLog", "Medium"]


@dataclass
class EventLog:
    """The events of one round; columns grow together, one call may add one row or many."""

    time: list[NDArray[np.float64]] = field(default_factory=list)
    node: list[NDArray[np.int64]] = field(default_factory=list)
    kind: list[tuple[str, int]] = field(default_factory=list)
    bits: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, now: int, kind: str, nodes: int | NDArray[np.int64], bits: float = 0.0) -> None:
        """Log ``kind`` at ``now`` ticks for a node or for an array of nodes."""
        rows = np.atleast_1d(np.asarray(nodes, dtype=np.int64))
        self.time.append(np.full(len(rows), seconds(now)))
        self.node.append(rows)
        self.kind.append((kind, len(rows)))
        self.bits.append(np.full(len(rows), float(bits)))

    def drain(self) -> EventBatch:
        """All rows so far, as one batch; the log is empty afterwards."""
        kinds = [kind for kind, count in self.kind for _ in range(count)]
        empty = np.zeros(0)
        batch = EventBatch(
            time=np.concatenate(self.time or [empty]),
            node=np.concatenate(self.node or [empty.astype(np.int64)]),
            kind=kinds,
            bits=np.concatenate(self.bits or [empty]),
        )
        self.__init__()  # type: ignore[misc]
        return batch


class Medium:
    """Delivers messages to the server and times broadcasts and slots."""

    def __init__(self, env: simpy.Environment, *, log_events: bool) -> None:
        """A medium in ``env``; without ``log_events`` nothing is kept."""
        self.env = env
        self.log = EventLog()
        self._log_events = log_events
        self._deliver: Callable[[Message], None] | None = None

    def note(self, kind: str, nodes: int | NDArray[np.int64], bits: float = 0.0) -> None:
        """Write what happens now to the log."""
        if self._log_events:
            self.log.add(self.env.now, kind, nodes, bits)  # type: ignore[arg-type]

    def listen(self, deliver: Callable[[Message], None]) -> None:
        """Name the server's inbox."""
        self._deliver = deliver

    def send(self, message: Message) -> None:
        """Deliver a control message to the server at this instant."""
        assert self._deliver is not None, "nobody listens"
        self._deliver(message)

    def broadcast(self, bits: float, duration_s: float) -> simpy.Event:
        """The server's model broadcast; the event fires at every client when it has arrived."""
        self.note("broadcast", SERVER, bits)
        return self.env.timeout(ticks(duration_s))

    def slot(self, duration_s: float) -> simpy.Event:
        """The uplink slot; the event fires when it is over."""
        return self.env.timeout(ticks(duration_s))
