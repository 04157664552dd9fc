"""``make gpu``: what it does without a GPU, how parts are run, killed and taken up again, and what is kept."""

from __future__ import annotations

import importlib.metadata
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.gpu import call, prepare, runner
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.parts import KEYS, PARTS
from benchmarks.gpu.peaks import COPY, GEMM
from benchmarks.gpu.prepare import NotReadyError, missing
from benchmarks.gpu.probe import Machine, source_digest
from benchmarks.gpu.runner import run_part
from benchmarks.gpu.setting import Measured, Setting
from benchmarks.gpu.table import Row, read_rows, with_row, write_rows
from tests.processes import is_running

ROOT = Path(__file__).resolve().parents[2]
HERE = Machine("NVIDIA H200", "570.1", "2.11.0", "abc123")
TINY = Setting("cpu", tiny=True)


def measured(part: str, workload: str, **changes: object) -> Row:
    row = Row(part, workload, HERE.device, HERE.driver, HERE.torch, HERE.commit, seconds=1.5, status="ok")
    return replace(row, **changes)  # type: ignore[arg-type]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``python -m benchmarks.gpu`` where torch sees no GPU, whatever the machine has."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments],
        cwd=ROOT,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_without_cuda_every_part_says_so_and_what_was_measured_stays(tmp_path: Path) -> None:
    write_rows([measured("peaks", COPY)], tmp_path / "gpu.csv")
    before = (tmp_path / "gpu.csv").read_bytes()
    done = command("--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if "no CUDA" in line]
    assert [line.split()[1] for line in told] == [part.name for part in PARTS]
    assert (tmp_path / "gpu.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["gpu.csv"]


def test_no_rehearsal_and_no_absent_gpu_among_the_results() -> None:
    rows = read_rows(ROOT / "results" / "benchmarks" / "gpu.csv")
    assert not [row for row in rows if row.device in ("", call.REHEARSED) or row.status == "no CUDA"]


def test_the_parts_are_those_of_the_table_in_its_order() -> None:
    assert [part.name for part in PARTS] == [
        *("tests", "workloads", "convolutions", "papers", "peaks", "profile", "agreement", "cohort", "resume")
    ]
    assert len(set(KEYS)) == len(KEYS)


# --- processes -----------------------------------------------------------------------------------------------------

CHILD = """
import json, os, subprocess, sys, time

name, device, size, file, seconds, *workloads = sys.argv[1:]
for workload in workloads:
    print("now", workload, flush=True)
    if workload == "dies":
        os.abort()
    if workload.startswith("exits"):
        sys.exit(int(workload.split()[1]))
    if workload == "hangs":
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open(file + ".pid", "w").close()
        print("sleeper", sleeper.pid, flush=True)
        time.sleep(600)
    with open(file, "a") as reports:
        reports.write(json.dumps({"workload": workload, "failure": "broken" if workload == "raises" else ""}) + "\\n")
    if workload == "raises":
        sys.exit(1)
"""


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was announced, by a process that stands in for that of a part."""
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    monkeypatch.setattr(runner, "_CHILD", (str(script),))
    return []


def run(workloads: list[str], limit_s: float, log: Path, outcomes: list[tuple[str, str]]) -> None:
    run_part("p", workloads, TINY, limit_s, log, lambda name, numbers: outcomes.append((name, numbers.failure)))


def test_a_workload_that_fails_or_dies_takes_no_other_with_it(tmp_path: Path, outcomes: list[tuple[str, str]]) -> None:
    log = tmp_path / "log.txt"
    run(["first", "raises", "second", "dies", "exits 1", "exits 0", "third"], 60.0, log, outcomes)
    assert outcomes == [
        ("first", ""),
        ("raises", "broken"),
        ("second", ""),
        ("dies", "the process ended with signal SIGABRT"),
        ("exits 1", "the process ended with exit code 1"),
        ("exits 0", "the process ended with exit code 0"),
        ("third", ""),
    ]
    assert "now dies" in log.read_text()


def test_a_log_is_kept_of_failures_only(tmp_path: Path, outcomes: list[tuple[str, str]]) -> None:
    run(["first"], 60.0, tmp_path / "log.txt", outcomes)
    assert outcomes == [("first", "")] and not (tmp_path / "log.txt").exists()


@pytest.mark.slow
def test_a_part_that_takes_too_long_is_killed_with_all_it_started(
    tmp_path: Path, outcomes: list[tuple[str, str]]
) -> None:
    log = tmp_path / "log.txt"
    began = time.monotonic()
    run(["first", "hangs", "later"], 8.0, log, outcomes)
    assert time.monotonic() - began < 60
    assert outcomes == [
        ("first", ""),
        ("hangs", "timed out, 8 s are allowed for the part"),
        ("later", "not reached before the part's time was over"),
    ]
    sleeper = next(int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("sleeper"))
    patience = time.monotonic() + 20  # it was sent its signal; when it is gone is up to the system
    while is_running(sleeper) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not is_running(sleeper)


@pytest.mark.slow
def test_the_part_in_flight_says_where_it_stood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_BEFORE_S", 1e6)  # at once, while the process still imports or measures
    log = tmp_path / "log.txt"
    told: list[Measured] = []
    run_part("peaks", [COPY, "no such workload"], TINY, 60.0, log, lambda name, numbers: told.append(numbers))
    assert told[0].failure == "" and told[1].failure == "KeyError: 'no such workload'"
    assert "most recent call first" in log.read_text() and "Traceback (most recent call last)" in log.read_text()


# --- what is kept --------------------------------------------------------------------------------------------------


def test_rows_survive_their_file(tmp_path: Path) -> None:
    rows = [measured("peaks", COPY, status="ok: 4 TB/s, read and written"), measured("profile", "W1", kernel_share=0.5)]
    write_rows(rows, tmp_path / "gpu.csv")
    again = read_rows(tmp_path / "gpu.csv")
    assert (again[0].status, again[1].kernel_share) == (rows[0].status, 0.5)
    assert math.isnan(again[0].ks_p)
    header = (tmp_path / "gpu.csv").read_text().splitlines()[0]
    assert header == (
        "part,workload,device,driver,torch,commit,seconds,rounds_per_s,share_of_peak,kernel_share,launch_share,"
        "copy_share,max_abs_diff_cpu,ks_p,status"
    )


def test_a_new_row_takes_the_place_of_its_own_in_the_order_of_the_parts() -> None:
    first, last = measured("tests", "pytest -m cuda"), measured("peaks", COPY)
    newer = replace(last, seconds=2.0)
    assert with_row([last], first, KEYS) == [first, last]
    assert with_row([first, last], newer, KEYS) == [first, newer]


def test_what_is_measured_at_this_commit_on_this_machine_is_not_measured_again() -> None:
    part = next(part for part in PARTS if part.name == "peaks")
    names = list(part.workloads)
    rows = [measured("peaks", name) for name in names]
    everything = call.Wanted()
    assert everything.left(part, rows, HERE) == []
    assert everything.left(part, [replace(rows[0], status="failed: x"), *rows[1:]], HERE) == names[:1]
    for changed in (replace(HERE, commit="def"), replace(HERE, device="other"), replace(HERE, torch="2.12")):
        assert everything.left(part, rows, changed) == names
    assert call.Wanted(again=True).left(part, rows, HERE) == names
    assert call.Wanted(only=("peaks",)).left(part, rows, HERE) == names
    assert call.Wanted(only=("tests",)).left(part, [], HERE) == []


@pytest.mark.slow
@pytest.mark.slow
def test_a_rehearsed_part_through_the_command_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = command("--rehearse", "--out", str(tmp_path), "--only", "peaks")
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "rehearsal.csv")
    assert [row.workload for row in rows] == [*GEMM.values(), COPY]
    assert {row.device for row in rows} == {call.REHEARSED}
    assert all(row.is_measured and row.seconds > 0 for row in rows)
    assert not (tmp_path / "gpu.csv").exists()
    # A second call goes on with the other parts; none of them has time left.
    assert call.rehearse(call.Wanted(within_s=0.0), tmp_path, rows[0].commit) == 0
    told = " ".join(capsys.readouterr().out.split()).partition("Not begun, no time was left: ")[2]
    assert told.startswith("tests, workloads, convolutions, papers, profile, agreement, cohort, resume.")


def test_an_unknown_part_is_refused_with_the_names_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "peak"])
    assert ended.value.code == 2
    assert "found peak; allowed is tests | workloads" in capsys.readouterr().err


def test_sources_without_git_have_a_digest() -> None:
    assert len(source_digest()) == 10 and source_digest() == source_digest()


# --- the machine ---------------------------------------------------------------------------------------------------


def test_missing_packages_are_found_through_what_others_ask_for() -> None:
    asked = ["numpy>=1", "surely-not-there>=2", "pandas; extra == 'x'", "Surely_Not_There"]
    assert missing(asked) == ["surely-not-there"]


def test_what_is_missing_is_named_and_torch_never_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prepare, "_asked_for", lambda: iter(["surely-not-there"]))
    with pytest.raises(NotReadyError, match=r"surely-not-there; give a folder of wheels, as in make gpu WHEELS=folder"):
        prepare._add_packages(None)
    with pytest.raises(NotReadyError, match="surely-not-there; not found in"):
        prepare._add_packages(tmp_path)
    monkeypatch.setattr(prepare, "missing", lambda requirements: ["torch"])
    with pytest.raises(NotReadyError, match="torch: missing, and never installed"):
        prepare._add_packages(tmp_path)


def test_too_old_a_torch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.5.1+cu121")
    with pytest.raises(NotReadyError, match=r"torch: found 2.5.1\+cu121; allowed is 2.6 or newer"):
        prepare._check_interpreter()
