"""Scaling curves: the time of a round against active clients, registered clients and model size.

Real training of logistic regression (or a perceptron, against d) on synthetic data made on demand, over the air, with
trace and checkpoint. A curve ends where a round takes longer than ``LONGEST_ROUND_S``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.measurement import Case, Runner, Sample, steady
from benchmarks.recorded import time_scenario
from benchmarks.shell import on_demand
from wirelessfl.scenario import Scenario

ROUNDS = 3
LONGEST_ROUND_S = 5.0
ACTIVE, REGISTERED, DIMENSION = "active clients", "registered clients", "dimension"
CURVES = (ACTIVE, REGISTERED, DIMENSION)

_PER_HIDDEN_UNIT = 60 + 1 + 10  # parameters of a perceptron 60-h-10 for each of its h hidden units
_BEYOND_HIDDEN = 10


def with_active(active: int) -> Scenario:
    """All registered clients are active."""
    return on_demand(active, ROUNDS)


def with_registered(registered: int, active: int = 100) -> Scenario:
    """A few of many are active."""
    selection = {"scheme": "uniform", "count": min(active, registered)}
    return on_demand(registered, ROUNDS, clients={"count": registered, "selection": selection})


def with_dimension(dimension: int, active: int = 50) -> Scenario:
    """A perceptron 60-h-10 of about ``dimension`` parameters."""
    hidden = max(1, round((dimension - _BEYOND_HIDDEN) / _PER_HIDDEN_UNIT))
    return on_demand(active, ROUNDS, model={"name": "mlp", "hidden": [hidden]})


@dataclass
class Curve:
    """Points of one curve, in ascending order; after one that takes too long there are no more.

    Attributes:
        scenario_at: the scenario of a point.
        threads: of the host.
        runner: where it runs.
        ends_before: the first point that is left out.
    """

    scenario_at: Callable[[int], Scenario]
    threads: int
    runner: Runner
    ends_before: float = math.inf

    def measure(self, point: int) -> Sample:
        """Seconds of a round, the median without the first; NaN beyond the end."""
        if point >= self.ends_before:
            return Sample(math.nan)
        times, memory_mib = self.runner(partial(time_scenario, self.scenario_at(point), self.threads))
        seconds = steady(times.seconds)
        if seconds > LONGEST_ROUND_S:
            self.ends_before = point + 1
        return Sample(seconds, steady(times.cpu_seconds), memory_mib=memory_mib)


def scaling_cases(threads: int, runner: Runner, *, quick: bool) -> list[Case]:
    """All points of the three curves."""
    points: dict[str, tuple[Callable[[int], Scenario], Sequence[int]]] = {
        ACTIVE: (with_active, (10, 20) if quick else (10, 100, 1_000, 10_000, 100_000)),
        REGISTERED: (with_registered, (10, 200) if quick else (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
        DIMENSION: (with_dimension, (100, 1_000) if quick else (1_000, 10_000, 100_000, 1_000_000)),
    }
    cases = []
    for group, (scenario_at, values) in points.items():
        curve = Curve(scenario_at, threads, runner)
        cases += [Case(group, str(value), "s", partial(curve.measure, value), most=3) for value in values]
    return cases
