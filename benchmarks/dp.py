"""Private local training: the mechanisms on workload W2, and the noise alone.

Every mechanism has the model, the data and the ideal uplink of W2, so that ratios are to the same plain loop. What
remains with noise multiplier 0 is clipping; without a mechanism, plain training.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.machine import best_seconds
from benchmarks.measurement import Case, Runner, Sample, Work
from benchmarks.recorded import time_scenario
from benchmarks.workloads import Workload, dp_sgd, rate
from wirelessfl.normals import add_normal
from wirelessfl.streams import Streams

GROUP = "noise"
MECHANISMS: dict[str, dict[str, Any]] = {
    "simulator, wavelet noise": dp_sgd(mechanism="wavelet"),
    "simulator, MOO clipping": dp_sgd(clipping={"name": "moo"}),
    "simulator, clipping without noise": dp_sgd(noise_multiplier=0.0),
    "simulator, no privacy": {"mechanism": "none"},
}


def mechanism_cases(workload: Workload, threads: int, runner: Runner) -> list[Case]:
    """W2 with other mechanisms."""

    def measure(privacy: dict[str, Any]) -> Sample:
        return rate(runner(partial(time_scenario, workload.scenario("ideal", privacy), threads)))

    work = Work("gemm", workload.gflop)
    return [
        Case(workload.name, name, "rounds/s", partial(measure, privacy), work, most=2)
        for name, privacy in MECHANISMS.items()
    ]


def noise_cases(*, quick: bool) -> list[Case]:
    """Adding normals to a block of updates on one thread: read and written once at the speed of copying at best."""
    clients, dimension, lasting_s = (2, 10_000, 0.01) if quick else (5, 155_820, 0.5)
    work = Work("copy", 2 * 4e-9)
    return [Case(GROUP, "normals, 1 thread", "numbers/s", partial(_noise_rate, clients, dimension, lasting_s), work)]


def _noise_rate(clients: int, dimension: int, lasting_s: float) -> Sample:
    torch.set_num_threads(1)
    out, std, streams = torch.zeros(clients, dimension), torch.ones(clients), Streams(0)
    nodes = np.arange(clients)
    seconds = best_seconds(lambda: add_normal(out, std, streams, "benchmark", 1, nodes, 0), lasting_s)
    return Sample(clients * dimension / seconds)
