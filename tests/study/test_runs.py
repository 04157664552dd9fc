"""Runs of a study by their settings, and their index beside the folders."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.study.studies import InlineWorkers, design
from wirelessfl.errors import InputError, RunInterrupted
from wirelessfl.study import Message, Outcome, Study, run_study
from wirelessfl.study.runs import RunIndex

COLUMNS = ["run", "uplink.snr_db", "clients.count", "seed", "status", "test_accuracy", "epsilon_published"]


def read_index(path: Path) -> list[dict[str, str]]:
    with (path / "runs" / "index.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_index_says_which_folder_is_which_run(finished: Study) -> None:
    lines = read_index(finished.path)
    assert [*lines[0]][:7] == COLUMNS and [*lines[0]][7:] == ["epsilon_accounted", "name", "error"]
    assert [line["run"] for line in lines] == [record.run for record in finished.records]
    folders = {folder.name for folder in (finished.path / "runs").iterdir() if folder.is_dir()}
    assert {line["run"] for line in lines} == folders and {line["status"] for line in lines} == {"complete"}
    for line, record in zip(lines, finished.records, strict=True):
        with wfl.open_trace(finished.folder.trace(line["run"])) as trace:
            assert float(line["test_accuracy"]) == trace["test_accuracy"].values[-1]
        assert line["name"] == finished.describe(record)
        assert (
            line["name"]
            == f"uplink.snr_db={line['uplink.snr_db']}, clients.count={line['clients.count']}, seed {line['seed']}"
        )


def test_a_run_is_found_by_its_settings(finished: Study) -> None:
    result = finished.run(snr_db=10, count=6, seed=12)
    scenario = wfl.load_scenario(result.folder / "scenario.yaml")
    assert (scenario.clients.count, scenario.seed, result.summary["seed"]) == (6, 12, 12)
    record = next(one for one in finished.records if one.run == result.folder.name)
    for same in (
        finished.run(uplink__snr_db=10, clients__count=6, seed=12),
        finished.run(record.run),
        finished.run(record.run[:8]),
        finished.run(finished.describe(record)),
    ):
        assert same.folder == result.folder and wfl.to_json(same.summary) == wfl.to_json(result.summary)
    assert not math.isnan(result.summary["test_accuracy"]) and "complete, " in repr(result)


def test_several_runs_are_found_together(finished: Study) -> None:
    assert len(finished.runs()) == len(finished.records) == 8
    assert [one.summary["seed"] for one in finished.runs(snr_db=0, count=3)] == [11, 12]
    assert {one.folder.name for one in finished.runs(seed=11)} == {
        record.run for record in finished.records if record.seed == 11
    }


@pytest.mark.parametrize(
    ("which", "settings", "words"),
    [
        (None, {"snr": 0}, "snr: found no key that varies in this study; allowed: uplink.snr_db, clients.count, seed"),
        (None, {"snr": 0}, "did you mean snr_db?"),
        (None, {"snr_db": 3}, "snr_db=3: found no run with that value of uplink.snr_db; allowed: 0, 10"),
        (None, {"seed": 99}, "seed=99: found no such run; allowed: "),
        (None, {"snr_db": 0, "seed": 11}, "found 2 runs: "),
        (None, {}, "found 8 runs: "),
        (None, {}, "and 3 more; allowed: settings of one run"),
        ("zzzz", {}, "zzzz: found no such run; allowed: "),
    ],
)  # fmt: skip
def test_what_is_not_one_run_is_refused(
    finished: Study, which: str | None, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as refusal:
        finished.run(which, **settings)
    assert words in str(refusal.value)


@pytest.mark.slow
def test_the_index_is_there_while_a_study_goes_on(
    tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunIndex, "INTERVAL_S", 0.0)
    monkeypatch.setattr(RunIndex, "SHARE", 1e9)
    seen: list[list[str]] = []

    def look(message: Message) -> None:
        if isinstance(message, Outcome):
            seen.append([line["status"] for line in read_index(tmp_path / "out")])
            if len(seen) == 2:
                raise RunInterrupted("stop")

    plan = design(tmp_path, grid={"uplink.snr_db": [0, 10]}, seeds=2)
    with pytest.raises(RunInterrupted):
        run_study(plan, tmp_path / "out", on_message=look)
    assert len(inline.submitted) == 4
    assert seen[0] == ["waiting"] * 4 or seen[0].count("complete") == 0
    assert seen[1].count("complete") == 1
    assert [line["status"] for line in read_index(tmp_path / "out")].count("complete") == 2
    stopped = wfl.open_study(tmp_path / "out")
    unfinished = next(record for record in stopped.records if record.status != "complete")
    with pytest.raises(InputError, match=r"found a run that is (waiting|interrupted); allowed: a complete one"):
        stopped.run(unfinished.run)
    assert len(stopped.runs()) == 2
    resumed = run_study(plan, tmp_path / "out", resume=True)
    assert {line["status"] for line in read_index(tmp_path / "out")} == {"complete"} and len(resumed.runs()) == 4


def test_the_index_is_not_written_all_the_time(tmp_path: Path) -> None:
    now = [0.0]
    index = RunIndex(tmp_path / "runs" / "index.csv", clock=lambda: now[0])
    texts = []

    def text() -> str:
        texts.append(now[0])
        return "run\n"

    for second in range(100):
        now[0] = second / 10
        index.refresh(text)
    assert texts == pytest.approx([float(second) for second in range(10)])


def test_making_the_text_of_the_index_counts_as_writing_it(tmp_path: Path) -> None:
    now = [0.0]
    index = RunIndex(tmp_path / "runs" / "index.csv", clock=lambda: now[0])
    ended = []

    def text() -> str:
        now[0] += 3
        ended.append(now[0])
        return "run\n"

    while now[0] < 1000:
        index.refresh(text)
        now[0] += 0.5
    assert ended[:2] == [3, 156] and len(ended) == 7


def test_a_run_is_opened_without_being_written(finished: Study) -> None:
    folder = finished.folder.runs / finished.records[0].run
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    written = (folder / "summary.json").read_text(encoding="utf-8")
    assert (
        wfl.to_json(wfl.open_run(folder).summary) == wfl.to_json(wfl.open_run(folder / "trace.h5").summary) == written
    )
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_report_names_the_index(finished: Study, tmp_path: Path) -> None:
    from wirelessfl.analysis.report.page import write_report

    page = write_report([finished.path], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "runs/index.csv" in page


def test_an_archive_of_a_study_has_the_index(finished: Study, tmp_path: Path) -> None:
    from zipfile import ZipFile

    from click.testing import CliRunner

    from wirelessfl.cli import main

    archive = tmp_path / "study.zip"
    packed = CliRunner().invoke(main, ["pack", str(finished.path), "--out", str(archive)])
    assert packed.exit_code == 0, packed.stderr
    with ZipFile(archive) as file:
        names = [name for name in file.namelist() if name.endswith("runs/index.csv")]
        assert [file.read(name) for name in names] == [finished.folder.index.read_bytes()]
