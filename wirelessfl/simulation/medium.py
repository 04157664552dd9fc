"""The medium between nodes: delivery of messages, and the log of events.

Control messages take no time (they are tiny beside a model); the broadcast of the model and the uplink slot take
the time that the radio gives them.
"""

import math
from collections.abc import Callable

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.clock import all_seconds, seconds, ticks
from wirelessfl.simulation.messages import Message
from wirelessfl.trace import EventBatch, EventKind

_Columns = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.float64]]
_NOTHING: _Columns = (np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.zeros(0))


class EventLog:
    """The events since the last drain: batches of those at many nodes, and between them those that come one by one."""

    def __init__(self) -> None:
        self._batches: list[_Columns] = [_NOTHING]
        self._singles: list[tuple[int, int, int, float]] = []

    def add(self, now: int, kind: EventKind, node: int, bits: float) -> None:
        """Entry of ``kind`` at ``now`` ticks for a node."""
        self._singles.append((now, node, kind, bits))

    def add_all(self, now: int, kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float) -> None:
        """Entries of (n,) kinds at ``now`` ticks for (n,) nodes, in their order."""
        self._add_batch(np.full(len(nodes), seconds(now)), nodes, kinds, bits)

    def add_past(self, times: list[int], kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float) -> None:
        """Entries of (n,) kinds at (n,) ticks for (n,) nodes."""
        self._add_batch(all_seconds(times), nodes, kinds, bits)

    def _add_batch(
        self, times: NDArray[np.float64], nodes: NDArray[np.int64], kinds: NDArray[np.uint8], bits: float
    ) -> None:
        if len(nodes):
            self._gather()
            self._batches.append((times, nodes, kinds, np.full(len(nodes), bits)))

    def _gather(self) -> None:
        # What came one by one becomes a batch
        if self._singles:
            times, nodes, kinds, bits = zip(*self._singles, strict=True)
            columns = np.array(nodes, np.int64), np.array(kinds, np.uint8), np.array(bits, np.float64)
            self._batches.append((all_seconds(times), *columns))
            self._singles = []

    def drain(self) -> EventBatch:
        """All rows since the last drain, as columns."""
        self._gather()
        batches, self._batches = self._batches, [_NOTHING]
        return EventBatch(*(np.concatenate(column) for column in zip(*batches, strict=True)))


class Medium:
    """Delivery of messages to the server, and durations of broadcasts and slots."""

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
        """Log entry of an event now at a node, or at each of several."""
        if isinstance(nodes, np.ndarray):
            self.note_each(np.full(len(nodes), kind, dtype=np.uint8), nodes, bits)
        elif self._log_events:
            self.log.add(self.now, kind, nodes, bits)

    def note_each(self, kinds: NDArray[np.uint8], nodes: NDArray[np.int64], bits: float = math.nan) -> None:
        """Log entries of (n,) kinds of events now at (n,) nodes."""
        if self._log_events:
            self.log.add_all(self.now, kinds, nodes, bits)

    def note_past(self, times: list[int], kinds: NDArray[np.uint8], nodes: NDArray[np.int64]) -> None:
        """Log entries of events at (n,) nodes since the last entry, at (n,) ascending ticks."""
        if self._log_events:
            self.log.add_past(times, kinds, nodes, math.nan)

    def listen(self, deliver: Callable[[Message], None]) -> None:
        """Name the server's inbox."""
        self._deliver = deliver

    def send(self, message: Message) -> None:
        """Delivery of a control message to the server at this instant."""
        if self._deliver is None:
            raise RuntimeError("a message was sent before any server listens")
        self._deliver(message)

    def occupy(self, duration_s: float) -> simpy.Event:
        """The channel is in use for a while: a model broadcast or an uplink slot; the event fires at its end."""
        return self.env.timeout(ticks(duration_s))
