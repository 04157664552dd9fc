"""Rounds of W1 and C1 on one to ten workers behind links of 1 ms and 1 Gbit/s, on paper.

    python -m benchmarks.worker_links

The bytes are those of one round as it is pickled, seconds of a block are processor time of one thread. Reckoned with:
every worker takes the model over the link of the run's process, which all returning sums or updates share as well; they
travel while other blocks are trained; a round lasts as long as its slower part. Server step and superposition left out.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.convolutions import IMAGE_WORKLOADS
from benchmarks.workloads import WORKLOADS
from wirelessfl.assembly import build_simulation, choose_plan
from wirelessfl.cluster.worker import RoundOnWorkers, RunOnWorkers, sum_part, train_part
from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import BlockMap, Cohort, CohortPart, SummedBlock
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.learner import Learner

LATENCY_S, BITS_PER_S = 1e-3, 1e9
MOST = 10

Result = TypeVar("Result")


@dataclass
class Traffic:
    """What a round sends, and what its blocks take.

    Attributes:
        model: bytes of what all blocks share.
        parts: bytes of what each block gets.
        back: bytes of what each block gives.
        seconds: of each block's training.
    """

    model: int = 0
    parts: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def round_s(self, workers: int) -> float:
        """Seconds of a round on so many workers."""
        out, back = workers * self.model + sum(self.parts), sum(self.back)
        busy = max(sum(self.seconds[first::workers]) for first in range(workers))
        sending = 8 * self.model * workers / BITS_PER_S
        return 2 * LATENCY_S + sending + max(busy, 8 * (out - workers * self.model + back) / BITS_PER_S)


class _Counted:
    # A `TrainingElsewhere` that trains here and counts; only the last round is kept
    def __init__(self, scenario: Scenario, learner: Learner) -> None:
        self._run = RunOnWorkers.of(scenario, learner.population)
        self.last = Traffic()

    def __call__(self, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Iterator[CohortBlock]:
        for found, positions in zip(self._counted(train_part, cohort, blocks, None), blocks, strict=True):
            yield found.block(positions, cohort.start.device)

    def summing(self, total: BlockSum) -> BlockMap[SummedBlock]:
        return lambda cohort, blocks: self._counted(sum_part, cohort, blocks, total)

    def _counted(
        self,
        task: Callable[[RoundOnWorkers, CohortPart], Result],
        cohort: Cohort,
        blocks: Sequence[NDArray[np.int64]],
        total: BlockSum | None,
    ) -> Iterator[Result]:
        shared = RoundOnWorkers.of(self._run, cohort, total)
        self.last = Traffic(_size(shared))
        for positions in blocks:
            part = cohort.part(positions)
            begun = time.process_time()
            found = task(shared, part)
            self.last.seconds.append(time.process_time() - begun)
            self.last.parts.append(_size(part))
            self.last.back.append(_size(found))
            yield found


def _size(sent: Any) -> int:
    return len(pickle.dumps(sent))


def traffic(scenario: Scenario) -> Traffic:
    """Traffic of the last round of a scenario."""
    made: list[_Counted] = []

    def elsewhere(given: Scenario, learner: Learner) -> _Counted:
        made.append(_Counted(given, learner))
        return made[0]

    plan = choose_plan(scenario.compute, "cpu", 1, elsewhere=True)
    build_simulation(scenario, plan, elsewhere=elsewhere).run(lambda *_: None)
    return made[0].last


def main() -> None:
    """A table of both workloads."""
    first, images = replace(WORKLOADS[0], rounds=2), replace(IMAGE_WORKLOADS[0], rounds=2)
    scenarios = {first.name: first.scenario("ideal"), images.name: images.scenario()}
    for name, scenario in scenarios.items():
        this = traffic(scenario)
        sizes = f"model {this.model / 1e6:.2f} MB, {len(this.back)} blocks, {sum(this.back) / 1e6:.1f} MB back"
        click.echo(f"{name}: {sizes}, {sum(this.parts) / 1e3:.0f} kB of parts, {sum(this.seconds):.2f} s of training")
        for workers in range(1, MOST + 1):
            taken = this.round_s(workers)
            gain = sum(this.seconds) / taken
            click.echo(f"{workers:4d} workers {taken:7.3f} s a round, {gain:5.2f} times one process of one thread")


if __name__ == "__main__":
    main()
