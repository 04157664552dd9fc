"""Running a study: what is computed, what is kept, what is recorded."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import wirelessfl as wfl
from tests.study.studies import BASE, InlineWorkers, design, same_numbers
from wirelessfl import api
from wirelessfl.api import Result
from wirelessfl.errors import InfeasibleError, OutputError, RunInterrupted
from wirelessfl.folder import RunFolder
from wirelessfl.study import Message, Outcome, Progress, Study, StudyDesign, open_study, run_study, runner
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.task import claim_folder, run_task

GRID = {"uplink.snr_db": [0, 10]}
FAILING = {"uplink.jammer": [{"epsilon": 2.0, "power_db": -20}, None]}
"""The first point asks for jamming that its power never reaches; the second is fine."""


@pytest.mark.slow
def test_every_run_is_the_one_of_simulate(finished: Study, tmp_path: Path) -> None:
    assert {record.status for record in finished.records} == {"complete"}
    plan = design(tmp_path, grid={"uplink.snr_db": [0, 10], "clients.count": [3, 6]}, seeds=2)
    table = finished.to_dataframe()
    for run in plan.runs[::3]:
        alone = wfl.simulate(run.scenario, tmp_path / run.id, threads=1, pictures=False)
        rows = table[table["run"] == run.id]
        with wfl.open_trace(alone.trace) as trace:
            for name in ("test_accuracy", "epsilon_accounted", "effective_noise_std", "sim_time"):
                assert np.array_equal(rows[name], trace[name], equal_nan=True)


@pytest.mark.slow
def test_the_same_seed_meets_the_same_channels_at_all_points(finished: Study) -> None:
    channels = {}
    for record in finished.records:
        with wfl.open_trace(finished.folder.trace(record.run)) as trace:
            channels[record.levels, record.seed] = trace["channel_re"].values
    for seed in (11, 12):
        few_clients, many_clients = channels[(0, 0), seed], channels[(0, 1), seed]
        assert np.array_equal(channels[(1, 1), seed], many_clients)  # another SNR
        assert np.array_equal(few_clients, many_clients[:, : few_clients.shape[1]])  # the first clients of more
    assert not np.array_equal(channels[(0, 0), 11], channels[(0, 0), 12])


def test_it_is_written_down(finished: Study) -> None:
    folder = finished.folder
    assert {path.name for path in folder.path.iterdir()} >= {"study.json", "study.parquet", "study.png", "runs"}
    record = json.loads(folder.record.read_text(encoding="utf-8"))
    assert (record["format"], record["name"], len(record["runs"])) == ("wirelessfl-study", "small-study", 8)
    assert open_study(folder.path).as_mapping() == finished.as_mapping()
    assert all(folder.trace(one.run).exists() for one in finished.records)
    assert not list(folder.path.glob("runs/*/*.png"))  # drawing would take longer than most runs


def test_resume_computes_nothing_twice(tmp_path: Path, inline: InlineWorkers) -> None:
    plan = design(tmp_path, grid=GRID)
    first = run_study(plan, tmp_path / "out")
    assert len(inline.submitted) == 2
    before = first.to_dataframe()
    messages: list[Message] = []
    again = run_study(plan, tmp_path / "out", resume=True, on_message=messages.append)
    assert len(inline.submitted) == 2
    assert [(type(message), message.run) for message in messages] == [(Outcome, run.id) for run in plan.runs]
    assert again.as_mapping() == first.as_mapping()
    assert before.equals(again.to_dataframe())


@pytest.mark.slow
def test_a_changed_study_computes_only_what_changed(tmp_path: Path, inline: InlineWorkers) -> None:
    run_study(design(tmp_path, grid=GRID), tmp_path / "out")
    # One value more, one value less, and a base that differs where the grid sets the value anyway.
    base = {**BASE, "uplink": {"snr_db": 3}}
    changed = design(tmp_path, base=base, grid={"uplink.snr_db": [10, 20]})
    study = run_study(changed, tmp_path / "out", resume=True)
    assert [task.run for task in inline.submitted[2:]] == [changed.runs[1].id]
    assert study.to_dataframe()["uplink.snr_db"].unique().tolist() == [10, 20]
    everything = design(tmp_path, {"base.training.epochs": 2}, grid=GRID)
    run_study(everything, tmp_path / "out", resume=True)
    assert [task.run for task in inline.submitted[3:]] == [run.id for run in everything.runs]


@pytest.mark.slow
def test_a_taken_folder_is_not_touched(tmp_path: Path, inline: InlineWorkers) -> None:
    plan = design(tmp_path, grid=GRID)
    run_study(plan, tmp_path / "out")
    with pytest.raises(OutputError, match="holds a study already; use resume=True"):
        run_study(plan, tmp_path / "out")
    assert len(inline.submitted) == 2


def test_two_studies_do_not_share_a_folder(tmp_path: Path, inline: InlineWorkers) -> None:
    plan = design(tmp_path, grid=GRID)
    for resume in (False, True):
        with (
            claim_folder(tmp_path / "out"),
            pytest.raises(OutputError, match=f"a study is in progress there .process {os.getpid()} on "),
        ):
            run_study(plan, tmp_path / "out", resume=resume)
    run = tmp_path / "out" / "runs" / plan.runs[0].id
    with RunFolder(run).held(), pytest.raises(OutputError, match="a run is in progress there"):
        wfl.simulate(plan.runs[0].scenario, run, overwrite=True, pictures=False)
    assert inline.submitted == []


def test_a_failure_is_recorded_and_stops_nothing(tmp_path: Path, inline: InlineWorkers) -> None:
    study = run_study(design(tmp_path, grid=FAILING), tmp_path / "out")
    assert [record.status for record in study.records] == ["failed", "complete"]
    (failure,) = study.failures
    assert failure.error is not None and "uplink.jammer.power_db" in failure.error
    assert study.to_dataframe()["run"].unique().tolist() == [study.records[1].run]
    run_study(design(tmp_path, grid=FAILING), tmp_path / "out", resume=True)
    assert len(inline.submitted) == 3  # the failed one again


def test_fail_fast_stops_at_the_first(tmp_path: Path, inline: InlineWorkers) -> None:
    with pytest.raises(
        InfeasibleError,
        match=r"power_db: -20\}, seed 11: uplink\.jammer\.power_db(.|\n)*without fail_fast=True(.|\n)*resume=True",
    ):
        run_study(design(tmp_path, grid=FAILING), tmp_path / "out", fail_fast=True)
    statuses = [record.status for record in open_study(tmp_path / "out").records]
    assert statuses == ["failed", "waiting"]


def test_a_study_of_failures_alone_has_an_empty_table(tmp_path: Path, inline: InlineWorkers) -> None:
    study = run_study(design(tmp_path, grid={"uplink.jammer": FAILING["uplink.jammer"][:1]}), tmp_path / "out")
    table = study.to_dataframe()
    assert len(table) == 0 and "test_accuracy" in table
    assert (study.path / "study.png").stat().st_size > 0


def test_an_unexpected_error_keeps_its_traceback(
    tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_fading.py").write_text(
        "class Broken:\n"
        "    def __init__(self):\n"
        "        raise KeyError('oops')\n"
        "    def draw(self, stream):\n"
        "        raise NotImplementedError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plan = design(tmp_path, grid={"channel.fading.model": ["broken_fading:Broken", "rayleigh"]})
    study = run_study(plan, tmp_path / "out")
    (failure,) = study.failures
    assert failure.error is not None and "oops" in failure.error
    assert [record.status for record in study.records] == ["failed", "complete"]


def interrupted(plan: StudyDesign, out: Path, *, resume: bool = False) -> None:
    """Run a study up to its first report, as if a signal came then."""

    def on_message(message: Message) -> None:
        if isinstance(message, Progress):
            raise RunInterrupted("a signal")

    with pytest.raises(RunInterrupted):
        run_study(plan, out, resume=resume, on_message=on_message)


@pytest.mark.slow
def test_what_is_stopped_is_recorded_and_resumed(tmp_path: Path, inline: InlineWorkers, finished: Study) -> None:
    plan = design(tmp_path, grid={"uplink.snr_db": [0, 10], "clients.count": [3, 6]}, seeds=2)
    interrupted(plan, tmp_path / "out")
    record = open_study(tmp_path / "out")
    assert not record.failures
    assert {one.status for one in record.records} <= {"complete", "interrupted", "waiting"}
    assert sum(one.status == "waiting" for one in record.records) == 7
    study = run_study(plan, tmp_path / "out", resume=True, threads=1)
    assert same_numbers(study.to_dataframe(), finished.to_dataframe())


@pytest.mark.slow
def test_a_worker_without_a_study_stops(tmp_path: Path, inline: InlineWorkers) -> None:
    """What comes to a worker after the study has ended, or has been taken up by another process, is not begun."""
    plan = design(tmp_path, grid=GRID)
    run_study(plan, tmp_path / "out")
    late = inline.submitted[0]
    assert run_task(late, lambda _: None) == Outcome(late.run, "interrupted")


def test_a_trace_that_nobody_here_can_see_is_a_failure(
    tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.study.studies.run_task", lambda task, _: Outcome(task.run, "complete", summary={}))
    study = run_study(design(tmp_path, grid=GRID), tmp_path / "out")
    assert all(record.error is not None and "share that folder" in record.error for record in study.failures)
    assert len(study.failures) == 2


def test_a_run_that_is_stopped_again_and_again_has_failed(
    tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.study.studies.run_task", lambda task, _: Outcome(task.run, "interrupted"))
    study = run_study(design(tmp_path, seeds=1), tmp_path / "out")
    assert study.failures[0].error == "3 workers were stopped while they computed it"
    assert len(inline.submitted) == 3


def test_a_process_computes_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's threads are the whole process's, also where a worker of a cluster takes several tasks at once."""
    inside, most = 0, 0

    def simulate(*_: object, **__: object) -> Result:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.05)
        inside -= 1
        return Result(tmp_path, {})

    monkeypatch.setattr(api, "simulate", simulate)
    plan = design(tmp_path, grid={"rounds": [1, 2, 3]})
    with claim_folder(tmp_path / "out") as claim, ThreadPoolExecutor(3) as pool:
        make_task = partial(runner.make_task, StudyFolder(tmp_path / "out"), claim, "cpu", 1)
        outcomes = list(pool.map(lambda run: run_task(make_task(run), lambda _: None), plan.runs))
    assert [outcome.status for outcome in outcomes] == ["complete"] * 3
    assert most == 1


