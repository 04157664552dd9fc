"""Throughput of a study: two worker processes beside one, each with one thread.

    python -m benchmarks --only study

Start-up (imports, the first run of each worker, which fills caches) is left out, and so is the end, when not all
workers have work any more: what counts are the outcomes that arrive in between.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.measurement import Case, Sample
from wirelessfl.study import load_study, run_study
from wirelessfl.study.task import Message, Outcome

GROUP = "study"
WORKERS = 2


def steady_rate(arrivals: Sequence[float], workers: int) -> float:
    """Runs a second while all workers are warm and busy.

    Args:
        arrivals: seconds at which the runs ended, in order; more than three for each worker.
        workers: how many computed them.
    """
    first, last = 2 * workers - 1, len(arrivals) - workers
    return (last - first) / (arrivals[last] - arrivals[first])


class Throughput:
    """Runs of one size, computed by one worker and by several in turn."""

    def __init__(self, runs: int, rounds: int) -> None:
        """``runs`` seeds of the shipped study's base, ``rounds`` each."""
        self._runs = runs
        self._rounds = rounds
        self._latest: dict[int, float] = {}

    def rate(self, workers: int) -> Sample:
        """Runs a second of so many workers."""
        arrivals: list[float] = []

        def note(message: Message) -> None:
            if isinstance(message, Outcome):
                if message.status != "complete":
                    raise RuntimeError(f"a run ended as {message.status}: {message.error}")
                arrivals.append(time.perf_counter())

        with tempfile.TemporaryDirectory(prefix="wirelessfl-study-") as folder:
            study = Path(folder) / "study.yaml"
            study.write_text(f"base: quickstart\nset: {{rounds: {self._rounds}}}\nseeds: {self._runs}\n")
            run_study(load_study(study), Path(folder) / "out", workers=workers, threads=1, on_message=note)
        self._latest[workers] = steady_rate(arrivals, workers)
        return Sample(self._latest[workers])

    def gain(self) -> Sample:
        """The rate of several workers over that of one, both measured just before."""
        return Sample(self._latest[WORKERS] / self._latest[1])


def study_cases(*, quick: bool) -> list[Case]:
    """One worker, two workers, and the quotient; in this order, for the last needs the others."""
    throughput = Throughput(*((8, 2) if quick else (40, 10)))
    return [
        Case(GROUP, "1 worker, 1 thread", "runs/s", partial(throughput.rate, 1)),
        Case(GROUP, f"{WORKERS} workers, 1 thread each", "runs/s", partial(throughput.rate, WORKERS)),
        Case(GROUP, f"{WORKERS} workers over 1", "× one worker", throughput.gain),
    ]
