"""Places of code from outside: the folders that are searched for it, and where the code of a module lies."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of this package."""
LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
"""Folder of Python's own library; sys.stdlib_module_names leaves out its tests."""
LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
"""Names of folders in which packages are installed."""

_searched: list[Path] = []
_known: set[str] = set()  # top-level modules of the user's that plug-ins import, maybe only while they run


def search(folder: Path) -> None:
    """Folder in which modules that a scenario names are looked up first, after everything that is installed."""
    with suppress(ValueError):
        _searched.remove(folder.resolve())
    _searched.insert(0, folder.resolve())


def folders() -> list[Path]:
    """The folders that are searched while a plug-in is loaded: of scenario files, the latest first, then the current.

    The current one may be somebody else's: a module of that name beside the scenario comes first.
    """
    current = Path.cwd()
    return [*_searched, *([] if current in _searched else [current])]


@contextmanager
def searching() -> Iterator[None]:
    """Context with the plug-ins' folders at the end of the module search path, where they shadow nothing installed."""
    sys.path.extend(added := [str(folder) for folder in folders() if str(folder) not in sys.path])
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for entry in added:
            with suppress(ValueError):
                sys.path.remove(entry)


class _Later:
    """Finder of modules that plug-ins import while they run, as inside a method; it comes after all others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """The spec of a module that an import statement of a plug-in names, beside the scenario; else None."""
        found = path is None and name in _known
        return PathFinder.find_spec(name, [str(folder) for folder in folders()]) if found else None


def found_later(tops: Iterable[str]) -> None:
    """Top-level modules that code from outside may also import while it runs, when their folders are not searched."""
    _known.update(tops)
    if _Later not in sys.meta_path:
        sys.meta_path.append(_Later)


def look_for(tops: Iterable[str], folders: Iterable[Path]) -> None:
    """Top-level modules and folders of one run, in place of all that were named before."""
    _known.clear()
    _searched[:] = [folder.resolve() for folder in folders]
    found_later(tops)


def top_of(reference: str) -> str:
    """The top-level package or module of ``package.module:Name``, or of a module."""
    return reference.partition(":")[0].partition(".")[0]


def forget(tops: Collection[str]) -> dict[str, ModuleType]:
    """Loaded modules of these top-level names, taken out: importing them reads their files again."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if top_of(name) in tops and name != "__main__"}


def places_of(top: str) -> list[Path]:
    """Where the code of a top-level package or module lies; it is not imported for that."""
    with suppress(ImportError, ValueError):
        if (spec := importlib.util.find_spec(top)) is not None:
            found = list(spec.submodule_search_locations or ()) or [spec.origin or top]
            return [Path(place).resolve() for place in found]
    file = getattr(sys.modules.get(top), "__file__", None)
    return [] if file is None else [Path(file).resolve()]


def is_installed(file: Path, root: Path) -> bool:
    """Whether a file belongs to a library and not to the user.

    Args:
        file: of a module.
        root: the folder that its top-level package or module lies in. An installer leaves its records there.
    """
    of_python = file.is_relative_to(LIBRARY) or file.is_relative_to(PACKAGE)
    return of_python or bool(LIBRARY_FOLDERS & set(file.parts)) or any(root.glob("*.dist-info"))


def is_pythons(file: Path) -> bool:
    """Whether a file belongs to Python's own library."""
    return file.is_relative_to(LIBRARY) and not LIBRARY_FOLDERS & set(file.parts)
