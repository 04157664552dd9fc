"""Damaged traces: strata of damage, and what may be run on them."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.fuzz import damage
from tests.fuzz.case import Case, Step, pick
from tests.fuzz.hdf5_objects import content_of, differences
from tests.fuzz.hdf5_steps import apply_hdf5
from tests.fuzz.sandbox import Ending, forked
from tests.fuzz.subjects import SCENARIOS, Subjects
from tests.fuzz.verdict import CODES, faults

STRATA = ("bytes", "truncated", "zeroed", "deleted", "resized", "retyped", "altered", "linked", "replaced")

_TRACE = "{subject}/trace.h5"
_LOOKS: tuple[tuple[str, ...], ...] = (
    ("replay", _TRACE, "--json"),
    ("replay", _TRACE),
    ("replay", _TRACE, "--delta", "1e-6", "--json"),
    ("replay", _TRACE, "--accountant", "rdp", "--json"),
    ("replay", _TRACE, "--from", "1", "--to", "1", "--json"),
    ("replay", _TRACE, "--export", "csv", "--quiet", "--out", "out"),
    ("replay", _TRACE, "--export", "parquet", "--quiet", "--out", "out"),
    ("replay", _TRACE, "--export", "netcdf", "--quiet", "--out", "out"),
    ("replay", _TRACE, "--export", "chrome", "--quiet", "--out", "out"),
    ("replay", _TRACE, "--set", "clients.count=3", "--quiet", "--out", "out"),
    ("replay", _TRACE, "--json"),
    ("report", "{subject}", "--out", "out.html"),
    ("simulate", "{scenario}", "--out", "{subject}", "--resume", "--quiet"),
)
VERIFY = ("replay", _TRACE, "--verify", "--quiet", "--json")
_VALUES = (
    "0",
    "-1",
    "1",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "5e-324",
    "9223372036854775807",
    "-9223372036854775808",
)
_TYPES = (
    "S7",
    "f2",
    "f4",
    "f8",
    ">f8",
    "i1",
    "u1",
    "i8",
    "u8",
    "?",
    "c16",
    "text",
    "reference",
    "compound",
    "empty",
    "vlen",
)
_SHAPES = ("scalar", "flat", "none", "one more", "one less", "double", "huge", "extra axis", "lost axis")
_LINKS = ("external", "soft", "soft out", "cycle", "storage", "virtual", "hard")


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    subject = pick(rng, tuple(SCENARIOS))
    folder = subjects.run(subject)
    shown = VERIFY if rng.random() < (0.5 if stratum == "altered" else 0.08) else pick(rng, _LOOKS)
    count = 1 if stratum == "altered" or rng.random() < 0.6 else int(rng.integers(2, 5))
    steps = tuple(_draw_step(rng, stratum, folder) for _ in range(count))
    return Case("traces", stratum, subject, shown, steps)


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """A copy of the subject with the damage done; what could not be done is left out."""
    target = folder / "run"
    target.mkdir()
    source = subjects.run(case.subject)
    for name in ("trace.h5", "scenario.yaml", "summary.json", "checkpoint.bin"):
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)
    trace = target / "trace.h5"
    for step in sorted(case.steps, key=_is_late):
        if step["op"] in damage.BYTE_OPS:
            damage.damage_bytes(trace, step)
        elif step["op"] == "become":
            damage.become(trace, step["what"])
        else:
            apply_hdf5(trace, step)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong."""
    verifies = "--verify" in case.command
    found = faults(ending, {*CODES, 4} if verifies else CODES)
    if verifies and ending.code == 0:
        found += _silence(subjects.run(case.subject) / "trace.h5", target)
    return found


def _silence(healthy: Path, target: Path) -> list[str]:
    """A verification said "the same": is it? The walk has a child of its own, for the file is damaged."""

    def look() -> None:
        altered = differences(_content(healthy), content_of(target / "trace.h5"))
        print(*altered[:5], flush=True)

    ending = forked(look, target)
    if ending.code != 0:
        return [f"silent: verified what cannot be walked ({ending.out[-200:].strip()})"]
    altered = ending.out.strip()
    return [f"silent: verified although {altered} differ"] if altered else []


@cache
def _content(path: Path) -> dict[str, str]:
    return content_of(path)


@cache
def _bytes(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _datasets(path: Path) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    """Name, shape and kind of every dataset."""
    found: list[tuple[str, tuple[int, ...], str]] = []

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset):
            found.append((f"/{name}", thing.shape, thing.dtype.kind))

    with h5py.File(path, "r") as file:
        file.visititems(note)
    return tuple(found)


@cache
def _attribute_places(path: Path) -> tuple[tuple[str, str], ...]:
    """Object and attribute; those of the root and of groups four times, for most values of a run are there."""
    found: list[tuple[str, str]] = []

    def note(name: str, thing: Any) -> None:
        times = 4 if isinstance(thing, h5py.Group) else 1
        found.extend([(f"/{name}", one) for one in thing.attrs] * times)

    with h5py.File(path, "r") as file:
        found.extend([("/", one) for one in file.attrs] * 16)
        file.visititems(note)
    return tuple(found)


def _draw_step(rng: np.random.Generator, stratum: str, folder: Path) -> Step:
    trace = folder / "trace.h5"
    match stratum:
        case "bytes":
            return damage.draw_bytes(rng, _bytes(trace))
        case "truncated":
            return damage.draw_cut(rng, _bytes(trace))
        case "zeroed":
            return damage.draw_zeros(rng, _bytes(trace))
        case "replaced":
            return damage.draw_place(rng)
    if stratum in ("deleted", "retyped", "altered") and rng.random() < 0.35:
        name, attribute = pick(rng, _attribute_places(trace))
        step: Step = {"object": name, "attribute": attribute}
    else:
        name, _, _ = pick(rng, _datasets(trace))
        step = {"object": name}
        if stratum == "deleted" and rng.random() < 0.1:
            step = {"object": f"/{name.split('/')[1]}"}
    match stratum:
        case "deleted":
            return {"op": "delete", **step}
        case "resized":
            return {"op": "resize", **step, "how": pick(rng, _SHAPES)}
        case "retyped":
            return {"op": "retype", **step, "as": pick(rng, _TYPES)}
        case "altered":
            at = int(rng.integers(1 << 30))
            value = pick(rng, _VALUES) if rng.random() < 0.5 else pick(rng, ("step", "flip", "negate"))
            return {"op": "alter", **step, "at": at, "value": value}
        case "linked":
            return {"op": "link", **step, "how": pick(rng, _LINKS)}
    raise ValueError(f"no stratum {stratum!r}")


def _is_late(step: Step) -> int:
    """Objects first, then bytes, then the place: a file whose bytes are damaged takes no more objects."""
    return 0 if step["op"] not in (*damage.BYTE_OPS, "become") else 2 if step["op"] == "become" else 1
