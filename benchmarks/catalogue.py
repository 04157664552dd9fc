"""All cases that are measured: the groups of ``python -m benchmarks``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks import (
    air,
    convolutions,
    dp,
    learning,
    run_workers,
    scaling,
    secagg,
    selection,
    shell,
    start,
    study_workers,
    trace_writer,
    vector_radio,
    workloads,
)
from benchmarks.measurement import Case, Runner, Sample, in_fresh_process, in_this_process

SECAGG = "secagg"
GROUPS = (
    "W1",
    "W2",
    "W3",
    *convolutions.GROUPS,
    dp.GROUP,
    air.GROUP,
    vector_radio.GROUP,
    SECAGG,
    selection.GROUP,
    learning.GROUP,
    learning.TOP_K,
    shell.GROUP,
    trace_writer.GROUP,
    study_workers.GROUP,
    run_workers.GROUP,
    start.GROUP,
    *scaling.CURVES,
)


def collect_cases(threads: int, rounds: int | None, *, quick: bool) -> list[Case]:
    """All cases but the machine's and the peers'; ``rounds`` shortens the workloads."""
    chosen = [each.smaller() if quick else each for each in workloads.WORKLOADS]
    if rounds is not None:
        chosen = [replace(each, rounds=rounds) for each in chosen]
    fedavg, private, _ = chosen
    runner: Runner = in_this_process if quick else in_fresh_process
    return [
        *workloads.workload_cases(chosen, threads, runner),
        *convolutions.convolution_cases(threads, runner, quick=quick),
        *dp.mechanism_cases(private, threads, runner),
        *dp.noise_cases(quick=quick),
        *air.air_cases(threads, quick=quick),
        *vector_radio.vector_cases(quick=quick),
        *secagg_cases(quick=quick),
        *selection.selection_cases(threads, runner, quick=quick),
        *learning.algorithm_cases(fedavg, threads, runner),
        *learning.top_k_cases(quick=quick),
        *shell.shell_cases(fedavg, threads, runner, quick=quick),
        *trace_writer.trace_cases(quick=quick),
        *study_workers.study_cases(quick=quick),
        *run_workers.worker_cases(runner, quick=quick),
        *start.start_cases(quick=quick),
        *scaling.scaling_cases(threads, runner, quick=quick),
    ]


def secagg_cases(*, quick: bool) -> list[Case]:
    """Rounds of secure aggregation against their cryptography alone."""
    chosen = (secagg.Case(30, 1_000, 2, 2),) if quick else secagg.CASES

    def measure(case: secagg.Case) -> Sample:
        return Sample(secagg.compare(case, repeats=1).cpu_ratio)

    return [
        Case(
            SECAGG,
            f"n = {case.num_clients:,}, d = {case.dimension:,}, {case.colluding} colluding",
            "× floor, CPU",
            partial(measure, case),
            most=2,
        )
        for case in chosen
    ]
