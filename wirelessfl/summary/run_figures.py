"""Figures of a run as files, from its trace alone: ``summary`` and ``timeline``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wirelessfl.errors import OutputError
from wirelessfl.outputs import replacing
from wirelessfl.summary.style import FigureOptions
from wirelessfl.trace import read_values, trace_errors

SUMMARY, TIMELINE = "summary", "timeline"
"""Names of the figures of a run, without the suffix of their format."""


@dataclass(frozen=True)
class WrittenFigures:
    """Figures of a run that were drawn.

    Attributes:
        files: those that are on disk.
        missing: those that could not be written, each with the reason.
    """

    files: tuple[Path, ...]
    missing: tuple[str, ...]


def draw_run(
    trace: Path,
    options: FigureOptions,
    folder: Path | None = None,
    prefix: str = "",
    names: Sequence[str] = (SUMMARY, TIMELINE),
) -> WrittenFigures:
    """Summary and timeline of a run, drawn and written; nothing with the format "none".

    Args:
        trace: the trace file of the run.
        options: format and width.
        folder: where they go; by default beside the trace.
        prefix: before the names of the files.
        names: which of the two.

    Raises:
        TraceError: the trace cannot be read.
    """
    if not options.drawn:
        return WrittenFigures((), ())
    from wirelessfl.summary.picture import draw_summary
    from wirelessfl.summary.timeline import draw_timeline

    place = trace.parent if folder is None else folder
    files = [options.file(place / f"{prefix}{name}") for name in names]
    with read_values(trace) as values, trace_errors(trace):
        events = values.events()
        draw: dict[str, Callable[[Path], None]] = {
            SUMMARY: lambda new: draw_summary(values, new, options.width_in),
            TIMELINE: lambda new: draw_timeline(values, events, new, options.width_in),
        }
        missing = [words for name, file in zip(names, files, strict=True) for words in unwritten(file, draw[name])]
    return WrittenFigures(tuple(file for file in files if file.exists()), tuple(missing))


def unwritten(path: Path, write: Callable[[Path], object]) -> list[str]:
    """Reason why a file of a run could not be written; none where an earlier one is there, which says the same."""
    try:
        with replacing(path) as new:
            write(new)
    except OutputError as error:
        return [] if path.exists() else [str(error)]
    return []
