"""Structure of the package: imports from lower layers only, no circular imports, existing names in ``__all__``."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeGuard

import pytest

import wirelessfl
from wirelessfl.simulation import Round
from wirelessfl.trace.schema import ROOT as TRACE_ROOT

PACKAGE = Path(wirelessfl.__file__).parent
ROOT = Path(__file__).parents[1]

LAYERS = (
    {"__main__"},
    {"cli"},
    {"analysis", "study"},
    {"api"},
    {"result", "plots", "preparation"},
    {"cluster", "folder", "interrupts"},
    {"summary"},
    {"assembly"},
    {"channels"},
    {"simulation"},
    {"learning"},
    {"privacy"},
    {"radio", "secagg"},
    {"scenario", "trace"},
    {"conformance", "inputs", "outputs", "plugins"},
    {"normals", "quotients", "short_sums"},
    {"child_process", "kernels", "memory", "streams", "transfers", "errors", "version", "processor"},
)
"""Packages and modules by layer, the highest first; those of one layer do not import each other."""

CORE = {"learning", "privacy", "radio", "secagg"}
NOT_IN_THE_CORE = {"simpy", "click", "h5py", "yaml", "rich", "pydantic", "matplotlib"}

SOURCES = sorted(PACKAGE.rglob("*.py"))


def package_of(path: Path) -> str:
    """The package, or module, of the first level that a file belongs to."""
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
    package = package_of(path)
    if package == "__init__":
        return
    layer = next(level for level, members in enumerate(LAYERS) if package in members)
    above = set().union(*LAYERS[:layer]) | (LAYERS[layer] - {package})
    if package in CORE:
        above |= {"scenario", "trace"}
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "wirelessfl" and len(parts) > 1:
            assert parts[1] not in above, f"{package} must not import {module}"
        if package in CORE:
            assert parts[0] not in NOT_IN_THE_CORE, f"the core must not import {module}"


def test_every_package_has_a_layer() -> None:
    assert {package_of(path) for path in SOURCES} - {"__init__"} <= set().union(*LAYERS)


SIMULATION = PACKAGE / "simulation"
WITHOUT_A_CLOCK = {
    "records radio_records state assessment": "values that are passed between processes",
    "recorder": "turns the records of a round into columns of the trace",
    "personalisation": "personal models as the learner trains them",
    "learner local_privacy local_training": "training as the server asks for it, with rows that the state keeps",
    "selection jobs": "selects around the jobs in flight",
    "stop_rules": "limits that end a run, asked after each round",
    "lost_uploads": "sets back what clients keep",
    "rehearsal": "runs the simulation without training",
    "uplinks/exact uplinks/capacity": "wait as every uplink with a slot does, in uplinks/slot",
    "uplinks/robust": "writes what a rule kept",
    "roles": "what clients send that do not follow the protocol",
    "uplinks/air/antennas uplinks/air/observed uplinks/air/every_antenna uplinks/air/plan": "steps of a slot",
    "uplinks/air/arrivals uplinks/air/excess uplinks/air/joint_readings uplinks/air/planner": "steps of a slot",
    "uplinks/air/groups": "steps of slots, one after the other",
    "uplinks/air/ranges uplinks/air/records uplinks/air/slot_noise uplinks/air/transmitters": "steps of a slot",
    "uplinks/digital/shared_band": "computes links when a round begins",
}
"""Files of ``simulation`` that do not import SimPy, and why they are there."""


def test_the_simulation_holds_only_what_waits() -> None:
    files = {path.relative_to(SIMULATION).with_suffix("").as_posix(): path for path in SIMULATION.rglob("[!_]*.py")}
    waiting = {name for name, path in files.items() if "simpy" in imports(path)}
    listed = [name for names in WITHOUT_A_CLOCK for name in names.split()]
    assert sorted(listed) == sorted(files.keys() - waiting)


def test_a_round_holds_typed_records_and_no_columns_by_name() -> None:
    # An array's type names its shape as a tuple of Any.
    fields = {field.name: str(field.type).replace("tuple[typing.Any, ...]", "") for field in dataclasses.fields(Round)}
    assert not [name for name, kind in fields.items() if re.search("dict|Mapping|Any|object", kind)]
    named = {variable.name for variable in TRACE_ROOT.of("round", "slot")} - {"samples", "weight", "backoff"}
    for path in SIMULATION.rglob("*.py"):
        words = {node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if is_text(node)}
        assert path.name == "recorder.py" or not words & named, f"{path}: only the recorder knows the trace's names"


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def files_of(package: Path) -> dict[str, Path]:
    """The modules of a package by name; a package's own name is that of its ``__init__``."""
    names = {path: path.relative_to(package.parent).with_suffix("").parts for path in package.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in names.items()}


def circle_in(package: Path) -> list[str]:
    """Modules of a package with circular imports, type-only and function-level imports included."""
    files = files_of(package)
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        used = graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                whole = f"{node.module}."
                used |= {whole + alias.name if whole + alias.name in files else whole[:-1] for alias in node.names}
        used &= files.keys() - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", [PACKAGE, ROOT / "publications", ROOT / "benchmarks"], ids=lambda path: path.name)
def test_nothing_imports_in_a_circle(package: Path) -> None:
    assert circle_in(package) == []


@pytest.mark.parametrize(
    "back",
    ["from toy.a import A", "if TYPE_CHECKING:\n    from toy.a import A", "def late():\n    from toy import a"],
    ids=["module", "type", "function"],
)
def test_a_circle_is_found(tmp_path: Path, back: str) -> None:
    toy = tmp_path / "toy"
    toy.mkdir()
    (toy / "__init__.py").write_text("from toy.a import A\n")
    (toy / "a.py").write_text("import toy.b\n\nA = toy.b.B\n")
    (toy / "b.py").write_text("B = 1\n")
    assert circle_in(toy) == []
    (toy / "b.py").write_text(f"from typing import TYPE_CHECKING\n\n{back}\nB = 1\n")
    assert set(circle_in(toy)) == {"toy.a", "toy.b"}


MODULES = [module.name for module in pkgutil.walk_packages([str(PACKAGE)], "wirelessfl.")]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_all_names_what_is_there(name: str) -> None:
    module = importlib.import_module(name)
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"
