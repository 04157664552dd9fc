"""Shared arguments and options of commands, and their output: text for terminals and pipes of any encoding.

Failures of the standard streams are reported after the work: a closed or full stream would otherwise raise wherever
something is printed, and stop a run for a line of progress.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from typing_extensions import override

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from wirelessfl.scenario import Scenario

_STANDARD = 3
_ESCAPED = "wirelessfl.escaped"
_KEPT = "\n\N{NO-BREAK SPACE}\N{ZERO WIDTH SPACE}"


def _escape(error: UnicodeError) -> tuple[str, int]:
    # Characters that an encoding lacks, escaped as in JSON, so that JSON texts keep their content
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_escaped(letter) for letter in error.object[error.start : error.end]), error.end


def _escaped(letter: str) -> str:
    high, low = divmod(ord(letter) - 0x10000, 0x400)
    return f"\\u{ord(letter):04x}" if high < 0 else f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


codecs.register_error(_ESCAPED, _escape)


def escape_what_is_lacking() -> None:
    """Escape sequences on stdout and stderr for characters that their encoding lacks, where Python would raise."""
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
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
        # Segments with their text escaped; what rich itself puts out for the terminal stays

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                shown = segment.text if segment.control else printable(segment.text)
                yield segment if shown == segment.text else segment._replace(text=shown)

    return Plain(stderr=stderr, markup=False, emoji=False)


class _Descriptor(io.FileIO):
    # Standard stream that keeps its first failure and drops all writes after it

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
    # Missing standard descriptors are opened: the next files would take their numbers and be printed into.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STANDARD:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
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
    return f"standard output cannot be written: {error.strerror}" if error and error.errno != errno.EPIPE else None


def _tolerant(stream: TextIO | None, original: TextIO | None) -> tuple[_Descriptor | None, TextIO]:
    if stream is None or stream is not original:
        return None, stream or Path(os.devnull).open("w", encoding="utf-8")
    with suppress(OSError):
        stream.flush()
    raw = _Descriptor(stream.fileno(), "w", closefd=False)
    return raw, io.TextIOWrapper(
        io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream is sys.stderr or stream.isatty(),
    )


class OutputPath(click.Path):
    """Path of an output; the empty name, which Python takes for the current folder, is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("found an empty name; allowed: a path (. is the current folder)", param, ctx)
        return super().convert(value, param, ctx)


class ScenarioCommand(click.Command):
    """Command with ``--set``: a key of the scenario given as an option is answered with the override to write."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if (override := _as_override(error.option_name, given)) is None:
                raise
            raise click.UsageError(f"{error.message} To set a key, use --set {override}", ctx) from error


def _as_override(option: str, args: list[str]) -> str | None:
    # None where the option is no key of a scenario
    from wirelessfl.scenario import Scenario

    path = option.lstrip("-").replace("-", "_")
    if path.partition(".")[0] not in Scenario.model_fields:
        return None
    place = next(number for number, word in enumerate(args) if word.partition("=")[0] == option)
    after = args[place].partition("=")[2] or next(iter(args[place + 1 :]), "-")
    return f"{path}={'VALUE' if after.startswith('-') else after}"


scenario_argument = click.argument("scenario", metavar="SCENARIO")
override_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key: a dotted path and a YAML value, e.g. uplink.jammer.epsilon=0.5.",
)
plugins_option = click.option(
    "--allow-plugins",
    is_flag=True,
    help="Run code from outside the package that a recorded scenario names; for a file of your own it is not needed.",
)
device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where training runs; auto is a GPU if there is one.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else on stdout."
)


def seconds_of_the_command() -> float:
    """Seconds of real time since the command was called."""
    called: float = click.get_current_context().find_root().obj
    return time.perf_counter() - called


def read_scenario(source: str, overrides: tuple[str, ...], allow_plugins: bool) -> Scenario:
    """The scenario of a command, with a note on stderr for every key that an override dropped."""
    from wirelessfl.scenario import resolve_scenario

    resolved = resolve_scenario(source, overrides, allow_plugins=allow_plugins)
    for note in resolved.notes:
        remark(f"note: {note}")
    return resolved.scenario


@contextmanager
def progress_of(words: str) -> Iterator[Callable[[float], None]]:
    """A bar on stderr, where that is a terminal, told which part has been done since it was last told."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = open_console(stderr=True)
    with Progress(
        TextColumn(words),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda part: progress.advance(task, part)


@contextmanager
def time_shown(words: str) -> Iterator[None]:
    """Words and the time since they were put there on stderr, where that is a terminal, until the end."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = open_console(stderr=True)
    columns = SpinnerColumn(), TextColumn(words), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task("", total=None)
        yield
