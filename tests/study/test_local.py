"""Processes on this machine: killed, stopped, orphaned."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import wirelessfl as wfl
from tests.study.studies import SLOW_ROUNDS, design, same_numbers
from wirelessfl.study import Message, Outcome, Progress, StudyDesign, local, run_study
from wirelessfl.study.local import LocalWorkers, available_cores
from wirelessfl.study.task import Task

PATIENCE_S = 120.0


def workers_of(parent: int) -> list[int]:
    """The worker processes that a process has started."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _parent(pid) == parent and not is_gone(pid)]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_gone(pid: int) -> bool:
    return b"wirelessfl.study.local" not in _command_line(pid)


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true before patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def long_design(folder: Path) -> StudyDesign:
    """Two runs that go on for a while."""
    return design(folder, {"base.rounds": SLOW_ROUNDS}, grid={"uplink.snr_db": [0, 10]})


def test_messages_survive_the_pipe() -> None:
    for message in (
        Progress("a", 1, 2, float("inf")),
        Outcome("a", "failed", "wrong:\n  Ünicode"),
        Outcome("a", "complete", summary={"x": [1.5, None]}),
        Outcome("a", "complete", summary={}, trace_state=(1, 2, 3, 4, 2**62)),
    ):
        line = local.encode(message)
        assert line.count(b"\n") == 1
        assert local.decode(line) == message


def test_a_task_survives_the_pipe() -> None:
    for folders in ((), ("/plugins", "/others")):
        task = Task("id", "name: x\n", "/somewhere", "cpu", None, "/lock", "token", folders)
        line = local.encode(task)
        assert line.count(b"\n") == 1
        assert local.decode(line) == task


def test_traces_of_own_workers_are_checked_only_where_another_file_took_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Path] = []

    def inspected(words: partial[str | None], size: int) -> str | None:
        checked.append(words.args[0])
        return words()

    monkeypatch.setattr("wirelessfl.trace.opening.watched_from_any_thread", inspected)
    plan, out = design(tmp_path, seeds=2), tmp_path / "out"
    first, second = (out / "runs" / run.id / "trace.h5" for run in plan.runs)

    def replace(message: Message) -> None:
        if isinstance(message, Outcome) and message.run == plan.runs[1].id:
            shutil.copy(second, tmp_path / "copy")
            (tmp_path / "copy").replace(second)

    study = run_study(plan, out, workers=1, threads=1, figures="none", on_message=replace)
    assert len(study.complete) == 2 and checked == [second]
    for trace in (first, second):
        wfl.open_trace(trace).close()
    assert checked == [second]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_workers_lose_nothing_and_do_nothing_twice(workers: int, tmp_path: Path) -> None:
    plan = long_design(tmp_path)
    messages: list[Message] = []

    def kill_once(message: Message) -> None:
        if not messages:
            for pid in workers_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)
        messages.append(message)

    study = run_study(plan, tmp_path / "killed", workers=workers, threads=1, on_message=kill_once)
    assert [(record.status, record.error) for record in study.records] == [("complete", None)] * 2
    began_again = [message for message in messages[1:] if isinstance(message, Progress) and message.round == 1]
    assert messages[0].run not in {message.run for message in began_again}
    for run in plan.runs:
        alone = wfl.simulate(run.scenario, tmp_path / run.id, threads=1, pictures=False)
        with wfl.open_trace(alone.trace) as whole, wfl.open_trace(study.folder.trace(run.id)) as resumed:
            assert whole.drop_vars("wall_time").identical(resumed.drop_vars("wall_time").assign_attrs(whole.attrs))
    assert workers_of(os.getpid()) == []


