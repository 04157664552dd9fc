"""Checks of files for a process of any number of threads.

A process of several threads is not forked: the child would keep what another thread holds at that moment, such as the
lock of a file, and hooks for forks, of Python's libraries and h5py's, wait in turn for locks that other threads may
hold while they wait for the first. There a process of one thread is asked, which is started once and forked instead.
"""

import atexit
import errno
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wirelessfl.child_process import read_message, start_child, taken_streams, write_message
from wirelessfl.trace.watched import watched

Look = Callable[[], str | None]


class _Watcher:
    # A process of one thread, which is forked for each file
    def __init__(self) -> None:
        self._child = start_child(__name__, 1, subprocess.DEVNULL)
        assert self._child.stdin is not None and self._child.stdout is not None
        self._requests, self._replies = self._child.stdin, self._child.stdout

    def words(self, request: bytes) -> str | None:
        write_message(self._requests, request)
        words, number = json.loads(read_message(self._replies))
        if number is not None:
            raise OSError(number, os.strerror(number))
        return None if words is None else str(words)

    def end(self) -> None:
        self._child.terminate()  # and with it the process that looks
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # what was not written goes nowhere
                pipe.close()
        self._child.wait()


_idle: list[_Watcher] = []
_of_parent: list[_Watcher] = []  # kept, as a process that is forgotten is asked how it ended


def watched_from_any_thread(look: Look, size: int) -> str | None:
    """`watched`, whatever threads there are.

    Args:
        look: As of ``watched``; a function of a module, or a ``partial`` of one, which another process can import.
        size: Bytes of the file.

    Raises:
        OSError: There is no room for another process, or it was ended from outside.
    """
    if sys.platform != "linux" or len(sys._current_frames()) == 1:
        return watched(look, size)
    request = pickle.dumps((_folder(), look, size))
    while (watcher := _taken()) is not None:
        with suppress(OSError, EOFError):  # it was ended while it was idle
            return _asked(watcher, request)
    try:
        return _asked(_Watcher(), request)
    except EOFError as error:
        raise OSError(errno.ECHILD, "it has ended before it answered") from error


def _folder() -> str | None:
    # The current one, by which relative paths go; None where it was removed
    with suppress(FileNotFoundError):
        return str(Path.cwd())
    return None


def _taken() -> _Watcher | None:
    try:
        return _idle.pop()
    except IndexError:
        return None


def _asked(watcher: _Watcher, request: bytes) -> str | None:
    try:
        words = watcher.words(request)
    except BaseException:
        watcher.end()
        raise
    _idle.append(watcher)
    return words


@atexit.register
def _end_idle() -> None:
    while (watcher := _taken()) is not None:
        watcher.end()


def _let_go() -> None:
    # Its pipes are those of the parent, which may use them at any time
    _of_parent.extend(_idle)
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def main() -> None:
    """The process: it looks at one file after the other until its stdin ends."""
    requests, replies = taken_streams()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of ``watched``, which ends the process that looks
    with suppress(EOFError):
        while True:
            write_message(replies, _reply(read_message(requests)))


def _reply(request: bytes) -> bytes:
    words, number = None, None
    try:
        folder, look, size = pickle.loads(request)  # noqa: S301 - of the process that has started this one
        if folder is not None:
            os.chdir(folder)
        words = watched(look, size)
    except OSError as error:
        number = error.errno
    except Exception as error:  # code from outside that cannot be imported here
        words = f"it cannot be checked: {type(error).__name__}: {error}"
    return json.dumps([words, number]).encode()
