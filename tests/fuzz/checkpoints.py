"""Damaged checkpoints: bytes, those of other runs, and nonsense behind a right checksum."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import damage
from tests.fuzz.case import Case, Step, pick
from tests.fuzz.hdf5_objects import content_of, differences
from tests.fuzz.sandbox import Ending
from tests.fuzz.subjects import WHOLE_ROUNDS, Subjects
from tests.fuzz.verdict import faults
from wirelessfl.trace.checkpoint import _start_of_body

STRATA = ("bytes", "truncated", "zeroed", "replaced", "foreign", "nonsense", "untouched")
RUNS = ("air", "secagg", "asynchronous")

_COMMAND = ("simulate", "{scenario}", "--set", f"rounds={WHOLE_ROUNDS}", "--out", "{subject}", "--resume", "--quiet")
_LENGTH, _CHECK = 8, 4
_NODES: tuple[Any, ...] = (
    *(
        None,
        True,
        "x",
        [],
        {},
        3,
        {"map": {}},
        {"int": "zz"},
        {"int": "0x1"},
        {"float": "00"},
        {"float": 1},
        {"nope": 1},
    ),
    *(
        {"array": ["<f8", [10**12], 0]},
        {"array": ["<f8", [-1], 0]},
        {"array": ["O", [1], 0]},
        {"array": ["<f8", [2], 0]},
    ),
    *({"array": ["<i8", [3], 10**9]}, {"array": []}, {"scalar": ["<f8", [], 0]}, {"array": ["<V99999999999", [1], 0]}),
    {"float": np.float64("nan").tobytes().hex()},
)


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    subject = pick(rng, RUNS)
    content = (subjects.stopped(subject) / "checkpoint.bin").read_bytes()
    count = 1 if rng.random() < 0.7 else 2
    return Case(
        "checkpoints", stratum, subject, _COMMAND, tuple(_draw_step(rng, stratum, content) for _ in range(count))
    )


def _draw_step(rng: np.random.Generator, stratum: str, content: bytes) -> Step:
    match stratum:
        case "bytes":
            return damage.draw_bytes(rng, content)
        case "truncated":
            return damage.draw_cut(rng, content)
        case "zeroed":
            return damage.draw_zeros(rng, content)
        case "replaced":
            return damage.draw_place(rng)
        case "foreign":
            return {"op": "take", "from": pick(rng, RUNS), "what": pick(rng, ("checkpoint.bin", "trace.h5"))}
        case "nonsense":
            how = pick(rng, ("put", "drop", "add"))
            return {"op": how, "at": int(rng.integers(1 << 30)), "value": pick(rng, _NODES)}
        case "untouched":
            return {"op": "nothing"}
    raise ValueError(f"no stratum {stratum!r}")


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """The folder of the stopped run with its checkpoint damaged."""
    target = folder / "run"
    shutil.copytree(subjects.stopped(case.subject), target)
    checkpoint = target / "checkpoint.bin"
    for step in case.steps:
        match step["op"]:
            case "become":
                damage.become(checkpoint, step["what"])
            case "take":
                shutil.copyfile(subjects.stopped(step["from"]) / step["what"], target / step["what"])
            case "put" | "drop" | "add":
                _resign(checkpoint, step)
            case "nothing":
                pass
            case _:
                damage.damage_bytes(checkpoint, step)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong: also a run that goes on from bytes that are not its own to other numbers."""
    found = faults(ending)
    taken = [step for step in case.steps if step["op"] == "take" and step["from"] != case.subject]
    honest = not any(step["op"] in ("put", "drop", "add") for step in case.steps)
    if ending.code == 0 and honest:
        whole = content_of(subjects.whole(case.subject) / "trace.h5")
        other = differences(whole, content_of(target / "trace.h5"))
        if other:
            found.append(f"silent: went on to other numbers in {other[:5]}")
    if ending.code != 0 and (case.stratum == "untouched" or (case.stratum == "foreign" and not taken)):
        found.append("refused: an undamaged run does not go on")
    return found


def _resign(path: Path, step: Step) -> None:
    """Change one node of the JSON tree of a checkpoint, and make its checksum right again."""
    content = path.read_bytes()
    start = content.index(b"\n") + 1
    body = content[start + _CHECK :]
    end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
    tree = json.loads(body[_LENGTH:end])
    _change(tree, step)
    text = json.dumps(tree).encode()
    body = len(text).to_bytes(_LENGTH, "little") + text + body[end:]
    path.write_bytes(_start_of_body(body) + body)


def _change(tree: Any, step: Step) -> None:
    maps = _maps(tree)
    inner = maps[step["at"] % len(maps)]
    names = list(inner)
    if step["op"] == "add" or not names:
        inner["nope"] = step["value"]
        return
    name = names[step["at"] // 7 % len(names)]
    if step["op"] == "drop":
        del inner[name]
    else:
        inner[name] = step["value"]


def _maps(tree: Any) -> list[dict[str, Any]]:
    """Every mapping of the state, from the root down."""
    if not isinstance(tree, dict) or not isinstance(tree.get("map"), dict):
        return []
    inner = tree["map"]
    return [inner, *(one for child in inner.values() for one in _maps(child))]
