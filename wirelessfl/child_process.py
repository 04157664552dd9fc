"""Child processes that take requests on stdin and answer on stdout.

Not ``multiprocessing``: that would run the user's script once more in every child, which a script without a main guard
and a notebook do not survive.
"""

import errno
import fcntl
import os
import struct
import subprocess
import sys
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from io import IOBase
from pathlib import Path
from typing import IO, BinaryIO

_LENGTH = struct.Struct("<Q")

_pipes: "weakref.WeakSet[IOBase]" = weakref.WeakSet()


def start_child(
    module: str, threads: int, stderr: int, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """A child that calls ``main`` of a module, without the terminal's Ctrl-C; the end of its stdin is to be its end.

    Args:
        module: The module's full name, looked up where this process finds modules.
        threads: Threads of its numerical libraries.
        stderr: Descriptor of the file to which its stderr is appended, or `subprocess.PIPE`.
        environment: Further variables.

    Raises:
        OSError: there is no room for one more process, or it cannot be started.
    """
    if not sys.executable:
        raise FileNotFoundError(errno.ENOENT, "this Python does not know its own program")
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    its_requests, requests = _pipe()
    with its_requests, ExitStack() as of_failure:
        of_failure.enter_context(requests)
        replies, its_replies = _pipe()
        of_failure.enter_context(replies)
        with its_replies:
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {module} import main; main()"],  # -P: not from the current folder
                # What a user's own code prints appears at once, and not only at an orderly end
                env={**os.environ, **limits, **(environment or {}), "PYTHONPATH": _path(), "PYTHONUNBUFFERED": "1"},
                stdin=its_requests,
                stdout=its_replies,
                stderr=stderr,
                start_new_session=True,
            )
        of_failure.pop_all()
    child.stdin, child.stdout = requests, replies
    return child


def _path() -> str:
    # Where modules are found; without entries that lead nowhere, as the current folder where that was removed
    found = list[str]()
    for entry in sys.path:
        with suppress(OSError, RuntimeError, TypeError):  # the last for bytes, which no import looks at
            found.append(str(Path(entry).resolve()))
    return os.pathsep.join(found)


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    # Kept from forks before there is a process: another thread may fork this one meanwhile
    reader, writer = map(_above_streams, os.pipe())
    pair = os.fdopen(reader, "rb"), os.fdopen(writer, "wb")
    _keep_from_forks(*pair)
    return pair


def _above_streams(end: int) -> int:
    # Not under the number of a standard stream that this process has closed: what is printed would go into the pipe
    if end > 2:
        return end
    try:
        return fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(end)


def taken_streams() -> tuple[BinaryIO, BinaryIO]:
    """Requests and replies of a child; a user's own code neither reads the ones nor prints into the others."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    _keep_from_forks(requests, replies)
    return requests, replies


def write_message(pipe: IO[bytes], message: bytes) -> None:
    """One message behind its length.

    Raises:
        OSError: nobody reads it.
    """
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> bytes:
    """The next message.

    Raises:
        EOFError: the pipe has ended, perhaps in the middle of it.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        if len(message := pipe.read(length)) == length:
            return message
    raise EOFError


def _keep_from_forks(*pipes: object) -> None:
    # The end of a pipe tells of the end of a process, unless one that was forked from it holds the pipe open
    _pipes.update(pipe for pipe in pipes if isinstance(pipe, IOBase))


def _let_go() -> None:
    # Another file under the same number: Python will close it there once more
    nowhere = os.open(os.devnull, os.O_RDWR)
    for pipe in _pipes:
        with suppress(OSError, ValueError):  # closed
            os.dup2(nowhere, pipe.fileno(), inheritable=False)
    os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
