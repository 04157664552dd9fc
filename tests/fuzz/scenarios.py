"""Mutated scenarios: every shipped one in a tiny size, with keys, values, types, structure and bytes altered."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.fuzz import damage
from tests.fuzz.case import Case, Step, pick
from tests.fuzz.sandbox import Ending
from tests.fuzz.subjects import SCENARIOS, Subjects
from tests.fuzz.verdict import CODES, faults

STRATA = ("extremes", "types", "keys", "structure", "swapped", "words", "syntax", "bytes")

SHIPPED = Path(__file__).parents[2] / "scenarios"

# Keys by which a valid scenario may take any time and memory it likes; where they are large it is only validated.
_WORK = frozenset(
    {
        *("rounds", "count", "epochs", "local_steps", "hidden", "batch_size", "limit"),
        *("trials", "num_antennas", "antennas", "rings", "subcarriers", "retries", "slots"),
        *("pieces", "samples_per_client", "channels", "layers", "classes", "order", "taps"),
        *("paths", "num_subcarriers", "active", "buffer", "every", "max_samples", "per_round"),
        *("participants", "clients_per_round", "num_select", "candidates"),
    }
)
_SMALL_WORK = 64

_EXTREMES: tuple[Any, ...] = (
    *(0, -1, 1, 2, 10**6, 10**9, 10**18, 2**31, 2**53, 2**63, -(2**63), 10**400),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 5e-324, 1e-9, 1e9, 1e150, 1e308, -1e308),
    *(float("nan"), float("inf"), float("-inf"), 1 - 1e-16, 1 + 1e-15),
)
_OTHERS: tuple[Any, ...] = (
    *(None, True, False, "", " ", "nan", "1e3", "0x10", "auto", "[/nope]", "\x1b[31mred", "../..", "/etc/hostname"),
    *("ε" * 300, "a\nb", "{{7*7}}", "%s%n", [], {}, [[]], [1, 1], [1, "a"], {"a": 1}, {1: 2}, {"name": "nope"}),
    *("os:system", "subprocess:Popen", "wirelessfl.errors:InputError", "no.such:Thing", ":", "a:b:c"),
)
_SYNTAX = (
    "\t",
    "&a *a",
    "*nope",
    "!!python/object/apply:os.system ['true']",
    "<<: *x",
    "? - :",
    "%YAML 9.9\n---\n",
    "---\n---\n",
    "a: &a [*a]\n",
    "{",
    "[" * 2000,
    "- ",
    "\x00",
    "\ufeff",
    "name: 1\nname: 2\n",
    "!!binary x",
    "2001-01-01T00:00:00Z",
    "'",
    "|",
    "a: &a [1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n",
)


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    subject = pick(rng, (*_shipped(), *SCENARIOS))
    text = _text(subject, subjects)
    count = 1 if rng.random() < 0.6 else int(rng.integers(2, 4))
    if stratum in ("syntax", "bytes"):
        steps = tuple(_draw_text(rng, stratum, text) for _ in range(count))
    else:
        tree = yaml.safe_load(text)
        steps = tuple(_draw_tree(rng, stratum, tree) for _ in range(count))
    return Case("scenarios", stratum, subject, _draw_command(rng, stratum, steps), steps)


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """The mutated scenario, in a folder of its own."""
    target = folder / "work" / "scenario.yaml"
    target.parent.mkdir()
    text = _text(case.subject, subjects)
    tree_steps = [step for step in case.steps if "path" in step]
    if tree_steps:
        tree = yaml.safe_load(text)
        for step in tree_steps:
            tree = _changed(tree, step)
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    for step in case.steps:
        if step["op"] == "insert":
            lines = text.splitlines(keepends=True)
            at = step["line"] % (len(lines) + 1)
            text = (
                "".join([*lines[:at], step["text"], "\n", *lines[at:]]) if step["whole"] else _within(lines, at, step)
            )
    target.write_bytes(text.encode("utf-8", "surrogatepass"))
    for step in case.steps:
        if step["op"] in damage.BYTE_OPS:
            damage.damage_bytes(target, step)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong."""
    return faults(ending, {*CODES, 4} if case.command[0] == "audit" else CODES)


@cache
def _shipped() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


@cache
def _text(subject: str, subjects: Subjects) -> str:
    if subject in SCENARIOS:
        return subjects.scenario(subject).read_text()
    tree = yaml.safe_load((SHIPPED / f"{subject}.yaml").read_text())
    tree["rounds"] = 2
    data = tree.setdefault("data", {})
    if data.get("partition", {}).get("scheme") != "natural":
        data["limit"] = 300
    if data.get("dataset", {}).get("name") == "adult":
        data["dataset"]["source"] = "synthetic"  # the files are not on every machine
    if "count" in tree.get("clients", {}):
        tree["clients"]["count"] = min(tree["clients"]["count"], 8)
    if "count" in tree.get("clients", {}).get("selection", {}):
        tree["clients"]["selection"]["count"] = min(tree["clients"]["selection"]["count"], 4)
    if "epochs" in tree["training"]:
        tree["training"]["epochs"] = 1
    return yaml.safe_dump(tree, sort_keys=False)


