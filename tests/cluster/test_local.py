"""Worker processes of this machine: order, flow, errors and deaths, with tasks in place of training."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import wirelessfl as wfl
from tests.cluster import tasks
from tests.cluster.test_training import require_same_traces, small
from tests.processes import is_running
from wirelessfl import child_process
from wirelessfl.cluster import local, process
from wirelessfl.cluster.blocks import AHEAD, RoundOfBlocks
from wirelessfl.errors import InfeasibleError, PlanWarning, RunInterrupted, ScenarioError, command_line_words

WORKERS = 2


class Numbers:
    """A cohort whose parts are the numbers of its blocks; notes which were asked for."""

    def __init__(self, wrong: int | None = None) -> None:
        self.asked: list[int] = []
        self._wrong = wrong

    def part(self, positions: Any) -> int:
        if positions[0] == self._wrong:
            raise ScenarioError("mine.py: no part")
        self.asked.append(int(positions[0]))
        return int(positions[0])


def round_of(task: Callable[..., Any], count: int, shared: Any = "shared", cohort: Numbers | None = None) -> Any:
    blocks = [np.array([at]) for at in range(count)]
    return RoundOfBlocks(shared, task, cast(Any, cohort or Numbers()), blocks)


@pytest.fixture(scope="module")
def workers() -> Iterator[local.LocalWorkers]:
    with local.local_workers(WORKERS, lambda: None) as found:
        yield found


def test_results_come_in_the_order_of_the_blocks(workers: local.LocalWorkers) -> None:
    assert list(workers.results(round_of(tasks.negative, 20))) == [-at for at in range(20)]
    assert list(workers.results(round_of(tasks.negative, 0))) == []


def test_rounds_may_be_open_beside_each_other_and_be_given_up(workers: local.LocalWorkers) -> None:
    """Each has what its own blocks share, whichever round a process served before."""
    first, second = (workers.results(round_of(tasks.sum_with_shared, 30, shared)) for shared in (100, 1000))
    for at in range(10):
        assert (next(second), next(first)) == (1000 + at, 100 + at)
    first.close()
    third = workers.results(round_of(tasks.sum_with_shared, 5, 5000))
    assert list(third) == [5000 + at for at in range(5)]
    assert list(second) == [1000 + at for at in range(10, 30)]


def test_a_round_that_nobody_takes_does_not_grow(workers: local.LocalWorkers) -> None:
    cohort = Numbers()
    found = workers.results(round_of(tasks.sum_with_shared, 50, 0, cohort))
    most = 1 + AHEAD * WORKERS
    for taken in range(3):
        deadline = time.monotonic() + 60.0
        while len(cohort.asked) < most + taken and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        assert sorted(cohort.asked) == list(range(most + taken))
        assert next(found) == taken
    assert list(found) == list(range(3, 50))


def test_an_error_arrives_where_its_block_would_have_come(workers: local.LocalWorkers) -> None:
    found = workers.results(round_of(tasks.fails, 6))
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError, match="in block 2") as caught:
        next(found)
    assert "in a worker process:" in caught.value.__notes__[0] and "tasks.py" in caught.value.__notes__[0]
    with pytest.raises(InfeasibleError, match=r"a worker process failed: UnsendableError: 1 and 2"):
        next(workers.results(round_of(tasks.fails_beyond_words, 1)))
    with pytest.raises(ScenarioError) as refused:
        next(workers.results(round_of(tasks.refuses, 1)))
    assert str(refused.value) == "not so; try resume=True"
    with command_line_words():
        assert str(refused.value) == "not so; try --resume"
    with pytest.raises(ScenarioError, match="mine 1, 2"):
        next(workers.results(round_of(tasks.refuses_in_its_own_words, 1)))
    with pytest.raises(KeyboardInterrupt, match="by itself"):
        next(workers.results(round_of(tasks.interrupts, 1)))
    with pytest.raises(InfeasibleError, match="what a worker process answered cannot be read: SystemExit: 3"):
        next(workers.results(round_of(tasks.gives_what_ends_the_reader, 1)))
    found = workers.results(round_of(tasks.sum_with_shared, 3, 0, Numbers(wrong=1)))
    assert next(found) == 0
    with pytest.raises(ScenarioError, match=r"mine\.py: no part"):
        next(found)
    with pytest.raises(Exception, match="pickle"):
        next(workers.results(round_of(lambda *_: 0, 1)))
    with pytest.raises(TypeError, match="cannot pickle"):
        next(workers.results(round_of(tasks.gives_a_lock, 1)))
    with pytest.raises(InfeasibleError, match="what a worker process answered cannot be read: ValueError: only here"):
        next(workers.results(round_of(tasks.gives_what_cannot_be_read, 1)))
    assert len(workers.pids) == WORKERS and all(map(is_running, workers.pids))


def test_blocks_of_dead_processes_are_done_by_others(tmp_path: Path) -> None:
    with local.local_workers(WORKERS, lambda: None) as workers:
        before = workers.pids
        found = workers.results(round_of(tasks.ends_once, 4, str(tmp_path)))
        assert list(found) == list(range(4))
        assert not set(before) & set(workers.pids)
        pids = workers.pids
    assert not any(map(is_running, (*before, *pids)))


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (tasks.ends, "killed by SIGKILL;"),
        (tasks.leaves, r"with exit code 7 \(no room left\);"),
        (tasks.ends_by_a_signal_without_a_name, "killed by signal 40;"),
        (tasks.ends_with_a_fork, "killed by SIGKILL;"),
    ],
)
def test_a_block_of_which_all_die_ends_the_run(
    task: Callable[..., Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a process that was forked from the dead one lives on and holds its files."""
    monkeypatch.setattr(local, "_MOST_LOSSES", 2)
    with (
        local.local_workers(WORKERS, lambda: None) as workers,
        pytest.raises(InfeasibleError, match=rf"2 worker processes have died of one block of clients, the last {why}"),
    ):
        list(workers.results(round_of(task, 1)))


