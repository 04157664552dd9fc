"""The papers use what the Python reference documents, and nothing else of the package."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import publications
import wirelessfl as wfl

PACKAGE = Path(publications.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
REFERENCE = (PACKAGE.parent / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
DOCUMENTED = set(re.findall(r"^::: (\S+)$", REFERENCE, re.MULTILINE))


def used(tree: ast.AST) -> Iterator[str]:
    """Every name of the package that a file takes, as ``wirelessfl.package.name``, and every other import of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "wirelessfl":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.partition(".")[0] == "wirelessfl"]
            yield from (alias.name for alias in names if (alias.name, alias.asname) != ("wirelessfl", "wfl"))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "wfl":
            yield f"wirelessfl.{node.attr}"


def is_public(name: str) -> bool:
    """Whether a name is in the Python reference, which also says what ``wfl`` itself has."""
    room, _, last = name.rpartition(".")
    return last in wfl.__all__ if room == "wirelessfl" else name in DOCUMENTED or room in DOCUMENTED


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_only_public_names_are_used(path: Path) -> None:
    assert [name for name in used(ast.parse(path.read_text(encoding="utf-8"))) if not is_public(name)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import wirelessfl",
        "import wirelessfl.api as wfl",
        "from wirelessfl import plugins",
        "from wirelessfl.assembly.data import build_population",
        "from wirelessfl.study.bands import band",
        "wfl.cli",
    ],
)
def test_other_names_are_refused(line: str) -> None:
    assert not all(map(is_public, used(ast.parse(line))))


def test_what_the_package_exports_is_documented_and_there() -> None:
    assert set(wfl.__all__) - {"__version__"} <= {name.rpartition(".")[2] for name in DOCUMENTED}
    assert "`wfl.__version__`" in REFERENCE
    for name in wfl.__all__:
        assert getattr(wfl, name) is not None


def test_no_file_imports_what_imports_it() -> None:
    """The imports of the package's files have an order, those for type checkers included."""
    below: dict[str, set[str]] = {}
    for path in SOURCES:
        module = ".".join(["publications", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
        ]
        below[module] = {node.module for node in nodes if node.module and node.module.startswith("publications")}
    while below:
        lowest = [module for module, names in below.items() if not names & below.keys()]
        assert lowest, f"a circle of imports among {sorted(below)}"
        for module in lowest:
            del below[module]


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_what_is_documented_is_there(name: str) -> None:
    room, _, last = name.rpartition(".")
    if name != "wirelessfl.errors":
        assert hasattr(importlib.import_module(room), last)
