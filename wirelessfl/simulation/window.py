"""The time in which the server takes reports."""

from __future__ import annotations

from collections.abc import Set

import simpy

from wirelessfl.simulation.clock import after_all_else
from wirelessfl.simulation.messages import Crashed, Faded, Letter, Message, Outage, Ready, Reports
from wirelessfl.simulation.timing import WaitFor


class Window:
    """Takes reports until enough clients have reported, nobody is left who could, or the deadline has come.

    It closes after everything else at its instant (see ``clock``): a report at the deadline is in time.

    Attributes:
        closed: fires when the window has closed.
        ready: positions of the clients that reported.
        crashed: positions of the clients that were lost.
        faded: positions of the clients that stay silent in a deep fade.
        lost: positions of the clients whose upload was lost.
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
        """Open a window.

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
        self.crashed: set[int] = set()
        self.faded: set[int] = set()
        self.lost: set[int] = set()
        self.outstanding = set(started)
        self._env = env
        self._needed = wait_for.needed(selected)
        self._too_late = too_late
        self._closing = False
        closes_after = wait_for.closes_after()
        if closes_after is not None:
            self._close_after(closes_after)
        self._close_if_done()

    def take(self, message: Message) -> None:
        """A report or an arrival, or the news that there will be none."""
        if isinstance(message, Reports):
            self.ready.update(message.ready.tolist())
            self.crashed.update(message.crashed.tolist())
            self.outstanding -= self.ready | self.crashed
        else:
            self._take_one(message)
        self._close_if_done()

    def _take_one(self, message: Ready | Letter | Crashed | Faded | Outage) -> None:
        self.outstanding.discard(message.position)
        match message:
            case Ready() | Letter():
                self.ready.add(message.position)
            case Crashed():
                self.crashed.add(message.position)
            case Faded():
                self.faded.add(message.position)
            case Outage():
                self.lost.add(message.position)

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
