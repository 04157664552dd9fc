"""Sources of code from outside the package, as a trace keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wirelessfl.errors import TraceError, precondition
from wirelessfl.plugins import Sources
from wirelessfl.trace.reader import read_attributes


def source_attributes(sources: Sources | None) -> dict[str, str]:
    """Root attributes that keep sources; none for a run of the package alone."""
    return {} if sources is None else {"sources": sources.text, "sources_digest": sources.digest}


def recorded_sources(path: str | Path) -> Sources | None:
    """The sources of a trace; None where it has none: the run called no code from outside, or is of an earlier version.

    Nothing of them is run.

    Raises:
        TraceError: Not a readable trace of this version, or its sources are not those that it was begun with.
    """
    return sources_among(Path(path), read_attributes(path))


def sources_among(path: Path, attributes: Mapping[str, Any]) -> Sources | None:
    """As `recorded_sources`, of root attributes that were read already.

    Raises:
        TraceError: They are not those that the trace was begun with.
    """
    text, digest = (attributes.get(name) for name in ("sources", "sources_digest"))
    if text is None and digest is None:
        return None
    try:
        sources = Sources.of_text(text if isinstance(text, str) else "")
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: damaged (attribute sources: {error}); restore it") from error
    precondition(
        sources.digest == digest,
        f"{path}: the sources it holds are not those it was begun with: their digest differs",
        TraceError,
    )
    return sources
