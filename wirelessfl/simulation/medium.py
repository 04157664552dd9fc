"""The medium between nodes: simulated time, messages, and the log of events.

Simulated time is integer ticks inside and seconds outside, converted here and nowhere else. Ten steps of 0.1 s do not
make 1.0 in floating point, so that a deadline and an arrival that a user means to coincide would not. SimPy accepts
integers; a tick is a picosecond, far below any symbol time.

Same-instant order. SimPy runs what happens at one instant by priority, then by the order of scheduling. A window
(deadline, wait-for rule) closes *after* everything else at its instant, whatever was scheduled first: a message
that arrives exactly at the deadline is in time, and of several that arrive at the same instant as the last one
needed all count. Clients that begin or end something of their own at one instant do so in ascending order of their
number; those who have waited for the same slot send in the order in which they became ready. Clients whose work goes
on across rounds (asynchronous aggregation) act in the order in which they started.

Control messages take no time (they are tiny beside a model); the broadcast of the model and the uplink slot take
the time that the radio gives them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl import secagg
from wirelessfl.errors import InputError
from wirelessfl.secagg import Stage
from wirelessfl.trace import EventBatch, EventKind, Status

TICKS_PER_SECOND = 10**12
LATEST_TICK = 2**63 - 1
"""The last instant that an array of ticks can hold; times of the simulation itself have no end."""

# Event priority after SimPy's URGENT (0) and NORMAL (1)
_LAST = 2


def ticks(seconds: float) -> int:
    """Whole ticks nearest to a finite duration in seconds."""
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a duration must be finite and not negative, found {seconds} s")
    count = seconds * TICKS_PER_SECOND
    return round(count) if math.isfinite(count) else int(seconds) * TICKS_PER_SECOND  # of integers no product overflows


def all_ticks(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) ticks of (n,) durations, each as ``ticks`` has it.

    Raises:
        InputError: a duration is longer than 63 bits can tell, 106 days.
        ValueError: a duration is negative or not a number.
    """
    if not np.all(seconds >= 0):
        raise ValueError(f"durations must not be negative, found {seconds}")
    longest = LATEST_TICK / TICKS_PER_SECOND
    if seconds.max(initial=0.0) >= longest:
        found = f"found a client whose tasks in a round take {seconds.max():.3g} s"
        raise InputError(f"timing: {found}; allowed: at most {longest:.3g} s")
    return np.rint(seconds * TICKS_PER_SECOND).astype(np.int64)


def seconds(time: int) -> float:
    """Seconds of a time in ticks."""
    return time / TICKS_PER_SECOND


def all_seconds(times: Sequence[int]) -> NDArray[np.float64]:
    """(n,) seconds of n times, each as ``seconds`` has it: whole numbers divide exactly, beyond 2**53, too."""
    return np.array([time / TICKS_PER_SECOND for time in times], dtype=np.float64)


def after_all_else(env: simpy.Environment, delay: int = 0) -> simpy.Event:
    """An event that fires after everything else that happens at the instant ``now + delay``.

    Args:
        env: the simulation.
        delay: ticks from now.
    """
    event = simpy.Event(env)
    event._ok = True
    event._value = None
    env.schedule(event, priority=_LAST, delay=delay)  # type: ignore[arg-type]
    return event


END_EVENT = {
    Status.PARTICIPATED: EventKind.ARRIVE,
    Status.CRASHED: EventKind.CRASH,
    Status.DEEP_FADE: EventKind.DEEP_FADE,
    Status.OUTAGE: EventKind.OUTAGE,
}
"""The event with which a client's part in a round ends, by its outcome."""


@dataclass(frozen=True, slots=True)
class Report:
    """A client's report of how its part in a round ends; a control message without payload.

    Attributes:
        position: of the client among those selected in this round; its number where clients work across rounds.
        outcome: PARTICIPATED where it has trained and asks for the uplink, or its upload has arrived; CRASHED,
            DEEP_FADE or OUTAGE where nothing will come.
    """

    position: int
    outcome: Status = Status.PARTICIPATED


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """The reports of many clients at one instant."""

    ready: NDArray[np.int64]
    """Places of those who have trained and ask for the uplink."""
    crashed: NDArray[np.int64]
    """Places of those with whom contact was lost."""


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The server's grant of the uplink slot to all who reported in time."""

    silent: NDArray[np.bool_]
    """(n,) over the clients selected: in a deep fade, which a client sees from its own channel."""
    jammer_gain: float
    """α_CJ that the server asks of the cooperative jammer."""


@dataclass(frozen=True, slots=True)
class ProtocolMessage:
    """A client's message in a stage of secure aggregation."""

    position: int
    session: bytes
    """The round, or the attempt at it, that the message belongs to."""
    stage: Stage
    bits: int
    content: secagg.Message | None
    """None for a masked input: its numbers are computed with those of all others that arrived in time."""


Incoming = Report | ProtocolMessage | Reports
_Columns = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.float64]]
_NOTHING: _Columns = (np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8), np.zeros(0))


class Medium:
    """Delivery of messages to the server, durations of broadcasts and slots, and the log of events.

    The log is made of batches of events at many nodes, and between them of those that come one by one.
    """

    def __init__(self, env: simpy.Environment, *, log_events: bool) -> None:
        """A medium in ``env``; without ``log_events`` nothing is kept."""
        self.env = env
        self._log_events = log_events
        self._batches: list[_Columns] = [_NOTHING]
        self._singles: list[tuple[int, int, int, float]] = []
        self._deliver: Callable[[Incoming], None] | None = None

    @property
    def now(self) -> int:
        """The simulated time in ticks."""
        return int(self.env.now)

    def note(
        self,
        kinds: EventKind | NDArray[np.uint8],
        nodes: int | NDArray[np.int64],
        bits: float = math.nan,
        past: list[int] | None = None,
    ) -> None:
        """Log entries of an event at a node, or of events at (n,) nodes, of one kind or (n,).

        Args:
            kinds: of the events.
            nodes: where they happen.
            bits: of a message.
            past: (n,) ascending ticks since the last entry at which they happened; None for now.
        """
        if not self._log_events:
            return
        if not isinstance(nodes, np.ndarray):
            self._singles.append((self.now, nodes, int(kinds), bits))
        elif count := len(nodes):
            self._gather()
            times = np.full(count, seconds(self.now)) if past is None else all_seconds(past)
            self._batches.append((times, nodes, np.full(count, kinds, dtype=np.uint8), np.full(count, bits)))

    def _gather(self) -> None:
        # What came one by one becomes a batch
        if self._singles:
            times, nodes, kinds, bits = zip(*self._singles, strict=True)
            columns = np.array(nodes, np.int64), np.array(kinds, np.uint8), np.array(bits, np.float64)
            self._batches.append((all_seconds(times), *columns))
            self._singles = []

    def drain(self) -> EventBatch:
        """All entries since the last drain, as columns."""
        self._gather()
        batches, self._batches = self._batches, [_NOTHING]
        return EventBatch(*(np.concatenate(column) for column in zip(*batches, strict=True)))

    def listen(self, deliver: Callable[[Incoming], None]) -> None:
        """Setting of the server's inbox."""
        self._deliver = deliver

    def send(self, message: Incoming) -> None:
        """Delivery of a control message to the server at this instant."""
        if self._deliver is None:
            raise RuntimeError("a message was sent before any server listens")
        self._deliver(message)

    def occupy(self, duration_s: float) -> simpy.Event:
        """The channel is in use for a while: a model broadcast or an uplink slot; the event fires at its end."""
        return self.env.timeout(ticks(duration_s))