@pytest.mark.slow
def test_a_run_that_kills_its_worker_is_recorded_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly_fading.py").write_text(
        "import os, signal\n"
        "class Deadly:\n"
        "    def __init__(self):\n"
        "        print('on stdout, which is no answer')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    def draw(self, stream):\n"
        "        raise NotImplementedError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(local, "MAX_DEATHS", 2)
    plan = design(tmp_path, grid={"channel.fading.model": ["deadly_fading:Deadly", "rayleigh"]})
    study = run_study(plan, tmp_path / "out", workers=1)
    assert [record.status for record in study.records] == ["failed", "complete"]
    assert study.failures[0].error is not None
    assert "2 worker processes died of it, the last by SIGKILL" in study.failures[0].error


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_warning_is_in_the_log_once(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_fading.py").write_text(
        "import warnings\n"
        "import numpy as np\n"
        "class Odd:\n"
        "    def draw(self, stream):\n"
        "        with warnings.catch_warnings():\n"  # after which Python repeats what it has said
        "            warnings.warn('these gains are odd', stacklevel=1)\n"
        "        return np.ones(len(stream.uniform(1)), dtype=complex)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plan = design(tmp_path, {"base.channel.fading.model": "odd_fading:Odd"}, grid={"uplink.snr_db": [0, 5, 10]})
    study = run_study(plan, tmp_path / "out", workers=workers)
    assert [record.status for record in study.records] == ["complete"] * 3
    said = study.folder.log.read_text(encoding="utf-8")
    assert said.count("UserWarning: these gains are odd") == 1, said


@pytest.mark.slow
def test_stopping_lets_workers_end_their_round(tmp_path: Path) -> None:
    log = tmp_path / "workers.log"
    run_folder = tmp_path / "run"
    (tmp_path / "study.lock").write_text("token")
    plan = long_design(tmp_path)
    from wirelessfl.scenario import dump_scenario

    text = dump_scenario(plan.runs[0].scenario)
    task = Task("id", text, str(run_folder), "cpu", 1, str(tmp_path / "study.lock"), "token")
    with LocalWorkers(1, 1, log) as pool:
        pool.submit(task)
        assert eventually(lambda: isinstance(pool.next_message(0.1), Progress))
        (worker,) = workers_of(os.getpid())
        assert os.getsid(worker) == worker  # a terminal's Ctrl-C does not reach it
    assert is_gone(worker)
    with wfl.open_trace(run_folder / "trace.h5") as trace:
        assert trace.attrs["status"] == "interrupted"
        assert 1 <= trace.sizes["round"] < SLOW_ROUNDS
    assert not log.exists()  # nothing was said there


ORPHANING = """
import sys
from wirelessfl.study import load_study, run_study
run_study(load_study(sys.argv[1], ["base.rounds=100000"]), sys.argv[2], workers=2, threads=1,
          on_message=lambda message: print("going", flush=True))
"""


@pytest.mark.slow
def test_workers_of_a_killed_study_stop_and_it_resumes(tmp_path: Path) -> None:
    """A plain script without a main guard, killed the hard way."""
    plan = long_design(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(ORPHANING.replace("100000", str(SLOW_ROUNDS)))
    command = [sys.executable, str(script), str(tmp_path / "small-study.yaml"), str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "going\n"
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    workers = [int(text) for text in listed.stdout.split()]
    assert len(workers) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    assert eventually(lambda: all(is_gone(pid) for pid in workers))
    study = run_study(plan, tmp_path / "out", resume=True, workers=1, threads=1)
    undisturbed = run_study(plan, tmp_path / "undisturbed", workers=1, threads=1)
    assert same_numbers(study.to_dataframe(), undisturbed.to_dataframe())


def test_a_worker_whose_study_is_gone_ends(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", "from wirelessfl.study.local import main; main()"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert process.returncode in (0, -signal.SIGTERM)
    assert process.stdout == process.stderr == b""


def test_cores_are_those_this_process_may_use() -> None:
    assert available_cores() == len(os.sched_getaffinity(0))


def test_what_is_not_json_is_not_swallowed() -> None:
    with pytest.raises(json.JSONDecodeError):
        local.decode(b"hello")


def test_a_log_that_was_taken_away_ends_nothing(tmp_path: Path) -> None:
    with LocalWorkers(1, 1, tmp_path / "workers.log"):
        (tmp_path / "workers.log").unlink()
    assert not list(tmp_path.iterdir())
