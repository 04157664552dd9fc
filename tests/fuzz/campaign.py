"""Many cases of one kind in a row, and what was found."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from tests.fuzz import archives, checkpoints, scenarios, signals, studies, traces
from tests.fuzz.case import Case, generator_of
from tests.fuzz.sandbox import Ending, command, forked, real
from tests.fuzz.subjects import Subjects


class Kind(Protocol):
    """A family of cases: a module with these names."""

    @property
    def STRATA(self) -> tuple[str, ...]:
        """The families of damage."""

    def draw(self, rng: np.random.Generator, stratum: str, subjects: Subjects) -> Case:
        """The case that follows from a generator."""

    def prepare(self, case: Case, subjects: Subjects, folder: Path) -> Path:
        """The damaged file or folder."""

    def judge(self, case: Case, subjects: Subjects, target: Path, ending: Ending) -> list[str]:
        """What went wrong."""


def kind_of(name: str) -> Kind:
    """The family of a name."""
    families: dict[str, Kind] = {
        "traces": traces,
        "scenarios": scenarios,
        "checkpoints": checkpoints,
        "studies": studies,
        "signals": signals,
        "archives": archives,
    }
    return families[name]


@dataclass(frozen=True)
class Finding:
    """A case in which something went wrong.

    Attributes:
        index: the number of its case.
        case: the case, with as few steps as show it.
        faults: what went wrong, in words.
        out: the last that the process printed.
    """

    index: int
    case: Case
    faults: tuple[str, ...]
    out: str


@dataclass
class Tally:
    """What a campaign did.

    Attributes:
        cases: how many of each stratum.
        codes: how many ended with which exit code, by command.
        findings: what was found.
        seconds: time since the start.
    """

    cases: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0


def play(case: Case, subjects: Subjects, *, as_process: bool = False) -> tuple[list[str], Ending]:
    """Carry out one case in a fresh folder: what went wrong, and how it ended."""
    kind = kind_of(case.kind)
    scratch = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=scratch) as name:
        folder = Path(name)
        target = kind.prepare(case, subjects, folder)
        names = {
            "{subject}": str(target),
            "{scenario}": str(subjects.scenario(case.subject)),
            "{study}": str(subjects.path / "study.yaml"),
        }
        args = [_filled(word, names) for word in case.command]
        kick = signals.kick_of(case, as_process=as_process) if case.kind == "signals" else None
        ending = real(args, folder, kick=kick) if as_process else forked(command(args), folder, kick=kick)
        return kind.judge(case, subjects, target, ending), ending


def _filled(word: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        word = word.replace(name, value)
    return word


def case_of(kind: str, seed: int, index: int, subjects: Subjects, stratum: str | None = None) -> Case:
    """The case of a number; strata come in turn unless one is asked for."""
    family = kind_of(kind)
    wanted = family.STRATA[index % len(family.STRATA)] if stratum is None else stratum
    return family.draw(generator_of(kind, seed, index), wanted, subjects)


def minimised(case: Case, subjects: Subjects) -> Case:
    """The case with the steps taken away without which something goes wrong all the same."""
    for step in case.steps:
        fewer = replace(case, steps=tuple(one for one in case.steps if one is not step))
        if fewer.steps and play(fewer, subjects)[0]:
            case = fewer
    return case


def campaign(
    kind: str,
    seed: int,
    indices: Iterator[int],
    subjects: Subjects,
    *,
    stratum: str | None = None,
    as_process: bool = False,
    on_finding: Callable[[Finding], None] = lambda _: None,
) -> Tally:
    """Play cases; findings are reported as they come, with as few steps as show them."""
    tally, start = Tally(), time.monotonic()
    for index in indices:
        case = case_of(kind, seed, index, subjects, stratum)
        wrong, ending = play(case, subjects, as_process=as_process)
        tally.cases[case.stratum] += 1
        tally.codes[f"{case.command[0]} {ending.code if ending.signal is None else -ending.signal}"] += 1
        if wrong:
            small = case if as_process or ending.hung else minimised(case, subjects)
            finding = Finding(index, small, tuple(wrong), ending.out[-3000:])
            tally.findings.append(finding)
            on_finding(finding)
        tally.seconds = time.monotonic() - start
    return tally


def scratch_subjects() -> Path:
    """Where the subjects of campaigns on this machine lie."""
    return Path(tempfile.gettempdir()) / "wirelessfl-fuzz"


def clear(path: Path) -> None:
    """Remove the subjects, so that the next campaign makes them afresh."""
    shutil.rmtree(path, ignore_errors=True)
