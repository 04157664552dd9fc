"""The scenarios, studies and channel profiles that come with the package."""

import difflib
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wirelessfl.errors import OutputError, ScenarioError, instance_of, precondition

Shelf = Literal["scenarios", "studies", "channels"]
"""Kinds of shipped files: a study is not a scenario, although its file lies below the scenarios."""

_NOUNS: dict[Shelf, str] = {"scenarios": "scenario", "studies": "study", "channels": "channel profile"}


@dataclass(frozen=True)
class Shipped:
    """One file that comes with the package.

    Attributes:
        name: How it is called, e.g. ``quickstart``.
        path: Where it lies.
        description: The first sentence of the comment it begins with.
    """

    name: str
    path: Path
    description: str


def shelf_folder(shelf: Shelf) -> Path:
    """Folder of the shipped files: inside an installed wheel, else at the top of the checkout."""
    if shelf == "studies":
        return shelf_folder("scenarios") / "studies"
    package = Path(__file__).resolve().parents[1]
    installed = package / "shipped" / shelf
    return installed if installed.is_dir() else package.parent / shelf


def list_shipped(shelf: Shelf = "scenarios") -> list[Shipped]:
    """The shipped files of a kind, by name, without the studies of papers."""
    folder = shelf_folder(shelf)
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))
    if shelf == "scenarios":
        names = [name for name in names if not name.startswith(("studies/", "papers/"))]
    return [Shipped(name, folder / f"{name}.yaml", _description(folder / f"{name}.yaml")) for name in names]


def _description(path: Path) -> str:
    lines = itertools.takewhile(lambda line: line.startswith("# "), path.read_text(encoding="utf-8").splitlines())
    paragraph = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph)[0]


def locate(source: str | Path, shelf: Shelf = "scenarios", folder: Path | None = None) -> Path:
    """The file that a name or a path means.

    A ``Path``, and text that ends in .yaml or .yml, is a path; other text is a shipped name, or else a path.

    Args:
        source: Name or path.
        shelf: Where names are looked up.
        folder: What a relative path is relative to; the current folder without it.

    Raises:
        ScenarioError: there is no such thing.
    """
    allowed = f"{shelf}: found {instance_of(type(source))}; allowed: a shipped name, a file, or a mapping with its keys"
    precondition(isinstance(source, str | Path), allowed, ScenarioError)
    path = Path(source) if folder is None else folder / source
    if isinstance(source, Path) or source.endswith((".yaml", ".yml")):
        return path
    names = [shipped.name for shipped in list_shipped(shelf)]
    if source in names:
        return shelf_folder(shelf) / f"{source}.yaml"
    if path.is_file():
        return path
    near = difflib.get_close_matches(source, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ScenarioError(f"{source}: found no such file or shipped name; allowed: a file, or {', '.join(names)}{hint}")


def copy_shipped(name: str, folder: Path, shelf: Shelf = "scenarios") -> Path:
    """Copies a shipped file into a folder, to be edited there.

    Returns:
        The new file.

    Raises:
        ScenarioError: there is nothing of that name on the shelf.
        OutputError: the file exists, or cannot be written.
    """
    names = [shipped.name for shipped in list_shipped(shelf)]
    source = locate(name, shelf)
    if name not in names:
        raise ScenarioError(f"{name}: found no shipped {_NOUNS[shelf]} of that name; allowed: {', '.join(names)}")
    target = folder / source.name
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(source.read_text(encoding="utf-8"))
    except FileExistsError:
        raise OutputError(f"{target}: exists already; allowed: a path at which there is no file") from None
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}") from error
    return target
