"""Ctrl-C and SIGTERM end a run between two pieces of work, so that the trace is never caught half-written.

Where nothing has to be finished, they end the work at once. A second signal ends the process at once in any case.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any

from wirelessfl.errors import RunInterrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = "stopped by the user"
_ECHO_S = 0.1
"""``timeout`` sends its signal twice, to the process and to its group: within this time two count as one."""
_AGAIN_S = 0.05
_INSIST_S = 1.0
_PATIENCE_S = 10.0


class Interrupts:
    """Remembers that a signal came; the run asks when it can stop."""

    def __init__(self, *, insists: bool = False) -> None:
        """No signal yet.

        Args:
            insists: the process is a command's: what swallows an interrupt is interrupted again, and ended in the end.
        """
        self.insists = insists
        self._came_at: float | None = None
        self._told = False
        self._waits = True

    @property
    def came(self) -> bool:
        """Whether a signal came."""
        return self._came_at is not None

    def note(self, number: int, frame: FrameType | None) -> None:
        """The signal handler. A second signal is not waited for: it ends the process at once."""
        now = time.monotonic()
        if self._came_at is None:
            self._came_at = now
            if not self._waits:
                if self.insists:
                    signal.setitimer(signal.ITIMER_REAL, _INSIST_S, _INSIST_S)
                raise KeyboardInterrupt
        elif now - self._came_at > _ECHO_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    def check(self) -> None:
        """Stop here if a signal came.

        Raises:
            RunInterrupted: a signal came.
        """
        if self.came:
            self._told = True
            raise RunInterrupted(STOPPED)

    def check_last(self) -> None:
        """Stop here if a signal came that nothing has stopped for yet.

        Raises:
            RunInterrupted: there was one.
        """
        if not self._told:
            self.check()

    @contextmanager
    def at_once(self, words: str = STOPPED) -> Iterator[None]:
        """Work that leaves nothing half-done behind: a signal ends it wherever it is.

        Args:
            words: the message then.

        Raises:
            RunInterrupted: a signal came.
        """
        self.check()
        before, sys.unraisablehook = sys.unraisablehook, self._again(sys.unraisablehook)
        self._waits = False
        try:
            yield
        except BaseException as error:
            self._waits = True
            if not self.came or isinstance(error, RunInterrupted):
                raise
            self._told = True
            raise RunInterrupted(words) from error  # also where a library turned the interrupt into an error of its own
        finally:
            self._waits = True
            sys.unraisablehook = before

    def _again(self, otherwise: Callable[[Any], None]) -> Callable[[Any], None]:
        """A hook for what cannot be raised, in a destructor say: an interrupt that came there comes once more."""

        def hook(lost: Any) -> None:
            if not (self.came and issubclass(lost.exc_type, KeyboardInterrupt)):
                otherwise(lost)
            elif self.insists:
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _INSIST_S)

        return hook

    def insist(self, number: int, frame: FrameType | None) -> None:
        """The handler of the timer: interrupt what has swallowed the signal again, and end the process at last."""
        assert self._came_at is not None
        if time.monotonic() - self._came_at > _PATIENCE_S:
            os.write(2, f"Error: {STOPPED}\n".encode())
            os._exit(RunInterrupted.exit_code)
        if not self._waits:
            raise KeyboardInterrupt


@contextmanager
def catch_interrupts(*, insists: bool = False) -> Iterator[Interrupts]:
    """Catch the signals for the time of a run; outside the main thread Python delivers none, and none is caught.

    Args:
        insists: as of `Interrupts`; also where they are caught already by one that does.

    Raises:
        RunInterrupted: at the end, where a signal came and nothing has stopped for it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupts()
        return
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    interrupts = Interrupts(insists=insists or (isinstance(outer, Interrupts) and outer.insists))
    handlers: dict[signal.Signals, Any] = dict.fromkeys(SIGNALS, interrupts.note)
    if interrupts.insists:
        handlers[signal.SIGALRM] = interrupts.insist
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield interrupts
    finally:
        if interrupts.insists:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    interrupts.check_last()


@contextmanager
def stop_at_once() -> Iterator[None]:
    """A whole command: a signal ends it wherever it is, unless a part of it catches signals itself.

    Raises:
        RunInterrupted: a signal came.
    """
    _ignore_at_exit()
    with catch_interrupts(insists=True) as interrupts, interrupts.at_once():
        yield


@cache
def _ignore_at_exit() -> None:
    """When the interpreter shuts down all is done, and an interrupt could only leave a traceback."""
    atexit.register(_ignore)


def _ignore() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
