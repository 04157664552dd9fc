"""Algorithms against federated averaging, and the choice of the largest coordinates.

A round of W1 over the air, in processor time, of one algorithm over that of FedAvg: rows that clients keep are trained
with, sent, and part of the checkpoint, which is written after every round. Top-k is what one client takes on one
thread, encoded and decoded.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measurement import Case, Runner, Sample, steady
from benchmarks.phases import PartTimes
from benchmarks.recorded import prepare, time_simulation
from benchmarks.workloads import UplinkKind, Workload
from wirelessfl.learning.compression import TopK
from wirelessfl.scenario import Scenario
from wirelessfl.trace import CheckpointWriter

GROUP = "algorithms"
TOP_K = "top-k"
ALGORITHMS = {"SCAFFOLD": "scaffold", "FedDyn": "feddyn"}
ROUNDS = 7
SHARES = (0.001, 0.01, 0.1)
_ROWS = 4


def with_algorithm(workload: Workload, name: str, uplink: UplinkKind) -> Scenario:
    """The workload with another algorithm."""
    shorter = replace(workload, rounds=min(workload.rounds, ROUNDS))
    content: dict[str, Any] = shorter.scenario(uplink).model_dump(mode="json")
    content["training"]["algorithm"] = {"name": name}
    return Scenario.model_validate(content)


def time_round(scenario: Scenario, threads: int) -> tuple[float, float]:
    """Processor seconds of a round, and those of its checkpoint: the medians without the first."""
    times, spent, simulation = PartTimes(), [0.0], prepare(scenario, threads)
    saved = times.counted("checkpoint", CheckpointWriter.save)
    with mock.patch.object(CheckpointWriter, "save", saved):
        rounds = time_simulation(simulation, scenario, lambda: spent.append(times.seconds["checkpoint"]))
    return steady(rounds.cpu_seconds), steady(after - before for before, after in pairwise(spent))


def algorithm_cases(workload: Workload, threads: int, runner: Runner) -> list[Case]:
    """Processor time of a round with each algorithm over that with FedAvg, with and without its checkpoint."""

    def measure(name: str, saves: bool) -> Sample:
        before, other, after = (
            runner(partial(time_round, with_algorithm(workload, each, "over_the_air"), threads))[0]
            for each in ("fedavg", name, "fedavg")  # before and after: the clock of a processor drifts
        )
        first, second, last = (whole - (0.0 if saves else saving) for whole, saving in (before, other, after))
        return Sample(2 * second / (first + last), second)

    whole = {"": True, ", less the checkpoint": False}
    return [
        Case(GROUP, f"{title}, {workload.name}{words}", "× FedAvg, CPU", partial(measure, name, saves), most=9)
        for title, name in ALGORITHMS.items()
        for words, saves in whole.items()
    ]


def top_k_cases(*, quick: bool) -> list[Case]:
    """Processor milliseconds of a client for its largest coordinates."""
    dimension = 10_000 if quick else 1_000_000
    rows = np.random.default_rng(0).standard_normal((_ROWS, dimension)).astype(np.float32)

    def measure(share: float) -> Sample:
        codec, began = TopK(share), time.process_time()
        codec.decode(codec.encode(rows, []))
        return Sample(1e3 * (time.process_time() - began) / _ROWS)

    return [Case(TOP_K, f"{share:.1%} of {dimension:,}", "ms/client, CPU", partial(measure, share)) for share in SHARES]
