"""Damaged folders of studies: any of their files cut, zeroed, exchanged or replaced by something else."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import damage
from tests.fuzz.case import Case, Step, pick
from tests.fuzz.sandbox import Ending
from tests.fuzz.subjects import Subjects
from tests.fuzz.verdict import faults

STRATA = ("bytes", "truncated", "zeroed", "replaced", "exchanged", "json")

_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("study", "{study}", "--out", "{subject}", "--resume", "--workers", "1", "--quiet", "--json"),
    ("report", "{subject}", "--out", "out.html"),
    ("report", "{subject}", "--out", "out.html"),
)
_NODES: tuple[Any, ...] = (None, True, -1, 1e308, "x", "[/nope]", [], {}, [1], {"a": 1}, "../../..")


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    count = 1 if rng.random() < 0.7 else 2
    steps = tuple(_draw_step(rng, stratum, subjects.study) for _ in range(count))
    return Case("studies", stratum, "study", pick(rng, _COMMANDS), steps)


@cache
def _files(folder: Path) -> tuple[str, ...]:
    kept = (".json", ".h5", ".yaml", ".bin", ".parquet", ".lock")
    return tuple(
        sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file() and one.suffix in kept)
    )


def _draw_step(rng: np.random.Generator, stratum: str, folder: Path) -> Step:
    files = _files(folder)
    name = "study.json" if rng.random() < 0.25 else pick(rng, files)
    content = (folder / name).read_bytes()
    match stratum:
        case "bytes":
            return {**damage.draw_bytes(rng, content), "file": name}
        case "truncated":
            return {**damage.draw_cut(rng, content), "file": name}
        case "zeroed":
            return {**damage.draw_zeros(rng, content), "file": name}
        case "replaced":
            places = ("runs", str(Path(pick(rng, files)).parent), name)
            place = pick(rng, places) if rng.random() < 0.3 else name
            return {**damage.draw_place(rng), "file": name if place == "." else place}
        case "exchanged":
            return {"op": "take", "file": name, "from": pick(rng, files)}
        case "json":
            files = tuple(one for one in files if one.endswith(".json"))
            name = "study.json" if rng.random() < 0.6 else pick(rng, files)
            return {"op": "put", "file": name, "at": int(rng.integers(1 << 30)), "value": pick(rng, _NODES)}
    raise ValueError(f"no stratum {stratum!r}")


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """A copy of the study with the damage done."""
    target = folder / "study"
    shutil.copytree(subjects.study, target, ignore=shutil.ignore_patterns("*.png"))
    for step in case.steps:
        file = target / step["file"]
        if not file.exists():
            continue
        match step["op"]:
            case "become":
                damage.become(file, step["what"])
            case "take":
                shutil.copyfile(subjects.study / step["from"], file)
            case "put":
                _put(file, step)
            case _ if file.is_file():
                damage.damage_bytes(file, step)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong."""
    return faults(ending)


def _put(file: Path, step: Step) -> None:
    """Another value somewhere in a JSON file."""
    try:
        tree = json.loads(file.read_text())
    except ValueError:
        return
    places = _places(tree)
    parent, key = places[step["at"] % len(places)]
    parent[key] = step["value"]
    file.write_text(json.dumps(tree))


def _places(tree: Any) -> list[tuple[Any, Any]]:
    inner = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [pair for key, value in inner for pair in ((tree, key), *_places(value))]
