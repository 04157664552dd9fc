"""One run whose blocks two worker processes of one thread each train, beside the same run on two threads.

    python -m benchmarks --only workers

Start-up is left out: the first round, in which workers import and build the data, does not count. The largest losses
of the final models differ by rounding, as the blocks do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.convolutions import IMAGE_WORKLOADS
from benchmarks.measurement import Case, Runner, Sample
from benchmarks.recorded import RoundTimes, time_scenario, time_simulation
from benchmarks.workloads import WORKLOADS, rate
from wirelessfl.assembly import build_simulation, choose_plan
from wirelessfl.cluster.training import training_elsewhere
from wirelessfl.scenario import Scenario

GROUP = "workers"
WORKERS = 2


def time_on_workers(scenario: Scenario, workers: int) -> RoundTimes:
    """A whole run on worker processes of one thread."""
    with training_elsewhere(workers, None, lambda: None) as elsewhere:
        plan = choose_plan(scenario.compute, "cpu", workers, elsewhere=True)
        return time_simulation(build_simulation(scenario, plan, elsewhere=elsewhere), scenario)


class _Pair:
    # Both ways of a scenario in turn, and their quotient
    def __init__(self, scenario: Scenario, runner: Runner) -> None:
        self._scenario, self._runner = scenario, runner
        self._latest: dict[str, float] = {}

    def rate(self, name: str, run: Callable[[Scenario, int], RoundTimes]) -> Sample:
        found = rate(self._runner(partial(run, self._scenario, WORKERS)))
        self._latest[name] = found.value
        return found

    def quotient(self) -> Sample:
        return Sample(self._latest["workers"] / self._latest["threads"])


def worker_cases(runner: Runner, *, quick: bool) -> list[Case]:
    """W1 and C1 on two threads, on two workers, and the quotient, which needs both."""
    chosen = [each.smaller() if quick else each for each in (WORKLOADS[0], IMAGE_WORKLOADS[0])]
    scenarios = [chosen[0].scenario("ideal"), chosen[1].scenario()]  # type: ignore[call-arg]
    cases = []
    for each, scenario in zip(chosen, scenarios, strict=True):
        pair = _Pair(scenario, runner)
        threads = partial(pair.rate, "threads", time_scenario)
        workers = partial(pair.rate, "workers", time_on_workers)
        cases += [
            Case(GROUP, f"{each.name}, {WORKERS} threads", "rounds/s", threads),
            Case(GROUP, f"{each.name}, {WORKERS} workers of one thread", "rounds/s", workers),
            Case(GROUP, f"{each.name}, workers over threads", "× threads", pair.quotient),
        ]
    return cases
