"""Ctrl-C and SIGTERM: a run ends between two steps, so that its trace is never half-written.

Where nothing has to be finished, the work ends at once. A second signal ends the process at once in any case.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from wirelessfl.errors import RunInterrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = "stopped by the user"
# ``timeout`` sends its signal twice, to the process and to its group: within this time two count as one
_ECHO_S = 0.1
_AGAIN_S = 0.05
_INSIST_S = 1.0
_PATIENCE_S = 10.0


class Interrupts:
    """Signals of a run, which checks for them where it can stop.

    Args:
        insists: the process is a command's: code that swallows an interrupt is interrupted again, and at last ended.

    Attributes:
        handled: whether a signal has ended something.
    """

    def __init__(self, *, insists: bool = False) -> None:
        self.insists = insists
        self._came_at: float | None = None
        self.handled = False
        self._waits = True

    def note(self, number: int, frame: FrameType | None) -> None:
        """Signal handler; a second signal ends the process at once."""
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

    def check(self, words: str = STOPPED) -> None:
        """End of the run where a signal came.

        Args:
            words: the message then.

        Raises:
            RunInterrupted: a signal came.
        """
        if self._came_at is not None:
            self.handled = True
            raise RunInterrupted(words)

    @contextmanager
    def at_once(self, words: str = STOPPED) -> Iterator[None]:
        """Context of work that a signal may end anywhere.

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
            if self._came_at is None or isinstance(error, RunInterrupted):
                raise
            self.handled = True
            raise RunInterrupted(words) from error  # also where a library turned the interrupt into an error of its own
        finally:
            self._waits = True
            sys.unraisablehook = before

    def _again(self, otherwise: Callable[[Any], None]) -> Callable[[Any], None]:
        # Hook for exceptions in destructors and the like, after which an interrupt is repeated
        def hook(lost: Any) -> None:
            if self._came_at is None or not issubclass(lost.exc_type, KeyboardInterrupt):
                otherwise(lost)
            elif self.insists:
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _INSIST_S)

        return hook

    def insist(self, number: int, frame: FrameType | None) -> None:
        """Timer handler: repeats an interrupt that was swallowed, and at last ends the process."""
        assert self._came_at is not None
        if time.monotonic() - self._came_at > _PATIENCE_S:
            os.write(2, f"Error: {STOPPED}\n".encode())
            os._exit(RunInterrupted.exit_code)
        if not self._waits:
            raise KeyboardInterrupt


@contextmanager
def catch_interrupts(*, insists: bool = False) -> Iterator[Interrupts]:
    """Context in which signals are caught; outside the main thread Python delivers none.

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
    if not interrupts.handled:
        interrupts.check()


@contextmanager
def stop_at_once() -> Iterator[None]:
    """Context of a command: a signal ends it anywhere, except in parts that catch signals themselves.

    Raises:
        RunInterrupted: a signal came.
    """
    atexit.unregister(_ignore)
    atexit.register(_ignore)
    with catch_interrupts(insists=True) as interrupts, interrupts.at_once():
        yield


def _ignore() -> None:  # at shutdown, where an interrupt could only leave a traceback
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