def _paths(tree: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of a tree below its root."""
    found: list[tuple[str | int, ...]] = []
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        found += [(*place, key), *_paths(value, (*place, key))]
    return found


def _at(tree: Any, path: Any) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _draw_tree(rng: np.random.Generator, stratum: str, tree: Any) -> Step:
    paths = _paths(tree)
    numbers = [path for path in paths if isinstance(_at(tree, path), int | float)]
    path = pick(rng, numbers if stratum == "extremes" and numbers else paths)
    words = [one for one in paths if isinstance(_at(tree, one), str)]
    match stratum:
        case "extremes":
            near = rng.random() < 0.5
            value = _near(rng, _at(tree, path)) if near else pick(rng, _EXTREMES)
            return {"op": "put", "path": list(path), "value": value}
        case "types":
            return {"op": "put", "path": list(path), "value": pick(rng, _OTHERS)}
        case "words":
            others = sorted({*_vocabulary(), *_OTHERS[3:9]})
            return {"op": "put", "path": list(pick(rng, words)), "value": pick(rng, others)}
        case "keys":
            how = pick(rng, ("drop", "rename", "add"))
            new = pick(rng, (*_key_names(), "nope", "", "a.b", 1, None, True))
            return {"op": how, "path": list(path), "key": new, "value": pick(rng, (*_EXTREMES, *_OTHERS))}
        case "structure":
            return {"op": pick(rng, ("wrap list", "wrap map", "double", "nest")), "path": list(path)}
        case "swapped":
            return {"op": "copy", "path": list(path), "from": list(pick(rng, paths))}
    raise ValueError(f"no stratum {stratum!r}")


def _near(rng: np.random.Generator, value: Any) -> Any:
    """Another number of the same kind, by a factor or a step: more often allowed than an extreme is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return pick(rng, (value + 1, value - 1, 2 * value, value // 2, 10 * value, float(value) + 0.5))
    return value * 10.0 ** pick(rng, (-12, -6, -3, -1, 1, 3, 6, 12))


@cache
def _vocabulary() -> tuple[str, ...]:
    """Every word that stands in a shipped scenario as a value."""
    found = set()
    for name in _shipped():
        tree = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text())
        found |= {value for path in _paths(tree) if isinstance(value := _at(tree, path), str)}
    return tuple(sorted(found))


@cache
def _key_names() -> tuple[str, ...]:
    found = set()
    for name in _shipped():
        tree = yaml.safe_load((SHIPPED / f"{name}.yaml").read_text())
        found |= {path[-1] for path in _paths(tree) if isinstance(path[-1], str)}
    return tuple(sorted(found))


def _draw_text(rng: np.random.Generator, stratum: str, text: str) -> Step:
    if stratum == "bytes":
        return damage.draw_bytes(rng, text.encode()) if rng.random() < 0.8 else damage.draw_cut(rng, text.encode())
    return {
        "op": "insert",
        "line": int(rng.integers(1 << 16)),
        "text": pick(rng, _SYNTAX),
        "whole": bool(rng.random() < 0.5),
        "column": int(rng.integers(80)),
    }


def _within(lines: list[str], at: int, step: Step) -> str:
    at = min(at, len(lines) - 1)
    line, column = lines[at], step["column"] % (len(lines[at]) + 1)
    return "".join([*lines[:at], line[:column] + step["text"] + line[column:], *lines[at + 1 :]])


def _draw_command(rng: np.random.Generator, stratum: str, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Mostly ``validate``; a run only where no key asks for much work."""
    runs = stratum not in ("syntax", "bytes", "swapped", "words") and not any(_works(step) for step in steps)
    chance = rng.random()
    if runs and chance < 0.25:
        return ("simulate", "{subject}", "--out", "out", "--quiet", "--json")
    if runs and chance < 0.30:
        return ("audit", "{subject}", "--trials", "10", "--out", "out", "--json")
    return ("validate", "{subject}", "--json") if chance < 0.6 else ("validate", "{subject}")


def _works(step: Step) -> bool:
    if not _WORK.isdisjoint(map(str, step["path"])) or step.get("key") in _WORK:
        value = step.get("value", _SMALL_WORK + 1)
        return not isinstance(value, int | float) or not abs(value) <= _SMALL_WORK
    return step["op"] not in ("put", "drop", "wrap list", "wrap map")


def _changed(tree: Any, step: Step) -> Any:
    """A copy of a tree with one step carried out; a place that is no longer there is left alone."""
    tree = copy.deepcopy(tree)
    path = step["path"]
    try:
        parent, key = _at(tree, path[:-1]), path[-1]
        value = parent[key]
    except (KeyError, IndexError, TypeError):
        return tree
    match step["op"]:
        case "put":
            parent[key] = step["value"]
        case "drop":
            del parent[key]
        case "rename" | "add" if isinstance(parent, dict):
            parent[step["key"]] = step["value"] if step["op"] == "add" else parent.pop(key)
        case "wrap list":
            parent[key] = [value]
        case "wrap map":
            parent[key] = {str(key): value}
        case "double":
            parent[key] = [value, copy.deepcopy(value)]
        case "nest":
            for _ in range(100):
                value = {str(key): value}
            parent[key] = value
        case "copy":
            try:
                parent[key] = copy.deepcopy(_at(tree, step["from"]))
            except (KeyError, IndexError, TypeError):
                return tree
        case _:
            parent[key] = None
    return tree
