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

from wirelessfl.simulation.clock import all_seconds, ticks
from wirelessfl.simulation.messages import Message
from wirelessfl.trace import EventBatch, EventKind


class EventLog:
    """The events since the last drain, in plain lists: most come one at a time, for which arrays are slow.

    What happens at several nodes at one instant is one entry, with its number of nodes.
    """

    def __init__(self) -> None:
        """An empty log."""
        self._ticks: list[int] = []
        self._bits: list[float] = []
        self._counts: list[int] = []
        self._kinds: list[int] = []
        self._nodes: list[int] = []

    def add(self, now: int, kind: EventKind, node: int, bits: float) -> None:
        """Log ``kind`` at ``now`` ticks for a node."""
        self._ticks.append(now)
        self._bits.append(bits)
        self._counts.append(1)
        self._kinds.append(kind)
        self._nodes.append(node)

    def add_all(self, now: int, kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float) -> None:
        """Log (n,) kinds at ``now`` ticks for (n,) nodes, in their order."""
        self._ticks.append(now)
        self._bits.append(bits)
        self._counts.append(len(nodes))
        self._kinds += kinds.tolist()
        self._nodes += nodes.tolist()

    def add_past(self, times: list[int], kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float) -> None:
        """Log (n,) kinds at (n,) ticks for (n,) nodes."""
        self._ticks += times
        self._bits += [bits] * len(times)
        self._counts += [1] * len(times)
        self._kinds += kinds.tolist()
        self._nodes += nodes.tolist()

    def drain(self) -> EventBatch:
        """All rows since the last drain, as columns."""
        batch = EventBatch(
            time=np.repeat(all_seconds(self._ticks), self._counts),
            node=np.array(self._nodes, dtype=np.int64),
            kind=np.array(self._kinds, dtype=np.uint8),
            bits=np.repeat(np.array(self._bits, dtype=np.float64), self._counts),
        )
        for column in (self._ticks, self._bits, self._counts, self._kinds, self._nodes):
            column.clear()
        return batch


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
        if isinstance(nodes, np.ndarray):
            self.note_each(np.full(len(nodes), kind, dtype=np.uint8), nodes, bits)
        elif self._log_events:
            self.log.add(self.now, kind, nodes, bits)

    def note_each(self, kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float = math.nan) -> None:
        """Write what happens now at (n,) nodes, (n,) kinds of events, to the log."""
        if self._log_events:
            self.log.add_all(self.now, kinds, nodes, bits)

    def note_past(self, times: list[int], kinds: NDArray[np.uint8], nodes: NDArray[np.int64]) -> None:
        """Write what has happened at (n,) nodes since the last entry, at (n,) ascending ticks, to the log."""
        if self._log_events:
            self.log.add_past(times, kinds, nodes, math.nan)

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
