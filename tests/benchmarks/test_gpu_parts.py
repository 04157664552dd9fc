"""The parts of ``make gpu``: each rehearsed on the CPU, and its arithmetic beside an independent computation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu import cohort, cuda_tests, resume, roofline
from benchmarks.gpu.agreement import compare_laws, measure_equality
from benchmarks.gpu.cohort import largest
from benchmarks.gpu.cuda_tests import count, marked_files
from benchmarks.gpu.parts import KEYS, part_of
from benchmarks.gpu.peaks import COPY, GEMM, copy_bytes, gemm_operations
from benchmarks.gpu.prepare import ROOT
from benchmarks.gpu.roofline import RoundWork, round_work, with_shares
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.table import Row
from benchmarks.gpu.tasks import CNN_CIFAR10, TRAINED, W1, W2, WORKLOAD_TASKS, Task
from benchmarks.gpu.timeline import Shares, Span, read_spans, shares
from benchmarks.recorded import prepare
from benchmarks.workloads import CLASSES, WORKLOADS
from tests.statistics import shifted

TINY = Setting("cpu", tiny=True)
# A second of its kind on a CPU, and runs in three processes each; that runs go on after a kill is tested elsewhere too.
SLOW = {("convolutions", "resnet18_gn"), ("resume", "quickstart"), ("resume", "dp-sgd")}


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=pytest.mark.slow) if key in SLOW else key for key in KEYS],
    ids=": ".join,
)
@pytest.mark.slow
def test_every_part_is_rehearsed_on_the_cpu(key: tuple[str, str]) -> None:
    part, workload = key
    found = part_of(part).workloads[workload](TINY)
    assert found.failure == ""
    if part in ("workloads", "convolutions", "papers", "peaks", "profile", "cohort", "resume", "tests"):
        assert found.seconds > 0
    if part == "agreement":
        assert found.ks_p == 1.0 or 0 < found.max_abs_diff_cpu < 0.01  # on one device noise is the same


# --- roofline ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [task for task in TRAINED if "epoch" not in task.name], ids=lambda task: task.name)
def test_operations_are_those_that_torch_counts(task: Task) -> None:
    module = task.build(task.shape, CLASSES)
    inputs, targets = torch.zeros(3, *task.shape), torch.zeros(3, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        loss = torch.nn.functional.cross_entropy(module(inputs), targets)
        torch.autograd.grad(loss, list(module.parameters()))
    passed = task.clients * task.samples * task.epochs
    assert round_work(task).operations == counter.get_total_flops() / 3 * passed


def test_bytes_of_w1_and_of_the_network_for_cifar() -> None:
    # W1: 25 steps of 50 clients on 155,820 parameters with momentum; 784 numbers a sample, 196 and 10 put out.
    parameters = 784 * 196 + 196 + 196 * 10 + 10
    assert round_work(W1).bytes == 4 * (50 * 25 * 4 * parameters + 50 * 100 * 5 * (784 + 2 * 206))
    # Without momentum half of the vectors; five steps for 100 samples, and for 81.
    plain = replace(W1, epochs=1, momentum=0.0, samples=81)
    assert round_work(plain).bytes == 4 * (50 * 5 * 2 * parameters + 50 * 81 * (784 + 2 * 206))
    outputs = 32 * 32 * 32 + 64 * 16 * 16 + 64 * 8 * 8 + 128 * 4 * 4 + 10
    assert round_work(CNN_CIFAR10).bytes == 4 * (100 * 5 * 4 * 131_466 + 100 * 100 * (3 * 32 * 32 + 2 * outputs))


@pytest.mark.parametrize("task", TRAINED, ids=lambda task: task.name)
def test_counted_and_trained_models_are_the_same(task: Task) -> None:
    small = task.at(TINY)
    learner = prepare(small.scenario(), 1).deployment.learner
    assert learner.dimension == sum(parameter.numel() for parameter in small.build(small.shape, CLASSES).parameters())


@pytest.mark.parametrize(("task", "workload"), list(zip((W1, W2, WORKLOAD_TASKS[-1]), WORKLOADS, strict=True)))
def test_the_workloads_are_those_of_the_cpu(task: Task, workload: object) -> None:
    assert task.scenario() == workload.scenario("over_the_air")  # type: ignore[attr-defined]


def test_a_share_is_the_time_at_the_peaks_over_the_time_taken() -> None:
    assert RoundWork(100.0, 30.0).seconds(10.0, 10.0) == 10.0  # bound by operations
    assert RoundWork(100.0, 300.0).seconds(10.0, 10.0) == 30.0  # by bytes
    full = Setting("cuda")
    machine = Row("", "", "a GPU", "1", "2", "c", status="ok")
    peaks = [
        replace(machine, part="peaks", workload=GEMM["fp32"], seconds=gemm_operations(full) / 50e12),
        replace(machine, part="peaks", workload=GEMM["tf32"], seconds=gemm_operations(full) / 400e12),
        replace(machine, part="peaks", workload=COPY, seconds=copy_bytes(full) / 4e12),
    ]
    w1 = replace(machine, part="workloads", workload="W1", seconds=0.01, rounds_per_s=9.0)
    work = round_work(W1)
    expected = max(work.operations / 50e12, work.bytes / 4e12) / 0.01
    (share, *_) = (row.share_of_peak for row in with_shares([w1, *peaks], full))
    assert share == pytest.approx(expected, rel=1e-12)
    # Peaks of another GPU, or of too few kinds, say nothing.
    other = [replace(peak, device="another") for peak in peaks]
    assert math.isnan(with_shares([w1, *other], full)[0].share_of_peak)
    assert math.isnan(with_shares([w1, *peaks[:2]], full)[0].share_of_peak)
    tf32 = replace(w1, part="convolutions", workload="resnet18_gn, tf32", seconds=1.0)
    resnet = next(task for task in TRAINED if task.name == "resnet18_gn, tf32")
    found = with_shares([tf32, *peaks], full)[0].share_of_peak
    assert found == pytest.approx(round_work(resnet).seconds(400e12, 4e12), rel=1e-12)


def test_layers_count_in_the_order_in_which_a_sample_passes_them() -> None:
    costs = roofline.layer_costs(W1.build((784,), 10).to("meta"), (784,))
    assert [(cost.products, cost.outputs) for cost in costs] == [(784 * 196, 196), (1960, 10)]


# --- profile -------------------------------------------------------------------------------------------------------


def test_shares_of_overlapping_spans_fill_the_time() -> None:
    spans = [
        Span("kernel", -5, 10),  # begins before the round
        Span("kernel", 5, 20),
        Span("copy", 15, 30),  # 10 of its own
        Span("launch", 0, 32),  # hidden but for 2
        Span("launch", 60, 70),
        Span("launch", 65, 75),
        Span("kernel", 99, 200),  # ends after it
    ]
    found = shares(spans, 0, 100)
    assert found == pytest.approx(Shares(kernel=0.21, copy=0.10, launch=0.17, idle=0.52))
    assert sum(found) == pytest.approx(1.0)
    assert shares([], 0, 100) == Shares(0, 0, 0, 1)


def test_shares_are_those_of_a_count_of_ticks() -> None:
    generator = np.random.default_rng(shifted(1))
    kinds = ("kernel", "copy", "launch")
    spans = []
    ticks = np.full(1000, 3)
    for _ in range(60):
        start, length, kind = (
            int(generator.integers(0, 990)),
            int(generator.integers(1, 40)),
            int(generator.integers(3)),
        )
        spans.append(Span(kinds[kind], start, start + length))  # type: ignore[arg-type]
        inside = ticks[start : start + length]
        inside[:] = np.minimum(inside, kind)
    expected = Shares(*(float((ticks == kind).mean()) for kind in range(4)))
    assert shares(spans, 0, 1000) == pytest.approx(expected)


def test_events_of_a_trace_are_told_apart() -> None:
    def event(category: str, name: str, start: float, duration: float, phase: str = "X") -> dict[str, object]:
        return {"ph": phase, "cat": category, "name": name, "ts": start, "dur": duration}

    events = [
        event("user_annotation", "one round", 100, 50),
        event("gpu_user_annotation", "one round", 110, 50),
        event("kernel", "sm90_gemm", 110, 5),
        event("gpu_memcpy", "Memcpy HtoD", 120, 2),
        event("gpu_memset", "Memset", 122, 1),
        event("cuda_runtime", "cudaLaunchKernel", 101, 3),
        event("cuda_driver", "cuLaunchKernelEx", 104, 1),
        event("cuda_runtime", "cudaStreamSynchronize", 130, 20),
        event("cpu_op", "aten::mm", 101, 4),
        event("ac2g", "ac2g", 101, 0, phase="s"),
    ]
    spans, start, end = read_spans(events)
    assert (start, end) == (100, 150)
    assert [span.kind for span in spans] == ["kernel", "copy", "copy", "launch", "launch"]
    assert shares(spans, start, end) == pytest.approx(Shares(0.1, 0.06, 0.08, 0.76))
    with pytest.raises(ValueError, match="one round"):
        read_spans(events[1:])


# --- agreement -----------------------------------------------------------------------------------------------------


def test_noise_of_another_scale_does_not_pass() -> None:
    generator = np.random.default_rng(shifted(2))
    noise, other = generator.standard_normal((2, 50_000))
    assert compare_laws(noise, other).failure == ""  # by chance one time in ten thousand
    assert compare_laws(1.05 * noise, other).failure.startswith("50,000 coordinates")
    assert compare_laws(noise + math.nan, other).failure == "the noise is not finite"


@pytest.mark.parametrize(("off", "passes"), [(5e-5, True), (2e-4, False), (math.nan, False)])
def test_updates_that_differ_do_not_pass(off: float, passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = torch.ones(2, 3, dtype=torch.float64)

    def updates(task: Task, device: str, dtype: torch.dtype) -> torch.Tensor:
        return (exact if dtype == torch.float64 else exact * (1 + off)).to(dtype)

    monkeypatch.setattr("benchmarks.gpu.agreement.updates", updates)
    found = measure_equality(W1, TINY)
    assert (found.failure == "") == passes
    assert "allowed 1e-04" in found.failure + found.detail


# --- the largest cohort --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [999, 1_000, 2_500, 31_622, 50_000, 99_999, 100_000, 10**9])
def test_the_largest_cohort_is_found(limit: int) -> None:
    asked: list[int] = []

    def fits(clients: int) -> bool:
        asked.append(clients)
        return clients <= limit

    found = largest(fits, 1_000, 100_000)
    best = min(limit, 100_000) if limit >= 1_000 else 0
    assert found <= best <= 1.1 * found
    assert len(asked) <= 9 and max(asked) <= 100_000


@pytest.mark.slow
def test_a_cohort_that_is_out_of_memory_is_reported_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(clients: int, setting: Setting) -> float:
        if clients > 50:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return clients / 1000

    monkeypatch.setattr(cohort, "round_seconds", seconds)
    found = cohort.measure_largest(TINY)
    assert (found.failure, found.detail) == ("", f"{round(1000 * found.seconds)} clients fit in one block")
    assert 43 <= 1000 * found.seconds <= 50
    monkeypatch.setattr(cohort, "round_seconds", lambda clients, setting: seconds(1000, setting))
    assert cohort.measure_largest(TINY).failure == "10 clients do not fit in one block"


# --- tests that need CUDA ------------------------------------------------------------------------------------------


def test_outcomes_are_counted_from_the_report() -> None:
    report = '<testsuites><testsuite tests="9" failures="1" errors="2" skipped="4"/></testsuites>'
    assert count(report) == (2, 3, 4)


def _imported_names(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(("import ", "from ")):
            yield line.split()[1].split(".")[0]


def test_marked_files_ask_for_nothing_that_a_bare_machine_lacks() -> None:
    files = marked_files(ROOT / "tests")
    assert ROOT / "tests" / "learning" / "test_cuda.py" in files
    for file in files:
        assert "hypothesis" not in set(_imported_names(file.read_text(encoding="utf-8"))), file
    assert cuda_tests.MARK in (ROOT / "tests" / "learning" / "test_cuda.py").read_text(encoding="utf-8")


# --- killed and resumed --------------------------------------------------------------------------------------------


def test_a_run_that_ends_by_itself_was_not_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for program in ("raise SystemExit(2)", "print(1); print(2)"):
        monkeypatch.setattr(resume, "_RUN", program)
        with pytest.raises(RuntimeError, match="before it was killed"):
            resume._kill_in_the_middle("quickstart", 60, tmp_path, TINY)