def test_a_process_that_dies_now_and_then_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block may be lost almost as often as ends a run."""
    monkeypatch.setattr(local, "_MOST_LOSSES", 2)
    with local.local_workers(1, lambda: None) as workers:
        for first in range(0, 3):
            (tmp_path / str(first)).mkdir()
            assert list(workers.results(round_of(tasks.ends_once, 1, str(tmp_path / str(first))))) == [0]


def test_what_a_worker_prints_reaches_stderr_and_is_no_answer(
    workers: local.LocalWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it comes, with or without the end of a line; a stderr that fails loses it and nothing else."""
    told: list[str] = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=told.append))
    assert list(workers.results(round_of(tasks.speaks, 2))) == [0, 1]
    deadline = time.monotonic() + 10.0
    while "".join(told).count("UserWarning: a warning") < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    text = "".join(told)
    assert text.count("said on stdout") == 2 and text.count("\rwithout an end") == 2 and "ModelWarning" not in text

    def fails(_: str) -> None:
        raise RuntimeError("gone")

    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=fails))
    for _ in range(3):
        assert list(workers.results(round_of(tasks.speaks, 2))) == [0, 1]


def test_processes_that_cannot_be_started_are_refused_and_the_others_end(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def start_child(*arguments: Any) -> Any:
        if len(started) == 2:
            raise OSError(24, "Too many open files")
        child = local_start(*arguments)
        started.append(child.pid)
        return child

    local_start = child_process.start_child
    monkeypatch.setattr(process, "start_child", start_child)
    with (
        pytest.raises(InfeasibleError, match=r"worker process 3 of 4 cannot be started: .*Too many open files"),
        local.local_workers(4, lambda: None),
    ):
        pass
    assert len(started) == 2 and not any(map(is_running, started))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", r"local_optimizer\.py:8 in Raises\.step: ValueError: my step is bad"),
        ("Exits", r"local_optimizer\.py:12 in Exits\.step: SystemExit: 5"),
        ("Custom", r"local_optimizer\.py:20 in Custom\.step: Mine: 1 and 2"),
    ],
)
def test_a_fault_of_the_users_own_code_is_told_with_its_line(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "local_optimizer.py").write_text(OWN)
    (tmp_path / "mine.yaml").write_text(wfl.scenario.dump_scenario(small(rounds=1)))
    command = [sys.executable, "-m", "wirelessfl", "simulate", str(tmp_path / "mine.yaml"), "--allow-plugins"]
    command += ["--set", f"training.optimizer={{name: 'local_optimizer:{name}', lr: 0.05}}", "--workers", "1"]
    command += ["--out", str(tmp_path / "out"), "--figures", "none", "--quiet"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2 and re.search(words, told.stderr), told.stderr
    assert "Traceback" not in told.stderr


def test_more_workers_than_blocks_are_told(tmp_path: Path) -> None:
    with pytest.warns(
        PlanWarning, match=r"workers: found 3, of which 2 have nothing to do: a round of 10 clients has 1"
    ):
        wfl.simulate(small(**{"rounds": 1, "compute.chunk": 10}), tmp_path / "out", workers=3, pictures=False)


OWN = """\
from wirelessfl.learning import SGD
class Mine(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")

class Raises(SGD):
    def step(self, *arguments):
        raise ValueError("my step is bad")

class Exits(SGD):
    def step(self, *arguments):
        raise SystemExit(5)




class Custom(SGD):

    def step(self, *arguments):
        raise Mine(1, 2)
"""


def test_an_interrupt_is_seen_while_a_block_is_waited_for_and_ends_the_processes() -> None:
    waited = [False]

    def check() -> None:
        if waited[0]:
            raise RunInterrupted("a signal")

    with local.local_workers(WORKERS, check) as workers:
        pids = workers.pids
        assert list(workers.results(round_of(tasks.negative, 4))) == [0, -1, -2, -3]
        found = workers.results(round_of(tasks.slow, 2))
        waited[0] = True
        began = time.monotonic()
        with pytest.raises(RunInterrupted):
            next(found)
    assert time.monotonic() - began < 30.0
    assert not any(map(is_running, pids))


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal\n"
        "from wirelessfl.cluster.local import local_workers\n"
        "with local_workers(2, lambda: None) as workers:\n"
        "    print(*workers.pids, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in told.stdout.split()]
    deadline = time.monotonic() + 60.0
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(pids) == 2


def test_a_script_without_a_main_guard_runs_once_and_needs_no_dask(tmp_path: Path) -> None:
    """As in a notebook; what the script says is said once, and its results are those of one process."""
    script = tmp_path / "script.py"
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(wfl.scenario.dump_scenario(small(**{"compute.chunk": 3})))
    script.write_text(
        "import sys\n"
        "sys.modules['distributed'] = sys.modules['dask'] = None\n"
        "import wirelessfl as wfl\n"
        "print('once')\n"
        f"wfl.simulate({str(scenario)!r}, {str(tmp_path / 'there')!r}, workers=2, threads=1, pictures=False)\n"
    )
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "once\n"), told.stderr
    here = wfl.simulate(str(scenario), tmp_path / "here", threads=1, pictures=False)
    require_same_traces(tmp_path / "there", here.trace.parent)


def test_each_process_takes_the_next_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    for named, expected in (("", ["0", "1"]), ("5,3", ["5", "3"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
        with local.local_workers(3, lambda: None) as workers:
            found = [_variable(pid, "CUDA_VISIBLE_DEVICES") for pid in workers.pids]
        assert found == [*expected, expected[0]]


def _variable(pid: int, name: str) -> str | None:
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
        if found := re.search(rf"(?:^|\0){name}=([^\0]*)", words):
            return found[1]
        time.sleep(0.01)
    return os.environ.get(name)
