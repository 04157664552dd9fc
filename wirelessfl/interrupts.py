"""Ctrl-C and SIGTERM end a run between two pieces of work, so that the trace is never caught half-written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from wirelessfl.errors import RunInterrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Remembers that a signal came; the run asks when it can stop."""

    def __init__(self) -> None:
        """No signal yet."""
        self._came = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """The signal handler. A second signal is not waited for: it ends the process at once."""
        if self._came:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._came = True

    def check(self) -> None:
        """Stop here if a signal came.

        Raises:
            RunInterrupted: a signal came.
        """
        if self._came:
            raise RunInterrupted("stopped by the user")


@contextmanager
def catch_interrupts() -> Iterator[Interrupts]:
    """Catch the signals for the time of a run; outside the main thread Python delivers none, and none is caught."""
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