@pytest.mark.slow
def test_results_of_another_design_do_not_stay(tmp_path: Path, inline: InlineWorkers) -> None:
    run_study(design(tmp_path, grid=GRID), tmp_path / "out")
    interrupted(design(tmp_path, grid={"uplink.snr_db": [3]}), tmp_path / "out", resume=True)
    with pytest.raises(OutputError, match="has not ended; continue it with resume=True"):
        open_study(tmp_path / "out").to_dataframe()
    assert not (tmp_path / "out" / "study.png").exists()


def test_threads_are_divided_among_the_workers(
    tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "available_cores", lambda: 8)
    monkeypatch.setattr("tests.study.studies.run_task", lambda task, _: Outcome(task.run, "failed", "not run"))
    plan = design(tmp_path, grid={"uplink.snr_db": [0, 1, 2, 3], "compute.threads": [None, 5]})
    for index, (workers, expected) in enumerate([(None, 1), (2, 4), (3, 2), (20, 1)]):
        inline.submitted.clear()
        run_study(plan, tmp_path / str(index), workers=workers)
        assert [task.threads for task in inline.submitted] == [expected, 5] * 4  # what a scenario names it keeps


@pytest.mark.parametrize("blocked", ["file", "folder-of-a-file"])
def test_a_place_that_cannot_be_written(tmp_path: Path, inline: InlineWorkers, blocked: str) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" if blocked == "file" else tmp_path / "file" / "out"
    with pytest.raises(OutputError, match="cannot be written"):
        run_study(design(tmp_path, grid=GRID), out)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', '{"format": "wirelessfl-study", "version": 2}'])
def test_what_is_no_study_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "study.json").write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match=r"study\.json: (no readable study|not a wirelessfl study of version 1)"):
        open_study(tmp_path)
    with pytest.raises(OutputError, match="no readable study"):
        open_study(tmp_path / "none")
