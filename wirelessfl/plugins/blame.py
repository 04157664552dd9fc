"""The line of code from outside at which something failed, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from wirelessfl.errors import RunInterrupted, ScenarioError, WirelessFLError, shown_path
from wirelessfl.plugins.places import LIBRARY, LIBRARY_FOLDERS, PACKAGE, is_installed, places_of, top_of

RAISED = (Exception, SystemExit, GeneratorExit)
"""Whatever code from outside raises, also to end the process; not what the user's signals raise."""
_TEXT_LIMIT = 300

# Plug-ins in use, as ``package.module:Name``, and where their code lies, by which a line of theirs is known
_loaded: dict[str, list[Path]] = {}


def remember(reference: str) -> None:
    """Note of a plug-in that is in use."""
    if (top := top_of(reference)) != PACKAGE.name:
        _loaded[reference] = places_of(top)


def failure(error: BaseException) -> str | None:
    """An error in words where plug-ins are in use; else None.

    Below a line of a plug-in: its file and line, kind and text. Else what one of them gave may be what does not fit:
    the line of this package that raised it, and the plug-ins.
    """
    place = place_of(error)
    if place is not None:
        return f"{place}: {_in_words(error)}"
    own = _last_line(error.__traceback__, [PACKAGE])
    if not _loaded or own is None:
        return None
    used = ", ".join(f"{name} ({shown_path(str(found[0]))})" if found else name for name, found in _loaded.items())
    return (
        f"{own}: {_in_words(error)}; code from outside is in use and may have given what does not fit: {used}. "
        "`wirelessfl families NAME` names the conformance check of each family"
    )


def place_of(error: BaseException) -> str | None:
    """The last line of a plug-in that an error went through, as ``file:line in function``; None where through none.

    An error that was raised because of another one, as by a generator that ended early, is looked for there as well.
    """
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        if (place := _last_line(following.__traceback__, _known_places())) is not None:
            return place
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return None


def refusal(error: WirelessFLError) -> str:
    """The text of an error of this package, with the line of a plug-in below which it was raised."""
    text, place = str(error), None if isinstance(error, RunInterrupted) else place_of(error)
    told = not text or place is None or place in text
    return text if told else f"{place}: {text}"


@contextmanager
def their_errors(key: str, reference: str) -> Iterator[None]:
    """Context in which whatever a plug-in raises, also that it ends the process, is told with its file and line.

    Raises:
        ScenarioError: it raised something.
    """
    try:
        yield
    except ScenarioError:
        raise
    except RAISED as error:
        below = _last_line(error.__traceback__, places_of(top_of(reference)))
        place = below
        if isinstance(error, SyntaxError) and error.filename and Path(error.filename).exists():
            place = f"{shown_path(error.filename)}:{error.lineno}"
        raise ScenarioError(f"{key}: {reference}: {f'{place}: ' if place else ''}{_in_words(error)}") from error


def _in_words(error: BaseException) -> str:
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{type(error).__name__}: {text}"[:_TEXT_LIMIT].removesuffix(": ")


def _known_places() -> list[Path]:
    return [place for several in _loaded.values() for place in several]


def _last_line(traceback: TracebackType | None, roots: list[Path]) -> str | None:
    # The user's code is also what lies beside a plug-in and was called from it or from this package; a script of the
    # user's that called this package is not what failed
    beside = [root.parent for root in roots if root != PACKAGE and not is_installed(root, root.parent)]
    last, inside = None, False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file = Path(code.co_filename).resolve()
        of_package = file.is_relative_to(PACKAGE)
        named = any(file.is_relative_to(root) for root in roots)
        if named or (inside and not of_package and _is_users(file, beside)):
            function = "" if code.co_name == "<module>" else f" in {code.co_qualname}"
            last = f"{shown_path(code.co_filename)}:{traceback.tb_lineno}{function}"
        inside = inside or named or of_package
        traceback = traceback.tb_next
    return last


def _is_users(file: Path, folders: list[Path]) -> bool:
    library = file.is_relative_to(LIBRARY) or LIBRARY_FOLDERS & set(file.parts)
    # No file has the methods of a data class, made while it ran, nor the lines that compiled libraries name
    return not library and any(file.is_relative_to(folder) for folder in folders) and file.is_file()
