"""Check of an untrusted HDF5 file in a process of its own, with limits of time and memory.

On damaged metadata the HDF5 library may loop without end, ask for any amount of memory, or crash: inside C, where no
exception comes of it. What a forked process has read to its end under these limits, this process reads as well.
"""

import ctypes
import faulthandler
import gc
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_CPU_S, _WALL_S = 8.0, 300.0
# A sound trace takes 20 ms and a second for each gigabyte. The time of the processor ends a loop. The wall time ends
# a process that waits; it leaves room for a busy machine, where a process gets a small share of the processor.
_BYTES_PER_S = 50e6
_MEMORY = 1 << 30
_MOST_WORDS = 8192
_SIZE = Path("/proc/self/statm")
_PRCTL: Any = getattr(ctypes.CDLL(None), "prctl", None)  # of Linux
_SET_DEATH_SIGNAL = 1
_DAMAGED = 1
# The signals of a limit that was reached; the others are those of a crash.
_ENDS = {signal.SIGXCPU, signal.SIGKILL}
# Blocked before the fork: the parent handles them, and ends the child.
_ENDING = {signal.SIGINT, signal.SIGTERM}


def watched(look: Callable[[], str | None], size: int, asks: int | None = None) -> str | None:
    """Words about what is wrong with a file, from ``look`` in a process of its own.

    Elsewhere than on Linux, where a process that has libraries loaded is not forked safely, it is looked at in this
    process. It is to have one thread.

    Args:
        look: Reads the file; returns words about what is wrong, or None. It must import nothing.
        size: Bytes of the file, by which the limits of time grow.
        asks: Descriptor of a pipe whose other end is held by who wants to know.

    Returns:
        What ``look`` returned, or words about how it ended.

    Raises:
        OSError: There is no room for another process: of memory, processes or open files.
        EOFError: Nobody wants to know any more.
    """
    if sys.platform != "linux":
        return look()
    further = size / _BYTES_PER_S
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        child, reader = _started(look, int(_CPU_S + further))
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a signal that came meanwhile ends it
            words = _words(reader, asks, time.monotonic() + _WALL_S + further)
        finally:
            os.close(reader)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if words is None:
        return _endless(_WALL_S + further)
    if words or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0):
        return words or None
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in _ENDS:
        return _endless(_CPU_S + further)
    return f"the HDF5 library crashes on it: {signal.Signals(number).name}" if number else "it cannot be read"


def _started(look: Callable[[], str | None], seconds: int) -> tuple[int, int]:
    # The number of a process that looks, and the file descriptor from which its words are read.
    reader, writer = os.pipe()
    parent = os.getpid()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads of libraries
            child = os.fork()
        if not child:
            _look(look, writer, seconds, parent)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return child, reader


def _endless(seconds: float) -> str:
    return f"its structure has no end: not read within {seconds:.0f} s"


def _words(reader: int, asks: int | None, deadline: float) -> str | None:
    # What the process writes until it ends; None if it does not in time.
    waiting = select.poll()
    for end in (reader,) if asks is None else (reader, asks):
        waiting.register(end, select.POLLIN)
    said, ended = b"", False
    while not ended:
        left = deadline - time.monotonic()
        ready = [end for end, _ in waiting.poll(1e3 * left)] if left > 0 else []
        if not ready:
            return None
        if reader not in ready:
            raise EOFError
        said += (part := os.read(reader, _MOST_WORDS))
        ended = not part
    return said.decode("utf-8", "replace")


def _look(look: Callable[[], str | None], writer: int, seconds: int, parent: int) -> None:
    # Body of the child: it writes what it found, and ends without any clean-up of its parent's things.
    try:
        # With the parent it ends, too: it holds what is open there, and locked
        _PRCTL(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_DAMAGED)
        gc.disable()
        faulthandler.disable()
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_CPU, seconds)
        with suppress(OSError), _SIZE.open(encoding="ascii") as file:  # without /proc time alone is limited
            _limit(resource.RLIMIT_AS, int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") + _MEMORY)
        words = look()
        if words:
            os.write(writer, words.encode("utf-8", "replace")[:_MOST_WORDS])
        os._exit(0)
    finally:
        os._exit(_DAMAGED)


def _limit(kind: int, value: int) -> None:
    soft, hard = resource.getrlimit(kind)
    known = [number for number in (soft, hard) if number != resource.RLIM_INFINITY]
    resource.setrlimit(kind, (min([value, *known]), hard))
