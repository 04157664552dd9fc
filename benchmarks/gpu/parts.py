"""The parts in their order, and the workloads of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.gpu import agreement, cohort, cuda_tests, peaks, resume, timeline, training
from benchmarks.gpu.setting import Measure


@dataclass(frozen=True)
class Part:
    """Workloads that are measured one after the other in a process of their own.

    Attributes:
        name: As in the table and for ``--only``.
        meaning: For people.
        workloads: How each is measured.
    """

    name: str
    meaning: str
    workloads: Mapping[str, Measure]


PARTS = (
    Part("tests", "tests that need CUDA", cuda_tests.WORKLOADS),
    Part("workloads", "W1, W2 and W3", training.WORKLOADS),
    Part("convolutions", "convolutional networks", training.CONVOLUTIONS),
    Part("papers", "workloads of two papers", training.PAPERS),
    Part("peaks", "what the GPU does at its best", peaks.WORKLOADS),
    Part("profile", "where the time of a round goes", timeline.WORKLOADS),
    Part("agreement", "updates beside those of the CPU", agreement.WORKLOADS),
    Part("cohort", "largest cohort in one block", cohort.WORKLOADS),
    Part("resume", "killed, resumed and verified", resume.WORKLOADS),
)

KEYS = tuple((part.name, workload) for part in PARTS for workload in part.workloads)
"""The rows of a whole table, in order."""


def part_of(name: str) -> Part:
    """The part of a name."""
    return next(part for part in PARTS if part.name == name)
