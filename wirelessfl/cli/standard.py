"""Standard output and error whose failures end no work: it is done, and then told of.

A closed or full stream would otherwise raise wherever something is printed, and stop a run for a line of progress.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

_STANDARD = 3


class _Descriptor(io.FileIO):
    """A standard stream that remembers its first failure, and from then on takes and drops whatever is written."""

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


class StandardStreams:
    """The two streams of this process, while a command runs."""

    def __init__(self, output: _Descriptor | None) -> None:
        """``output``, or None where something else stands in for it, as in tests."""
        self._output = output

    def failure(self) -> str | None:
        """Why results did not reach their reader; a reader that went away, as ``head`` does, wants no more of them."""
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        error = None if self._output is None else self._output.failure
        if error is None or error.errno == errno.EPIPE:
            return None
        return f"standard output cannot be written: {error.strerror}"


@contextmanager
def standard_streams() -> Iterator[StandardStreams]:
    """Put streams that do not fail in the place of standard output and error."""
    _open_closed()
    before = sys.stdout, sys.stderr
    output, sys.stdout = _tolerant(sys.stdout, sys.__stdout__)
    _, sys.stderr = _tolerant(sys.stderr, sys.__stderr__)
    try:
        yield StandardStreams(output)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Without a standard descriptor the next file would take its number, and whatever is printed would go into it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _tolerant(stream: TextIO | None, original: TextIO | None) -> tuple[_Descriptor | None, TextIO]:
    """The stream over its descriptor again; one that stands in for it stays."""
    if stream is None:
        return None, Path(os.devnull).open("w", encoding="utf-8")
    if stream is not original:
        return None, stream
    with suppress(OSError):
        stream.flush()
    raw = _Descriptor(stream.fileno(), "w", closefd=False)
    wrapped = io.TextIOWrapper(
        io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream is sys.stderr or stream.isatty(),
    )
    return raw, wrapped
