"""Recorded sources in the place of the modules here, for as long as a run is repeated."""

from __future__ import annotations

import importlib
import importlib.util
import io
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wirelessfl.errors import TraceError, precondition
from wirelessfl.plugins.places import PACKAGE, forget, is_installed
from wirelessfl.plugins.sources import Sources


@contextmanager
def importing_from(sources: Sources, origin: str) -> Iterator[None]:
    """Context in which modules are imported from recorded sources, and not from the files here.

    Importing them runs them: whoever calls this has the user's leave. What was loaded under their names before is
    there again afterwards.

    Args:
        sources: as recorded.
        origin: where they come from, for messages.

    Raises:
        TraceError: a text is missing, or would take the place of what is installed here.
    """
    precondition(
        "__main__" not in sources.tops,
        f"{origin}: its code from outside was defined in a script or notebook (__main__), which cannot be imported; "
        "move it "
        "into a module of its own, and run again",
        TraceError,
    )
    precondition(
        not sources.unknown,
        f"{origin}: the text of {', '.join(sources.unknown)} is not recorded, so that it cannot be imported from there",
        TraceError,
    )
    for top in sorted(sources.tops):
        _refuse_installed(top, origin)
    with tempfile.TemporaryDirectory(prefix="wirelessfl-sources-") as place:
        folder = Path(place).resolve()
        write_sources(sources, folder)
        before = forget(sources.tops)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            with suppress(ValueError):
                sys.path.remove(str(folder))
            forget(sources.tops)
            sys.modules.update(before)


def write_sources(sources: Sources, folder: Path) -> list[Path]:
    """Files of sources, written below a folder in the encodings that they state; those without a text are left out.

    Raises:
        OSError: they cannot be written.
    """
    written = []
    for path, text in sources.files.items():
        if text is not None:
            file = folder.joinpath(*path.split("/"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_encoded(text))
            written.append(file)
    return written


def _encoded(text: str) -> bytes:
    plain = text.encode()
    try:
        return text.encode(tokenize.detect_encoding(io.BytesIO(plain).readline)[0])
    except (SyntaxError, UnicodeEncodeError, LookupError):
        return plain


def _refuse_installed(top: str, origin: str) -> None:
    # Names of libraries are no names of the user's: a recorded file would be loaded in place of what is installed
    taken = top in sys.stdlib_module_names or top == PACKAGE.name
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(top)
        if spec is not None and spec.origin is not None and spec.has_location:
            file = Path(spec.origin).resolve()
            taken = taken or is_installed(file, file.parents[spec.submodule_search_locations is not None])
    precondition(not taken, f"{origin}: holds a source of {top}, which is the name of a library here", TraceError)
