"""The house keeps its order: floors import downwards only, and ``__all__`` tells the truth."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import wirelessfl

PACKAGE = Path(wirelessfl.__file__).parent

FLOORS = (
    {"__main__"},
    {"cli"},
    {"papers"},
    {"analysis", "study"},
    {"api"},
    {"planning", "result"},
    {"folder", "interrupts"},
    {"summary"},
    {"assembly"},
    {"simulation"},
    {"learning"},
    {"privacy"},
    {"radio", "secagg", "convergence"},
    {"scenario", "trace"},
    {"locks", "outputs", "plugins"},
    {"streams", "errors", "version"},
)
"""From the roof down; rooms of one floor do not know each other."""

CORE = {"learning", "privacy", "radio", "secagg", "convergence"}
NOT_IN_THE_CORE = {"simpy", "click", "h5py", "yaml", "rich", "pydantic", "matplotlib"}

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """The modules that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_downwards(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    floor = next(level for level, rooms in enumerate(FLOORS) if room in rooms)
    above = set().union(*FLOORS[:floor]) | (FLOORS[floor] - {room})
    if room in CORE:
        above |= {"scenario", "trace"}
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "wirelessfl" and len(parts) > 1:
            assert parts[1] not in above, f"{room} must not import {module}"
        if room in CORE:
            assert parts[0] not in NOT_IN_THE_CORE, f"the core must not import {module}"


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in SOURCES} - {"__init__"} <= set().union(*FLOORS)


MODULES = [module.name for module in pkgutil.walk_packages([str(PACKAGE)], "wirelessfl.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_all_names_what_is_there(name: str) -> None:
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"
