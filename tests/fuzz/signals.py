"""Signals at random moments: afterwards every folder is readable, and goes on to the bits of an undisturbed run."""

from __future__ import annotations

import hashlib
import shutil
import signal
from pathlib import Path

import numpy as np

from tests.fuzz.case import Case, Step, pick
from tests.fuzz.hdf5_objects import content_of, differences
from tests.fuzz.sandbox import Ending, Kick, command, forked
from tests.fuzz.subjects import WHOLE_ROUNDS, Subjects
from tests.fuzz.verdict import CODES, faults

STRATA = ("simulate", "resume", "study", "replay", "report", "audit", "validate")
RUNS = ("air", "secagg", "asynchronous")

INTERRUPTED = 130
_NUMBERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_LONGER = ("--set", f"rounds={WHOLE_ROUNDS}", "--quiet")
_COMMANDS: dict[str, tuple[str, ...]] = {
    "simulate": ("simulate", "{scenario}", "--out", "{subject}", *_LONGER),
    "resume": ("simulate", "{scenario}", "--out", "{subject}", "--resume", *_LONGER),
    "study": ("study", "{study}", "--out", "{subject}", "--workers", "1", "--quiet"),
    "replay": ("replay", "{subject}/trace.h5", "--verify", "--quiet"),
    "report": ("report", "{subject}", "--out", "out.html"),
    "audit": ("audit", "{scenario}", "--trials", "200", "--out", "out"),
    "validate": ("validate", "{scenario}"),
}
SPANS_S = {"study": 6.0, "validate": 0.5}
"""Signals come within this time of the start; 2 s otherwise."""
REAL_START_S = 2.0
"""After which a process of its own is killed at the earliest: before, it imports."""


def draw(rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
    """The case of a stratum that follows from a generator."""
    after = float(rng.random() * SPANS_S.get(stratum, 2.0))
    step: Step = {"op": "signal", "number": int(pick(rng, _NUMBERS)), "after_s": round(after, 4)}
    subject = "air" if stratum in ("study", "audit") else pick(rng, RUNS)
    return Case("signals", stratum, subject, _COMMANDS[stratum], (step,))


def kick_of(case: Case, *, as_process: bool) -> Kick:
    """The signal; one that can be answered comes at some time after the process can."""
    (step,) = case.steps
    late = as_process and step["number"] == signal.SIGKILL
    return Kick(step["number"], step["after_s"] + (REAL_START_S if late else 0.0))


def prepare(case: Case, subjects: Subjects, folder: Path) -> Path:
    """The folder that the command works on."""
    target = folder / "run"
    match case.stratum:
        case "resume":
            shutil.copytree(subjects.stopped(case.subject), target)
        case "replay" | "report":
            shutil.copytree(subjects.run(case.subject), target)
    return target


def judge(case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
    """What went wrong, then and afterwards."""
    (step,) = case.steps
    if ending.signal == step["number"] == signal.SIGKILL:
        found = []
    else:
        found = faults(ending, {*CODES, INTERRUPTED})
        if ending.code in (2, 3):
            found.append(f"exit code {ending.code} of a command without fault")
    return found + [f"afterwards: {one}" for one in _afterwards(case, subjects, target)]


def _afterwards(case: Case, subjects: Subjects, target: Path) -> list[str]:
    match case.stratum:
        case "simulate" | "resume":
            return _readable(target) + _resumes(case, subjects, target)
        case "study":
            return _study_resumes(subjects, target)
        case "replay" | "report":
            return _untouched(subjects.run(case.subject), target)
    return []


def _readable(target: Path) -> list[str]:
    """A trace is there and readable, or holds no round yet, or is not there."""
    trace = target / "trace.h5"
    if not trace.exists():
        return []
    ending = forked(command(["replay", str(trace), "--json"]), target.parent)
    found = faults(ending)
    if ending.code == 2 and "no round yet" not in ending.out:
        found.append(f"unreadable: {ending.out.strip()[-200:]}")
    return found


def _resumes(case: Case, subjects: Subjects, target: Path) -> list[str]:
    args = ["simulate", str(subjects.scenario(case.subject)), "--out", str(target), "--resume", *_LONGER]
    ending = forked(command(args), target.parent)
    if ending.code != 0:
        return [f"does not go on: exit code {ending.code}, {ending.out.strip()[-300:]}", *faults(ending)]
    return _same(subjects.whole(case.subject) / "trace.h5", target / "trace.h5")


def _study_resumes(subjects: Subjects, target: Path) -> list[str]:
    args = ["study", str(subjects.path / "study.yaml"), "--out", str(target), "--resume", "--workers", "1", "--quiet"]
    ending = forked(command(args), target.parent, limit_s=120)
    if ending.code != 0:
        return [f"does not go on: exit code {ending.code}, {ending.out.strip()[-300:]}", *faults(ending)]
    traces = sorted(subjects.study.glob("runs/*/trace.h5"))
    return [one for trace in traces for one in _same(trace, target / trace.relative_to(subjects.study))]


def _same(expected: Path, found: Path) -> list[str]:
    other = differences(content_of(expected), content_of(found))
    return [f"other numbers in {other[:5]}"] if other else []


def _untouched(healthy: Path, target: Path) -> list[str]:
    changed = [
        one.name
        for one in healthy.iterdir()
        if one.is_file() and (not (target / one.name).exists() or _digest(one) != _digest(target / one.name))
    ]
    return [f"changed what it reads: {changed}"] if changed else []


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
