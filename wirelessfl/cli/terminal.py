"""Text for terminals and pipes of any encoding."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

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
