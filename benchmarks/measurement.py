"""Measurements of several cases in turn, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import math
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

Result = TypeVar("Result")
Resource = Literal["gemm", "copy"]

Reference = Literal["plain loop", "near-limit", "Opacus"]

PLAIN_LOOP: Reference = "plain loop"
"""What a researcher writes by hand: the case of a group that all others are compared with."""


@dataclass(frozen=True)
class Sample:
    """One measurement of one case.

    Attributes:
        value: in the unit of the case.
        cpu_seconds: of the processor for one round, all threads together; NaN where it was not measured.
        loss: of the trained model on all training samples; NaN where nothing is trained.
        memory_mib: largest resident memory of the process; NaN where it had no process of its own.
    """

    value: float
    cpu_seconds: float = math.nan
    loss: float = math.nan
    memory_mib: float = math.nan


@dataclass(frozen=True)
class Work:
    """What the machine cannot avoid doing for one unit of a case's value.

    Attributes:
        resource: which peak bounds it: matrix products or copying.
        amount: GFLOP, or GB moved (read or written).
    """

    resource: Resource
    amount: float


@dataclass(frozen=True)
class Case:
    """Something to measure.

    Attributes:
        group: cases of a group are compared with each other.
        name: what is measured.
        unit: of its value. Where it ends in "/s", more is better and ratios are taken.
        measure: takes one sample.
        work: what one unit of the value costs the machine at least, or None where no peak applies.
        most: runs that are enough for a case that takes long.
        reference: what the case stands for where others of its group are compared with it.
    """

    group: str
    name: str
    unit: str
    measure: Callable[[], Sample]
    work: Work | None = None
    most: int = 1000
    reference: Reference | None = None

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit.endswith("/s")


@dataclass
class Row:
    """A case and its samples, one a run."""

    case: Case
    samples: list[Sample] = field(default_factory=list)

    @property
    def values(self) -> list[float]:
        """The measured values."""
        return [sample.value for sample in self.samples]

    @property
    def median(self) -> float:
        """The median value."""
        return statistics.median(self.values)

    @property
    def is_complete(self) -> bool:
        """Whether every run gave a value."""
        return not any(math.isnan(value) for value in self.values)

    @property
    def loss(self) -> float:
        """The loss; equal in all runs where the same work is done."""
        return self.samples[-1].loss

    @property
    def memory_mib(self) -> float:
        """The largest memory."""
        return max(sample.memory_mib for sample in self.samples)

    def ratio_to(self, other: Row) -> float:
        """How often faster than the other: the median run by run, as a pair was taken one after the other."""
        return statistics.median(a / b for a, b in zip(self.values, other.values, strict=False))

    def cpu_ratio_to(self, other: Row) -> float:
        """The same by processor time, which counts neither the neighbours' work nor waiting for a disk."""
        pairs = zip(self.samples, other.samples, strict=False)
        return statistics.median(theirs.cpu_seconds / own.cpu_seconds for own, theirs in pairs)


class Runner(Protocol):
    """Where a measurement runs."""

    def __call__(self, work: Callable[[], Result]) -> tuple[Result, float]:
        """The result of ``work``, and the largest memory of its process in MiB or NaN."""
        ...


def in_this_process(work: Callable[[], Result]) -> tuple[Result, float]:
    """At once, beside everything else in memory: for quick checks."""
    return work(), math.nan


def in_fresh_process(work: Callable[[], Result]) -> tuple[Result, float]:
    """In a process of its own, which holds nothing else and can be asked for its largest memory.

    Args:
        work: a function of a module, or ``functools.partial`` of one: it is sent to the process by name.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_memory, work).result()


def _with_memory(work: Callable[[], Result]) -> tuple[Result, float]:
    return work(), peak_memory_mib()


def peak_memory_mib() -> float:
    """The largest resident memory of this process so far; NaN where the system does not tell."""
    # ru_maxrss would count the parent's memory too: it survives exec.
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), math.nan)


def best_reference(rows: Sequence[Row], group: str, reference: Reference) -> Row | None:
    """The fastest case of a group that stands for a reference, by its median; None where there is none."""
    candidates = [
        row for row in rows if row.case.group == group and row.case.reference == reference and row.is_complete
    ]
    return max(candidates, key=lambda row: row.median, default=None)


def measure_in_turn(cases: Sequence[Case], runs: int, announce: Callable[[Row], None]) -> list[Row]:
    """All cases once, then all again: slow moments of the machine fall on neighbours.

    Args:
        cases: what to measure.
        runs: samples of each.
        announce: hears of every new sample.
    """
    rows = [Row(case) for case in cases]
    for run in range(runs):
        for row in rows:
            if run < row.case.most:
                row.samples.append(row.case.measure())
                announce(row)
    return rows


def steady(seconds: Iterable[float]) -> float:
    """The median round without the first, which warms caches up."""
    first, *others = seconds
    return statistics.median(others or [first])
