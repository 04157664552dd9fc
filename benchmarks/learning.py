"""Algorithms against federated averaging, and the choice of the largest coordinates.

A round of W1 with files, in processor time, of one algorithm over that of FedAvg: rows that clients keep are trained
with, sent, and part of the checkpoint. Top-k is what one client takes on one thread, encoded and decoded.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measurement import Case, Runner, Sample, steady
from benchmarks.recorded import time_scenario
from benchmarks.workloads import UplinkKind, Workload
from wirelessfl.learning.compression import TopK
from wirelessfl.scenario import Scenario

GROUP = "algorithms"
TOP_K = "top-k"
ALGORITHMS = {"SCAFFOLD": "scaffold", "FedDyn": "feddyn"}
ROUNDS = 5
SHARES = (0.001, 0.01, 0.1)
_ROWS = 4


def with_algorithm(workload: Workload, name: str, uplink: UplinkKind) -> Scenario:
    """The workload with another algorithm."""
    shorter = replace(workload, rounds=min(workload.rounds, ROUNDS))
    content: dict[str, Any] = shorter.scenario(uplink).model_dump(mode="json")
    content["training"]["algorithm"] = {"name": name}
    return Scenario.model_validate(content)


def algorithm_cases(workload: Workload, threads: int, runner: Runner) -> list[Case]:
    """Processor time of a round with each algorithm over that with FedAvg."""

    def measure(name: str, uplink: UplinkKind) -> Sample:
        plain, other = (
            steady(runner(partial(time_scenario, with_algorithm(workload, each, uplink), threads))[0].cpu_seconds)
            for each in ("fedavg", name)
        )
        return Sample(other / plain, other)

    uplinks: tuple[UplinkKind, ...] = ("ideal", "over_the_air")
    return [
        Case(GROUP, f"{title}, {workload.name}, {uplink}", "× FedAvg, CPU", partial(measure, name, uplink), most=3)
        for title, name in ALGORITHMS.items()
        for uplink in uplinks
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
