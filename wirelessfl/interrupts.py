"""Ctrl-C and SIGTERM end a run between two pieces of work, so that the trace is never caught half-written.

Where nothing has to be finished, they end the work at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from wirelessfl.errors import RunInterrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ECHO_S = 0.1
"""``timeout`` sends its signal twice, to the process and to its group: within this time two count as one."""


class Interrupts:
    """Remembers that a signal came; the run asks when it can stop."""

    def __init__(self) -> None:
        """No signal yet."""
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
            raise RunInterrupted("stopped by the user")

    def check_last(self) -> None:
        """Stop here if a signal came that nothing has stopped for yet.

        Raises:
            RunInterrupted: there was one.
        """
        if not self._told:
            self.check()

    @contextmanager
    def at_once(self, words: str = "stopped by the user") -> Iterator[None]:
        """Work that leaves nothing half-done behind: a signal ends it wherever it is.

        Args:
            words: the message then.

        Raises:
            RunInterrupted: a signal came.
        """
        self.check()
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


@contextmanager
def catch_interrupts() -> Iterator[Interrupts]:
    """Catch the signals for the time of a run; outside the main thread Python delivers none, and none is caught.

    Raises:
        RunInterrupted: at the end, where a signal came and nothing has stopped for it.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = {number: signal.signal(number, interrupts.note) for number in SIGNALS}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    interrupts.check_last()
