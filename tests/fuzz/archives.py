"""Damaged archives: bytes, manifests that say other things, and members that no archive of runs has."""

from __future__ import annotations

import json
import shutil
import stat
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import damage
from tests.fuzz.case import Case, Step, pick
from tests.fuzz.sandbox import Ending
from tests.fuzz.subjects import Subjects
from tests.fuzz.verdict import faults

STRATA = ("bytes", "truncated", "zeroed", "replaced", "manifest", "members", "contents", "untouched")
RUNS = ("air", "ideal", "secagg")

_COMMANDS = (
    ("replay", "{subject}", "--verify"),
    ("replay", "{subject}", "--delta", "1e-6"),
    ("replay", "{subject}", "--run", "{run}", "--json"),
)
_MANIFEST = "manifest.json"
_NODES: tuple[Any, ...] = (None, True, "x", "../x", "/etc/passwd", [], {}, 3, -1, 10**18, 0.5, ["x"], {"nope": 1})
_NAMES = (
    "../outside.txt",
    "/tmp/outside.txt",
    "run/../../outside.txt",
    "C:\\x",
    "run//trace.h5",
    "",
    "a" * 5000,
    "\ud800",
)
_HOW = ("extra", "twice", "renamed", "link", "bomb", "dropped")
_BOMB = 1 << 26


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    subject = pick(rng, RUNS)
    command = tuple(word.replace("{run}", subject) for word in pick(rng, _COMMANDS))
    return Case("archives", stratum, subject, command, (_draw_step(rng, stratum, subjects.archive(subject)),))


def _draw_step(rng: np.random.Generator, stratum: str, path: Path) -> Step:
    match stratum:
        case "bytes":
            return damage.draw_bytes(rng, path.read_bytes())
        case "truncated":
            return damage.draw_cut(rng, path.read_bytes())
        case "zeroed":
            return damage.draw_zeros(rng, path.read_bytes())
        case "replaced":
            return damage.draw_place(rng)
        case "manifest":
            how = pick(rng, ("put", "drop", "add"))
            return {"op": how, "at": int(rng.integers(1 << 30)), "value": pick(rng, _NODES)}
        case "members":
            at, name = int(rng.integers(1 << 30)), pick(rng, _NAMES)
            return {"op": pick(rng, _HOW), "at": at, "name": name.encode(errors="surrogatepass").hex()}
        case "contents":
            return {"op": "content", "at": int(rng.integers(1 << 30)), "hex": rng.bytes(int(rng.integers(1, 65))).hex()}
        case "untouched":
            return {"op": "nothing"}
    raise ValueError(f"no stratum {stratum!r}")


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """The archive of a finished run, damaged."""
    target = folder / "run.zip"
    shutil.copyfile(subjects.archive(case.subject), target)
    for step in case.steps:
        match step["op"]:
            case "nothing":
                pass
            case "become":
                damage.become(target, step["what"])
            case "put" | "drop" | "add" | "content" | "extra" | "twice" | "renamed" | "link" | "bomb" | "dropped":
                _rewrite(target, step)
            case _:
                damage.damage_bytes(target, step)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong: also a damaged trace that is believed, and a file outside of every folder of the command."""
    found = faults(ending, allowed={0, 2, 3, 4} if case.command[2] == "--verify" else {0, 2, 3})
    if ending.code != 0 and case.stratum == "untouched":
        found.append("refused: an undamaged archive")
    if ending.code == 0 and case.stratum in ("members", "contents"):
        found.append("silent: members that the manifest does not vouch for")
    left = [path for path in (target.parent.parent / "outside.txt", Path("/tmp/outside.txt")) if path.exists()]
    if left:
        found.append(f"outside: wrote {left}")
    return found


def _rewrite(path: Path, step: Step) -> None:
    with zipfile.ZipFile(path) as archive:
        members = [(archive.getinfo(name), archive.read(name)) for name in archive.namelist()]
    at = step["at"] % len(members)
    info, content = members[at]
    match step["op"]:
        case "put" | "drop" | "add":
            members = [(one, _changed(text, step) if one.filename == _MANIFEST else text) for one, text in members]
        case "content":
            members[at] = (info, bytes.fromhex(step["hex"]) + content)
        case "extra":
            members.append((zipfile.ZipInfo(_name(step)), b"x"))
        case "twice":
            members.append((zipfile.ZipInfo(info.filename), b"x"))
        case "renamed":
            members[at] = (zipfile.ZipInfo(_name(step)), content)
        case "link":
            link = zipfile.ZipInfo(info.filename)
            link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
            members[at] = (link, b"/etc/passwd")
        case "bomb":
            members[at] = (zipfile.ZipInfo(info.filename), bytes(_BOMB))
        case "dropped":
            del members[at]
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # zipfile remarks on a name that comes twice
        for one, text in members:
            archive.writestr(one, text, zipfile.ZIP_DEFLATED)


def _name(step: Step) -> str:
    return bytes.fromhex(step["name"]).decode(errors="replace")[:60_000] or "x"


def _changed(text: bytes, step: Step) -> bytes:
    tree = json.loads(text)
    maps = _maps(tree)
    inner = maps[step["at"] % len(maps)]
    names = list(inner)
    if step["op"] == "add" or not names:
        inner["nope"] = step["value"]
    elif step["op"] == "drop":
        del inner[names[step["at"] // 7 % len(names)]]
    else:
        inner[names[step["at"] // 7 % len(names)]] = step["value"]
    return json.dumps(tree).encode()


def _maps(tree: Any) -> list[dict[str, Any]]:
    # Every mapping of the manifest, from the root down
    match tree:
        case dict():
            return [tree, *(one for child in tree.values() for one in _maps(child))]
        case list():
            return [one for child in tree for one in _maps(child)]
        case _:
            return []
