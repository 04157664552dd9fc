"""Sources of code from outside beside a trace of an archive, as text to read before the run is repeated."""

from collections.abc import Mapping
from pathlib import Path

from wirelessfl.analysis.pack.layout import PLUGINS
from wirelessfl.errors import ArchiveError, precondition
from wirelessfl.plugins import Sources
from wirelessfl.trace import recorded_sources


def texts_of(sources: Sources | None) -> dict[str, str]:
    """Texts of recorded sources by their path; none where nothing is recorded."""
    files: Mapping[str, str | None] = {} if sources is None else sources.files
    return {path: text for path, text in files.items() if text is not None}


def check_sources(archive: Path, trace: Path) -> None:
    """Check that what stands beside a trace to be read is what a repeated run imports from the trace.

    Args:
        archive: for messages.
        trace: unpacked, with its sources beside it.

    Raises:
        ArchiveError: a text is another, missing or too many.
        TraceError: the sources in the trace are damaged.
    """
    folder, recorded = trace.parent / PLUGINS, texts_of(recorded_sources(trace))
    there = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    other = sorted(
        path
        for path in {*there, *recorded}
        if path not in there or path not in recorded or there[path].read_bytes() != recorded[path].encode()
    )
    precondition(
        not other,
        f"{archive}: {PLUGINS}/{other[0] if other else ''} differs from the source in the trace; ask the authors for "
        "the archive again",
        ArchiveError,
    )
