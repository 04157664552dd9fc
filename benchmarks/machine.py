"""What the machine can do at this moment: matrix products and copying."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.measurement import Case, Sample
from wirelessfl.learning.cohort.products import product

GROUP = "machine"
GEMM, COPY = "matrix products, fp32", "copying"


def best_seconds(work: Callable[[], object], lasting_s: float) -> float:
    """The fastest of many calls: what the machine can do when it is left alone."""
    work()
    best, end = float("inf"), time.perf_counter() + lasting_s
    while time.perf_counter() < end or best == float("inf"):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def gemm_rate(side: int, threads: int, lasting_s: float) -> Sample:
    """GFLOP/s of a square product in fp32 by the faster of torch's libraries, a multiply-add counted as two."""
    torch.set_num_threads(threads)
    left, right, out = (torch.randn(side, side) for _ in range(3))
    ways = (lambda: torch.mm(left, right, out=out), lambda: product(left, right))
    return Sample(2e-9 * side**3 / min(best_seconds(way, lasting_s / len(ways)) for way in ways))


def copy_rate(megabytes: int, threads: int, lasting_s: float) -> Sample:
    """GB/s that are read plus GB/s that are written while a vector far larger than the caches is copied."""
    torch.set_num_threads(threads)
    source = torch.ones(megabytes * 250_000)
    target = torch.empty_like(source)
    return Sample(2e-3 * megabytes / best_seconds(lambda: target.copy_(source), lasting_s))


def machine_cases(threads: int, *, quick: bool) -> list[Case]:
    """The peaks on all threads."""
    side, megabytes, lasting_s = (256, 16, 0.02) if quick else (2048, 512, 0.5)
    return [
        Case(GROUP, GEMM, "GFLOP/s", partial(gemm_rate, side, threads, lasting_s)),
        Case(GROUP, COPY, "GB/s", partial(copy_rate, megabytes, threads, lasting_s)),
    ]
