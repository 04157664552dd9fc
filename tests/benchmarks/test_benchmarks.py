"""The benchmarks work and measure what they say; how fast anything is, is not tested."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import wirelessfl as wfl
from benchmarks.__main__ import main
from benchmarks.catalogue import GROUPS
from benchmarks.convolutions import IMAGE_WORKLOADS, ImageWorkload, femnist, forward_flops
from benchmarks.machine import COPY, GEMM
from benchmarks.measurement import PLAIN_LOOP, Case, Reference, Row, Sample, best_reference, measure_in_turn, steady
from benchmarks.peers import attempt, peer_cases
from benchmarks.phases import PARTS, SHELL, TRACE, PartTimes, time_parts
from benchmarks.plain_loop import _train_privately, train_plainly
from benchmarks.recorded import RoundTimes, prepare, time_scenario, time_shell
from benchmarks.report import Record, merge, read_csv, to_records, write_csv
from benchmarks.scaling import DIMENSION, Curve, with_dimension
from benchmarks.shell import on_demand
from benchmarks.start import Starts, folders_read, forget_files
from benchmarks.study_workers import steady_rate
from benchmarks.workloads import WORKLOADS, Workload, draw_prototypes
from tests.speed import rest_slow
from wirelessfl.processor import processor_name


@pytest.mark.parametrize("only", rest_slow([["W1", "air"], []]), ids=["some", "all"])
def test_quick_run_of_everything(only: list[str], tmp_path: Path) -> None:
    options = [f"--only={group}" for group in only]
    arguments = ["--quick", "--threads", "1", "--out", str(tmp_path), *options]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    with (tmp_path / "benchmarks.csv").open(encoding="utf-8") as file:
        groups = {line["group"] for line in csv.DictReader(file)}
    assert groups == {*(only or GROUPS), "machine"}
    assert (tmp_path / "benchmarks.png").read_bytes().startswith(b"\x89PNG")


def test_a_start_is_measured_with_its_processes_and_from_files_that_are_not_in_memory() -> None:
    spins = "import time\nwhile time.process_time() < 0.2: pass"
    starts = Starts("-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spins!r}], check=True)")
    assert starts.wall().value > 0.2
    assert starts.processor().value > 0.2
    for module in (csv, torch, wfl):
        assert any(Path(str(module.__file__)).is_relative_to(folder) for folder in folders_read())


def test_forgotten_files_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100_000)
    monkeypatch.setattr("benchmarks.start.folders_read", lambda: {tmp_path})
    forget_files()
    assert file.read_bytes() == b"x" * 100_000


def test_time_inside_another_part_counts_once() -> None:
    now = 0.0
    times = PartTimes(lambda: now)

    def spend(seconds: float) -> None:
        nonlocal now
        now += seconds

    inner = times.counted("inner", lambda: spend(2.0))

    def work() -> None:
        spend(1.0)
        inner()
        spend(4.0)

    outer = times.counted("outer", work)
    outer()
    spend(100.0)
    outer()
    assert times.seconds == {"outer": 10.0, "inner": 4.0}


def test_every_part_takes_time() -> None:
    assert all(seconds > 0 for seconds in time_parts(on_demand(200, 2), 1).values())


def test_shell_and_trace_are_all_but_the_air_and_the_step_of_the_model() -> None:
    assert sorted([*SHELL, *TRACE, "air", "model update"]) == sorted(PARTS)


def test_only_the_groups_asked_for(tmp_path: Path) -> None:
    arguments = ["--quick", "--only", "noise", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, arguments, catch_exceptions=False).exit_code == 0
    assert {record.group for record in read_csv(tmp_path / "benchmarks.csv")} == {"noise", "machine"}


def test_floating_point_work_of_the_workloads() -> None:
    # Figures of the measured peers: 626,416 FLOP a sample and step of the perceptron.
    by_name = {workload.name: workload.gflop for workload in WORKLOADS}
    assert by_name["W1"] == pytest.approx(626_416 * 50 * 100 * 5 * 1e-9)
    assert by_name["W2"] == pytest.approx(by_name["W1"] / 5)
    assert by_name["W3"] == pytest.approx(4 * 7840 * 1000 * 20 * 1e-9)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_simulator_and_plain_loop_have_the_same_task(workload: Workload) -> None:
    learner = prepare(workload.scenario("ideal"), 1).deployment.learner
    task = workload.plain_task()
    assert learner.dimension == sum(parameter.numel() for parameter in task.module().parameters())
    assert task.inputs.shape == (workload.clients, workload.samples, 784)


@pytest.mark.parametrize("workload", IMAGE_WORKLOADS, ids=lambda workload: workload.name)
def test_simulator_and_plain_loop_have_the_same_images(workload: ImageWorkload) -> None:
    small = workload.smaller()
    simulation, task = prepare(small.scenario(), 1), small.plain_task()
    learner = simulation.deployment.learner
    assert learner.dimension == sum(parameter.numel() for parameter in task.module().parameters())
    assert (learner.private is not None) == small.private == (task.clip is not None)
    torch.testing.assert_close(learner.population.test.inputs, task.inputs.flatten(0, 1))


def test_work_of_a_network_is_that_of_its_products() -> None:
    """Kernels of 25 and 800 numbers on 28 × 28 and 14 × 14 places, layers of 3,136 and 2,048 inputs."""
    first, *others = (2 * 784 * 25 * 32, 2 * 196 * 800 * 64, 2 * 3136 * 2048, 2 * 2048 * 10)
    assert forward_flops(femnist((1, 28, 28), 10), (1, 28, 28)) == [first, *others]
    workload = next(each for each in IMAGE_WORKLOADS if each.name == "C2")
    assert workload.gflop == pytest.approx(1e-9 * 2000 * (2 * first + 3 * sum(others)))


def test_simulator_and_plain_loop_learn_alike() -> None:
    workload = Workload("W3", hidden=False, clients=20, samples=100, epochs=5, rounds=4)
    simulated = time_scenario(workload.scenario("ideal"), 1).loss
    written = train_plainly(workload.plain_task(), workload.rounds, 1).loss
    untrained = train_plainly(workload.plain_task(), 0, 1).loss
    # They begin at different parameters and take batches in different orders.
    assert abs(simulated - written) < 0.1 * (untrained - written)


def test_private_plain_loop_clips_and_adds_noise() -> None:
    workload = next(each for each in WORKLOADS if each.private).smaller()
    task = workload.plain_task()
    start = torch.nn.utils.parameters_to_vector(task.module().parameters())
    end = torch.nn.utils.parameters_to_vector(_train_privately(task.module(), task, 0).parameters())
    moved = float((end - start).detach().norm()) / task.learning_rate
    # One step on a batch of 20: noise N(0, (C/20)²) on d coordinates, and a mean gradient of norm at most C. The norm
    # of the noise is within 6 standard deviations, 6/√2 · C/20, of √d · C/20.
    batch, dimension = task.batch, len(start)
    assert abs(moved - math.sqrt(dimension) / batch) < 6 / math.sqrt(2) / batch + 1


def test_prototypes_are_those_of_the_peers() -> None:
    inputs, targets = draw_prototypes(3, 7)
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(10, 784, generator=generator)
    labels = torch.randint(0, 10, (3, 7), generator=generator)
    noise = torch.randn(3, 7, 784, generator=generator)
    assert torch.equal(targets, labels)
    assert torch.equal(inputs, (prototypes[labels] + 0.5 * noise).clamp(0, 1))


def test_idle_learner_leaves_a_whole_round_but_training() -> None:
    times = time_shell(on_demand(30, 2), 1)
    assert times.clients == 30
    assert len(times.seconds) == 2
    assert times.trace_bytes > 0
    assert math.isnan(times.loss)


def test_cases_are_measured_in_turn() -> None:
    calls: list[str] = []

    def measure(name: str) -> Sample:
        calls.append(name)
        return Sample(float(len(calls)))

    cases = [Case("g", name, "rounds/s", partial(measure, name), most=most) for name, most in (("a", 9), ("b", 1))]
    rows = measure_in_turn(cases, 3, lambda row: None)
    assert calls == ["a", "b", "a", "a"]
    assert rows[0].median == 3.0


def test_ratio_is_taken_pair_by_pair() -> None:
    ours, other = (Row(Case("g", name, "rounds/s", lambda: Sample(0.0))) for name in "ab")
    ours.samples = [Sample(value) for value in (2.0, 30.0, 4.0)]
    other.samples = [Sample(value) for value in (1.0, 10.0, 4.0)]
    assert ours.ratio_to(other) == 2.0  # not 4/4, the ratio of the medians


def test_steady_leaves_the_first_round_out() -> None:
    assert steady([9.0, 0.5, 0.25, 1.0]) == 0.5
    assert steady([4.0]) == 4.0


def test_a_curve_ends_where_it_gets_long() -> None:
    asked: list[int] = []

    def runner(work: object) -> tuple[object, float]:
        return RoundTimes([0.0, 100.0], [0.0, 1.0]), math.nan

    def scenario_at(point: int) -> object:
        asked.append(point)
        return with_dimension(100)

    curve = Curve(scenario_at, 1, runner)  # type: ignore[arg-type]
    assert curve.measure(10).value == 100.0
    assert math.isnan(curve.measure(100).value)
    assert asked == [10]


def test_dimension_of_the_curve() -> None:
    for wanted in (1_000, 1_000_000):
        learner = prepare(with_dimension(wanted, active=1), 1).deployment.learner
        assert abs(learner.dimension - wanted) <= 71  # one hidden unit


def test_a_study_is_timed_while_all_its_workers_are_warm_and_busy() -> None:
    # Two workers, each a run every 2 s from second 10 on; one starts late, and the last run has no company.
    arrivals = [10.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 20.0]
    assert steady_rate(arrivals, 2) == 1.0
    assert steady_rate([5.0, 6.0, 6.5, 7.0], 1) == 2.0


def test_results_survive_their_file_and_are_merged_by_group(tmp_path: Path) -> None:
    row = Row(Case(DIMENSION, "1000", "s", lambda: Sample(0.0)), [Sample(0.5, memory_mib=12.0)])
    peaks = [Row(Case("machine", name, "", lambda: Sample(0.0)), [Sample(1.0)]) for name in (GEMM, COPY)]
    records = to_records([row], peaks)
    write_csv(records, tmp_path / "x.csv")
    (again,) = read_csv(tmp_path / "x.csv")
    assert (again.group, again.case, again.median, again.runs) == (DIMENSION, "1000", 0.5, 1)
    assert math.isnan(again.to_plain_loop)
    other = Record("W1", "c", "s", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "")
    assert merge([again, other], records) == [other, *records]
    assert again.processor == processor_name()
    elsewhere = replace(again, processor="another")
    assert merge([elsewhere, again], records) == [elsewhere, *records]


def test_results_of_before_processors_were_kept_stay(tmp_path: Path) -> None:
    head = "group,case,unit,median,low,high,runs,load,date"
    (tmp_path / "x.csv").write_text(f"{head}\nW1,c,s,1,1,1,1,1,2026-11-21\n", encoding="utf-8")
    (old,) = read_csv(tmp_path / "x.csv")
    assert old.processor == ""
    new = replace(old, processor="another")
    assert merge([old], [new]) == [old, new]


def test_a_peer_without_environment_is_left_out(tmp_path: Path) -> None:
    names = {case.name for case in peer_cases(tmp_path, tmp_path / "nowhere", 1)}
    assert "peer: near-limit, 2 workers" in names
    assert not any("pfl" in name or "Opacus" in name for name in names)


def test_a_peer_that_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vectorised_torch.py").write_text("raise SystemExit('no data')")
    case = next(iter(peer_cases(tmp_path, tmp_path, 1)))
    with pytest.raises(RuntimeError, match="no data"):
        case.measure()
    assert math.isnan(attempt(case).measure().value)
    assert "near-limit, 2 workers: " in capsys.readouterr().err
    failed = Row(attempt(case), [Sample(2.0), Sample(math.nan)])
    peaks = [Row(Case("machine", name, "", lambda: Sample(0.0)), [Sample(1.0)]) for name in (GEMM, COPY)]
    assert to_records([failed], peaks) == []
    assert best_reference([failed], "W1", "near-limit") is None


def test_a_peer_that_answers(tmp_path: Path) -> None:
    (tmp_path / "vectorised_torch.py").write_text("""print('{"peer": "x", "steady_rounds_per_s": 2.5, "loss": 0.1}')""")
    sample = next(iter(peer_cases(tmp_path, tmp_path, 1))).measure()
    assert (sample.value, sample.loss) == (2.5, 0.1)


def test_the_best_that_stands_for_a_reference_is_what_others_are_compared_with() -> None:
    def row(name: str, values: list[float], reference: Reference | None = None) -> Row:
        case = Case("W2", name, "rounds/s", lambda: Sample(0.0), reference=reference)
        return Row(case, [Sample(value) for value in values])

    rows = [
        row("ours", [10.0, 12.0]),
        row(PLAIN_LOOP, [1.0, 2.0], PLAIN_LOOP),
        row("near-limit, slow", [1.0, 1.0], "near-limit"),
        row("near-limit, fast", [5.0, 4.0], "near-limit"),
        row("Opacus", [2.0], "Opacus"),
    ]
    peaks = [Row(Case("machine", name, "", lambda: Sample(0.0)), [Sample(1.0)]) for name in (GEMM, COPY)]
    ours, *_, opacus = to_records(rows, peaks)
    assert (ours.to_plain_loop, ours.to_near_limit, ours.to_opacus) == (8.0, 2.5, 5.0)
    assert (opacus.to_near_limit, opacus.to_opacus) == (0.4, 1.0)
    (alone,) = to_records(rows[:1], peaks)
    assert math.isnan(alone.to_plain_loop) and math.isnan(alone.to_near_limit)
