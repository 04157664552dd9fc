"""Standard output and error whose failures are reported after the work.

A closed or full stream would otherwise raise wherever something is printed, and stop a run for a line of progress.
"""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

_STANDARD = 3


class _Descriptor(io.FileIO):
    """Standard stream that keeps its first failure and drops all writes after it."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        if self.failure is None:
            try:
                return super().write(data) or 0
            except BlockingIOError:
                raise
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes


@contextmanager
def standard_streams() -> Iterator[Callable[[], str | None]]:
    """Context with streams that do not fail as standard output and error; yields the reason for unwritten results."""
    _open_closed()
    before = sys.stdout, sys.stderr
    output, sys.stdout = _tolerant(sys.stdout, sys.__stdout__)
    _, sys.stderr = _tolerant(sys.stderr, sys.__stderr__)
    try:
        yield lambda: _failure(output)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = before


def _failure(output: _Descriptor | None) -> str | None:
    # Why results were not written; None also where the reader has closed the pipe, as ``head`` does, and where standard
    # output is replaced, as in tests
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    error = None if output is None else output.failure
    if error is None or error.errno == errno.EPIPE:
        return None
    return f"standard output cannot be written: {error.strerror}"


def _open_closed() -> None:
    # Opens missing standard descriptors, whose numbers the next files would take and be printed into
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _tolerant(stream: TextIO | None, original: TextIO | None) -> tuple[_Descriptor | None, TextIO]:
    if stream is None:
        return None, Path(os.devnull).open("w", encoding="utf-8")
    if stream is not original:
        return None, stream
    with suppress(OSError):
        stream.flush()
    raw = _Descriptor(stream.fileno(), "w", closefd=False)
    return raw, io.TextIOWrapper(
        io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream is sys.stderr or stream.isatty(),
    )
