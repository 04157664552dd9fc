"""The window in which the server accepts reports."""

import math
from collections.abc import Set
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.medium import Incoming, ProtocolMessage, Report, Reports, after_all_else, ticks
from wirelessfl.trace import Status


@dataclass(frozen=True)
class WaitFor:
    """The rule by which the server closes the window for reports.

    Attributes:
        fraction: share of the selected clients that is enough.
        count: number of clients that is enough; None when ``fraction`` decides.
        deadline_s: seconds after the broadcast has arrived by which the server must have heard everybody, or None.
        compute_deadline_s: seconds after it at which clients stop training and send what they have; None for the end of
            the window, where ``partial_work`` holds.
        partial_work: whether they do.
    """

    fraction: float = 1.0
    count: int | None = None
    deadline_s: float | None = None
    compute_deadline_s: float | None = None
    partial_work: bool = False

    def closes_after(self, airtime_s: float = 0.0) -> int | None:
        """Ticks after the broadcast by which a client must have reported; None without a deadline.

        Args:
            airtime_s: seconds of a slot that follows and has to be over by the deadline.
        """
        return None if self.deadline_s is None else max(0, ticks(self.deadline_s) - ticks(airtime_s))

    def work_ends_after(self, airtime_s: float = 0.0) -> int | None:
        """Ticks after the broadcast at which clients stop training with what they have; None where they never do.

        Args:
            airtime_s: as of ``closes_after``.
        """
        own = None if self.compute_deadline_s is None else ticks(self.compute_deadline_s)
        limits = [limit for limit in (own, self.closes_after(airtime_s)) if limit is not None]
        return min(limits) if limits and self.partial_work else None

    def needed(self, selected: int) -> int:
        """The number of ``selected`` clients that must have reported."""
        if self.count is not None:
            return min(self.count, selected)
        # The tolerance keeps 0.1 of 30 clients at 3, where 30 * 0.1 is a hair above it.
        return max(1, math.ceil(self.fraction * selected - 1e-9))

    def stops_early(self, most: int) -> bool:
        """Whether, with up to ``most`` selected clients, fewer than all of them can be enough.

        The number that is not waited for grows with the number selected, so that the largest round tells.
        """
        return self.needed(most) < most


class Window:
    """A window for reports: until enough clients have reported, none is left, or the deadline has come.

    It closes after everything else at its instant (see ``clock``): a report at the deadline is in time.

    Attributes:
        closed: fires when the window has closed.
        ready: positions of the clients that reported.
        lost: positions of the clients that crashed, stay silent in a deep fade, or whose upload was lost, and which.
        outstanding: positions of the clients still at work.
    """

    def __init__(
        self,
        env: simpy.Environment,
        wait_for: WaitFor,
        selected: int,
        started: set[int],
        too_late: Set[int] = frozenset(),
    ) -> None:
        """Window that opens now.

        Args:
            env: the simulation.
            wait_for: when to close.
            selected: clients selected in the round; shares are counted of these.
            started: positions of the clients that began to work.
            too_late: positions of those of them that said when they began that they will not be in time; nobody waits
                for them.
        """
        self.closed = env.event()
        self.ready: set[int] = set()
        self.lost: dict[int, Status] = {}
        self.outstanding = set(started)
        self._env = env
        self._needed = wait_for.needed(selected)
        self._too_late = too_late
        self._closing = False
        closes_after = wait_for.closes_after()
        if closes_after is not None:
            self._close_after(closes_after)
        self._close_if_done()

    def take(self, message: Incoming) -> None:
        """Receipt of a report or an arrival, or of the message that there will be none."""
        match message:
            case Reports():
                self.ready.update(message.ready.tolist())
                self.lost.update(dict.fromkeys(message.crashed.tolist(), Status.CRASHED))
                self.outstanding -= self.ready | self.lost.keys()
            case ProtocolMessage() | Report(outcome=Status.PARTICIPATED):
                self.ready.add(message.position)
                self.outstanding.discard(message.position)
            case Report():
                self.lost[message.position] = message.outcome
                self.outstanding.discard(message.position)
            case _:
                assert_never(message)
        self._close_if_done()

    def write_statuses(self, status: NDArray[np.uint8]) -> None:
        """Statuses (n,) of the clients that are late or lost, written in place."""
        status[sorted(self.outstanding)] = Status.LATE
        status[list(self.lost)] = list(self.lost.values())

    def _close_if_done(self) -> None:
        if not self._closing and (len(self.ready) >= self._needed or self.outstanding <= self._too_late):
            self._closing = True
            self._close_after(0)

    def _close_after(self, delay: int) -> None:
        callbacks = after_all_else(self._env, delay).callbacks
        assert callbacks is not None, "an event that is still to come has callbacks"
        callbacks.append(self._close)

    def _close(self, _: simpy.Event) -> None:
        if not self.closed.triggered:
            self.closed.succeed()
