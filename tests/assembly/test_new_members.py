"""A new member of a family comes from outside as it is, or into the package in three files: class, variant and test."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import wirelessfl
from tests.assembly.toys import TOYS, Toy
from tests.simulation.scenarios import PLAN, SMALL, run, small
from wirelessfl import plugins
from wirelessfl.assembly import build_simulation, objects
from wirelessfl.scenario.base import External
from wirelessfl.scenario.scenario import FamilyInfo, families

OPEN = {name: family for name, family in families().items() if family.external is not None}

PROGRAM = """
import importlib, json, sys
from wirelessfl.assembly import build_simulation
from wirelessfl.learning import ExecutionPlan
from wirelessfl.scenario import parse_scenario

used = {}
for name, (module, overrides) in json.load(sys.stdin)["members"].items():
    scenario = parse_scenario(sys.argv[1], "small", overrides)
    build_simulation(scenario, ExecutionPlan(device="cpu", threads=1, chunk=4)).run(lambda *_: None)
    used[name] = len(getattr(importlib.import_module(module), f"used_{name}"))
print(json.dumps(used))
"""


def test_every_family_that_takes_code_from_outside_has_a_toy() -> None:
    assert set(TOYS) == set(OPEN)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, whose modules are forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins.places, "_searched", [])
    monkeypatch.setattr(plugins.blame, "_loaded", {})
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("toys_of_"):
            del sys.modules[name]


@pytest.mark.parametrize("name", TOYS)
def test_a_member_from_outside_takes_part_in_a_run(name: str, elsewhere: Path) -> None:
    toy, family = TOYS[name], OPEN[name]
    base = toy.base.partition(":")[2]
    module = f"toys_of_{name}"
    text = f"from {toy.module} import {base}\n{toy.text(name, inside=False)}"
    (elsewhere / f"{module}.py").write_text(text, encoding="utf-8")
    member = {family.tag: f"{module}:{name}", "options": dict(toy.options), **toy.beside}
    scenario = small(rounds=2, **toy.needs, **{family.paths[0]: member})
    _, rounds, _ = run(scenario)
    assert len(rounds) == 2
    assert getattr(sys.modules[module], f"used_{name}")


@pytest.mark.parametrize("name", TOYS)
def test_what_a_member_is_told_of_is_what_its_family_lists(
    name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, family = TOYS[name], OPEN[name]
    told: set[type] = set()

    def listening(factory: Any, variant: Any, arguments: Any, context: object) -> Any:
        if isinstance(variant, External):
            told.add(type(context))
        return filled(factory, variant, arguments, context)

    filled = objects._filled
    monkeypatch.setattr(objects, "_filled", listening)
    base = toy.base.partition(":")[2]
    text = f"from {toy.module} import {base}\n{toy.text(name, inside=False)}"
    (elsewhere / f"toys_of_{name}.py").write_text(text, encoding="utf-8")
    member = {family.tag: f"toys_of_{name}:{name}", "options": dict(toy.options), **toy.beside}
    build_simulation(small(rounds=1, **toy.needs, **{family.paths[0]: member}), PLAN)
    assert family.external is not None
    assert told == {type(None) if family.external.context is None else resolve_name(family.external.context)}


def state_of(package: Path) -> dict[str, bytes]:
    """The sources of a package."""
    return {str(file.relative_to(package)): file.read_bytes() for file in package.rglob("*.py")}


def add_member(package: Path, name: str, toy: Toy, family: FamilyInfo) -> None:
    """Writes class and variant into a copy of the package, as CONTRIBUTING.md tells."""
    core = package.parent / (toy.module.replace(".", "/") + ".py")
    core.write_text(core.read_text(encoding="utf-8") + toy.text(name, inside=True), encoding="utf-8")
    external: type[External] = family.external  # type: ignore[assignment]
    variants = package.parent / (external.__module__.replace(".", "/") + ".py")
    text = variants.read_text(encoding="utf-8")
    own = rf"(class {external.__name__}\(\s*External,)"
    text = re.sub(own, lambda found: toy.variant_text(name, family.tag) + found[0], text)
    text = re.sub(rf"\b{external.__name__}\b(?=\s*(,|\|))", f"Toy{name} | {external.__name__}", text)
    variants.write_text(text, encoding="utf-8")


def test_a_member_of_the_package_touches_three_files(tmp_path: Path) -> None:
    package = tmp_path / "wirelessfl"
    shutil.copytree(Path(wirelessfl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    members: dict[str, Any] = {}
    for name, toy in TOYS.items():
        before = state_of(package)
        add_member(package, name, toy, OPEN[name])
        touched = {file for file, text in state_of(package).items() if before.get(file) != text}
        assert len(touched) + 1 <= 3, f"{name}: {touched} and its test"
        members[name] = (
            toy.module,
            {"rounds": 1, **toy.needs, OPEN[name].paths[0]: {OPEN[name].tag: "toy", **toy.beside}},
        )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, SMALL],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        input=json.dumps({"members": members}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {name for name, uses in json.loads(done.stdout).items() if uses > 0} == set(TOYS)
