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
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wirelessfl.child_process import read_message, start_child, taken_streams, write_message
from wirelessfl.trace.watched import watched

Look = Callable[[], str | None]
Reply = dict[str, str | int | None]

_LOOK_MS = 1000.0
_MOST_IDLE = 4


class _Watcher:
    # A process of one thread, which is forked for each file
    def __init__(self) -> None:
        self._child = start_child(__name__, 1, subprocess.DEVNULL)
        assert self._child.stdin is not None and self._child.stdout is not None
        self._requests, self._replies = self._child.stdin, self._child.stdout

    @property
    def pid(self) -> int:
        return self._child.pid

    def is_running(self) -> bool:
        return self._child.poll() is None

    def reply(self, request: bytes) -> Reply:
        write_message(self._requests, request)
        waiting = select.poll()
        waiting.register(self._replies, select.POLLIN)
        while not waiting.poll(_LOOK_MS):
            if not self.is_running():  # though a process that this one was forked into may hold its pipe
                raise EOFError
        reply: Reply = json.loads(read_message(self._replies))
        return reply

    def stop(self) -> None:
        """No wait for its end, nor for that of a look, which ends with it."""
        self._child.kill()

    def end(self) -> None:
        self.stop()
        self._close()
        self._child.wait()

    def forget(self) -> None:
        """Its pipes lead nowhere any more, and it is no child of this process."""
        self._close()
        self._child.returncode = 0

    def _close(self) -> None:
        for pipe in (self._requests, self._replies):
            with suppress(OSError):  # what was not written goes nowhere
                pipe.close()


_idle: list[_Watcher] = []  # without a lock, so that a handler of signals may open a file whatever it interrupts


def watched_from_any_thread(look: Look, size: int) -> str | None:
    """`watched`, whatever threads there are; several looks at once are made by as many processes.

    Args:
        look: As of ``watched``; a function of a module, or a ``partial`` of one, which another process can import.
        size: Bytes of the file.

    Raises:
        OSError: There is no room for another process, it was ended from outside, or it cannot import ``look``.
    """
    if sys.platform != "linux" or len(sys._current_frames()) == 1:
        return watched(look, size)
    try:
        request = pickle.dumps((_folder(), look, size))
    except Exception as error:  # of objects from outside
        raise OSError(errno.EINVAL, f"{type(error).__name__}: {error}") from error
    while (watcher := _taken()) is not None:
        with suppress(EOFError, BrokenPipeError):  # it was ended, and another one looks
            return _words(watcher, request)
    try:
        return _words(_Watcher(), request)
    except (EOFError, BrokenPipeError) as error:
        raise OSError(errno.ECHILD, "it has ended before it answered") from error


def _folder() -> str | None:
    # The current one, by which relative paths go; None where it was removed
    with suppress(FileNotFoundError):
        return str(Path.cwd())
    return None


def _taken() -> _Watcher | None:
    while _idle:
        with suppress(IndexError):  # another thread has taken it
            if (watcher := _idle.pop()).is_running():
                return watcher
            watcher.end()
    return None


def _words(watcher: _Watcher, request: bytes) -> str | None:
    try:
        reply = watcher.reply(request)
    except BaseException:
        watcher.end()
        raise
    if len(_idle) < _MOST_IDLE:
        _idle.append(watcher)
    else:
        watcher.end()
    match reply:
        case {"words": None | str() as words}:
            return words
        case {"refusal": str() as refusal, "number": int() as number}:
            raise OSError(errno.EINVAL if number == errno.EPIPE else number, refusal)
        case _:
            raise OSError(errno.EINVAL, f"it has answered {reply!r:.100}")


@atexit.register
def _end_idle() -> None:
    for each in _idle:
        each.stop()
    while (watcher := _taken()) is not None:
        watcher.end()


def _let_go() -> None:
    # They are those of the parent, which may use them at any time
    for watcher in _idle:
        watcher.forget()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def main() -> None:
    """The process: it looks at one file after the other until its stdin ends."""
    requests, replies = taken_streams()
    with suppress(EOFError):
        while True:
            write_message(replies, json.dumps(_reply(read_message(requests), requests.fileno())).encode())


def _reply(request: bytes, asks: int) -> Reply:
    try:
        folder, look, size = pickle.loads(request)  # noqa: S301 - of the process that has started this one
        if folder is not None:
            os.chdir(folder)
    except Exception as error:  # code from outside that cannot be imported here
        return {"refusal": f"{type(error).__name__}: {error}", "number": errno.EINVAL}
    try:
        return {"words": watched(look, size, asks)}
    except OSError as error:
        return {"refusal": error.strerror or str(error), "number": error.errno or errno.EINVAL}
