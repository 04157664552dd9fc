"""``wirelessfl study``: what it prints, every exit code, and Ctrl-C."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.study.studies import SLOW_ROUNDS, InlineWorkers, design, same_numbers, write_study
from wirelessfl.cli import main
from wirelessfl.cli.study_table import LiveTable
from wirelessfl.study import Outcome, Progress, Study, load_study, open_study, run_study

GRID = {"uplink.snr_db": [0, 10]}


def invoke(*arguments: str | Path) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_it_prints_the_points_and_writes_the_files(tmp_path: Path, inline: InlineWorkers) -> None:
    file, out = write_study(tmp_path, grid=GRID, seeds=2), tmp_path / "out"
    result = invoke("study", file, "--set", "base.rounds=1", "--out", out, "--workers", "2")
    assert result.exit_code == 0, result.stderr
    for words in (
        "uplink.snr_db",
        "test accuracy",
        "ε accounted",
        "heard",
        "airtime (s)",
        "95 % confidence",
        str(out / "study.png"),
    ):
        assert words in result.stdout
    assert result.stderr.count("complete: test accuracy") == 4
    assert "(uplink.snr_db=10, seed 12); 4 of 4 runs" in result.stderr
    assert (out / "study.parquet").exists() and (out / "study.png").exists()


@pytest.mark.slow
def test_json_is_alone_on_stdout(tmp_path: Path, inline: InlineWorkers) -> None:
    result = invoke("study", write_study(tmp_path, grid=GRID), "--out", tmp_path / "out", "--json")
    record = json.loads(result.stdout)
    assert record == json.loads((tmp_path / "out" / "study.json").read_text(encoding="utf-8"))
    assert [run["status"] for run in record["runs"]] == ["complete", "complete"]
    assert record["factors"] == [{"keys": ["uplink.snr_db"], "levels": [[0], [10]]}]


@pytest.mark.slow
def test_quiet_prints_nothing(tmp_path: Path, inline: InlineWorkers) -> None:
    result = invoke("study", write_study(tmp_path, grid=GRID), "--out", tmp_path / "out", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_dropped_siblings_are_named_on_stderr(tmp_path: Path, inline: InlineWorkers) -> None:
    file = write_study(tmp_path, grid={"uplink.kind": ["ideal"]})
    result = invoke("study", file, "--set", "base.uplink.snr_db=3", "--out", tmp_path / "out")
    assert "note: " in result.stderr and "dropped uplink.snr_db: 3" in result.stderr


def test_failures_are_listed_with_exit_code_3(tmp_path: Path, inline: InlineWorkers) -> None:
    file = write_study(tmp_path, grid={"uplink.jammer": [{"epsilon": 2.0, "power_db": -20}, None]})
    result = invoke("study", file, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "Error: 1 of 2 runs failed" in result.stderr
    assert "seed 11: uplink.jammer.power_db" in result.stderr
    assert "null" in result.stdout  # the point that went well
    stopped = invoke("study", file, "--out", tmp_path / "fast", "--fail-fast")
    assert stopped.exit_code == 3
    assert len(inline.submitted) == 4 and stopped.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("no-such-study",), 2, "found no such file or shipped name; allowed: a file, or attacks-uplinks, codecs, "),
        (("snr-client",), 2, "did you mean snr-clients?"),
        (("quickstart",), 2, "found no such file or shipped name"),
        (("snr-clients", "--set", "rounds=3"), 2, "did you mean base.rounds?"),
        (("snr-clients", "--set", "grid={}"), 2, "grid: found {}"),
        (("snr-clients", "--set", "grid.uplink.snr_bd=[1]"), 2, "did you mean snr_db?"),
        (("snr-clients", "--scheduler", "somewhere"), 2, "--scheduler: found 'somewhere'"),
        (("snr-clients", "--workers", "0"), 2, "--workers"),
        ((), 2, "STUDY"),
    ],
)
def test_refusals_are_one_message_and_no_traceback(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("study", *arguments)
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.rglob("study.json"))


@pytest.mark.slow
def test_a_folder_with_a_study_needs_resume(tmp_path: Path, inline: InlineWorkers) -> None:
    file = write_study(tmp_path, grid=GRID)
    assert invoke("study", file, "--out", tmp_path / "out").exit_code == 0
    refused = invoke("study", file, "--out", tmp_path / "out")
    assert refused.exit_code == 2 and "--resume" in refused.stderr
    assert invoke("study", file, "--out", tmp_path / "out", "--resume").exit_code == 0
    assert len(inline.submitted) == 2


@pytest.mark.slow
def test_results_lie_under_the_name(tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_study(tmp_path, grid=GRID)
    monkeypatch.chdir(tmp_path)
    assert invoke("study", file).exit_code == 0
    assert (tmp_path / "results" / "small-study" / "study.parquet").exists()


def test_schema_of_studies() -> None:
    schema = json.loads(invoke("schema", "--study").stdout)
    assert set(schema["properties"]) >= {"base", "grid", "zip", "seeds", "metrics"}
    assert "uplink" in json.loads(invoke("schema").stdout)["properties"]


def test_studies_are_listed_shown_and_copied_apart_from_scenarios(tmp_path: Path) -> None:
    assert "snr-clients" in invoke("scenarios", "list", "--studies").stdout
    assert "snr-clients" not in invoke("scenarios", "list").stdout
    assert "quickstart" not in invoke("scenarios", "list", "--studies").stdout.replace("base: quickstart", "")
    assert "clients.count: [10, 50, 200]" in invoke("scenarios", "show", "snr-clients").stdout
    assert invoke("scenarios", "copy", "snr-clients", tmp_path).exit_code == 0
    assert load_study(tmp_path / "snr-clients.yaml").runs == load_study("snr-clients").runs


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_what_resume_continues(workers: int, tmp_path: Path, inline: InlineWorkers) -> None:
    """The signal that a terminal sends, in the middle of as many runs as there are workers."""
    grid = {"uplink.snr_db": [0, 10][:workers]}
    file, out = write_study(tmp_path, grid=grid), tmp_path / "out"
    command = [sys.executable, "-m", "wirelessfl", "study", str(file), "--set", f"base.rounds={SLOW_ROUNDS}"]
    options = ["--workers", str(workers), "--threads", "1", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}
    process = subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    deadline = time.monotonic() + 120
    while len(list(out.glob("runs/*/checkpoint.bin"))) < workers:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout) == (130, "")
    assert "continue with --resume" in stderr and "Traceback" not in stderr
    assert [record.status for record in open_study(out).records] == ["interrupted"] * workers
    plan = design(tmp_path, {"base.rounds": SLOW_ROUNDS}, grid=grid)
    first_rounds: dict[str, int] = {}

    def on_message(message: Progress | Outcome) -> None:
        if isinstance(message, Progress):
            first_rounds.setdefault(message.run, message.round)

    resumed = run_study(plan, out, resume=True, on_message=on_message)
    assert all(first > 1 for first in first_rounds.values()) and len(first_rounds) == workers
    whole = run_study(plan, tmp_path / "whole", workers=2, threads=1)
    assert same_numbers(resumed.to_dataframe(), whole.to_dataframe())


def text_of(table: LiveTable, height: int = 40) -> list[str]:
    """What the live table shows."""
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(table.render(height))
    return capture.get().splitlines()


def test_the_live_table(tmp_path: Path) -> None:
    plan = design(tmp_path, {"base.rounds": 10}, grid=GRID, seeds=2)
    now = [100.0]
    table = LiveTable(plan, clock=lambda: now[0])
    assert text_of(table)[-1] == "0 of 4 runs, 0 running"
    first, second, third, fourth = (run.id for run in plan.runs)
    table.note(Outcome(fourth, "complete", summary={"test_accuracy": 0.5}))  # from before
    table.note(Progress(first, 1, 10, math.nan))
    now[0] += 8
    table.note(Progress(first, 5, 10, 0.25))
    # 4 rounds in 8 s; 5 + 10 + 10 rounds are left
    assert table.seconds_left() == pytest.approx(25 * 2.0)
    lines = text_of(table)
    assert lines[1].split() == ["0", "0/2", "round", "5/10", "at", "25.0%"]
    assert lines[2].split() == ["10", "1/2", "50.0", "%"]
    assert lines[-1] == "1 of 4 runs, 1 running, about 50 s left"
    table.note(Outcome(first, "complete", summary={"test_accuracy": 0.7}))
    table.note(Outcome(second, "complete", summary={"test_accuracy": 0.8}))
    table.note(Outcome(third, "failed", "why"))
    lines = text_of(table)
    assert lines[1].split()[:4] == ["0", "2/2", "75.0", "±"]
    assert lines[2].split()[:4] == ["10", "1/2,", "1", "failed"]
    assert lines[-1] == "4 of 4 runs, 0 running, 1 failed"


def test_the_live_table_fits_the_terminal(tmp_path: Path) -> None:
    plan = design(tmp_path, grid={"training.epochs": list(range(1, 31))})
    table = LiveTable(plan)
    table.note(Progress(plan.runs[20].id, 1, 3, 0.5))
    lines = text_of(table, height=10)
    assert len(lines) <= 10
    assert any("round 1/3 at 50.0%" in line for line in lines)


def test_a_finished_study_opens_from_python(finished: Study) -> None:
    import wirelessfl as wfl

    assert isinstance(wfl.open_study(finished.path), wfl.Study)
    assert wfl.open_study(finished.path).to_dataframe().equals(finished.to_dataframe())


@pytest.mark.slow
def test_a_study_ends_with_a_report(tmp_path: Path, inline: InlineWorkers) -> None:
    file = write_study(tmp_path, grid=GRID)
    result = invoke("study", file, "--workers", "1", "--out", tmp_path / "out", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert "Apache ECharts" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
