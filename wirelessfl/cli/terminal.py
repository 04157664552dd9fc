"""Text for terminals and pipes of any encoding, and standard streams whose failures are reported after the work.

A closed or full stream would otherwise raise wherever something is printed, and stop a run for a line of progress.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

_STANDARD = 3
_ESCAPED = "wirelessfl.escaped"
_KEPT = "\n\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}"


def _escape(error: UnicodeError) -> tuple[str, int]:
    # Characters that an encoding lacks, escaped as in JSON, so that JSON texts keep their content
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_escaped(letter) for letter in error.object[error.start : error.end]), error.end


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


codecs.register_error(_ESCAPED, _escape)


def escape_what_is_lacking() -> None:
    """Escape sequences on stdout and stderr for characters that their encoding lacks, where Python would raise."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_ESCAPED)


def printable(text: object) -> str:
    """Text without control characters, which could move the cursor, recolour the terminal or hide text.

    Lines stay lines; everything else that is not printed, also marks of direction and halves of surrogate pairs (bytes
    of a file name that are not UTF-8), is escaped.
    """
    return "".join(letter if letter.isprintable() or letter in _KEPT else _escaped(letter) for letter in str(text))


def say(text: str, *, nl: bool = True) -> None:
    """Line of results on stdout."""
    print(printable(text), end="\n" if nl else "", flush=True)


def remark(text: str) -> None:
    """Line of remarks on stderr."""
    print(printable(text), file=sys.stderr)


def open_console(*, stderr: bool = False) -> Console:
    """Console without markup, on which control characters are escaped."""
    from rich.console import Console

    class Plain(Console):
        """Segments with their text escaped; what rich itself puts out for the terminal stays."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                shown = segment.text if segment.control else printable(segment.text)
                yield segment if shown == segment.text else segment._replace(text=shown)

    return Plain(stderr=stderr, markup=False, emoji=False)


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
