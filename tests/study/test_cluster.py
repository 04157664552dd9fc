"""Dask: a real cluster in this process, a scheduler and workers as processes, and everything that can go away."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.study.studies import SLOW_ROUNDS, design, same_numbers, write_study
from wirelessfl.cli import main
from wirelessfl.cluster import connection
from wirelessfl.errors import InfeasibleError, InputError, RunInterrupted
from wirelessfl.folder import RunFolder
from wirelessfl.study import Message, Outcome, Progress, Study, cluster, open_study, run_study
from wirelessfl.trace import read_attributes

distributed = pytest.importorskip("distributed")

GRID = {"uplink.snr_db": [0, 10], "clients.count": [3, 6]}
PATIENCE_S = 120.0


@contextmanager
def scheduler(folder: Path, workers: int, threads: int = 1) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers as processes on the loopback: its address, then all processes, it first."""
    file = folder / "scheduler.json"
    python = [sys.executable, "-m"]
    at = ["--scheduler-file", str(file), "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))}

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*python, *arguments, *at, "--no-dashboard"], env=environment, **quiet)  # type: ignore[call-overload, no-any-return]

    processes = [start("distributed.cli.dask_scheduler", "--port", "0")]
    try:
        for _ in range(workers):
            processes.append(start("distributed.cli.dask_worker", "--nthreads", str(threads), "--no-nanny"))
        deadline = time.monotonic() + PATIENCE_S
        while not file.exists() or not file.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_local_cluster_computes_what_is_computed_here(workers: int, tmp_path: Path, finished: Study) -> None:
    plan = design(tmp_path, grid={"uplink.snr_db": [0, 10], "clients.count": [3]})
    messages: list[Message] = []
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path
    ) as local:
        study = run_study(plan, tmp_path / "out", scheduler=local.scheduler_address, on_message=messages.append)
    here = finished.to_dataframe().query("seed == 11 and `clients.count` == 3").reset_index(drop=True)
    assert same_numbers(study.to_dataframe(), here)
    assert {message.run for message in messages if isinstance(message, Progress)} == {run.id for run in plan.runs}


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_and_nothing_is_done_twice(tmp_path: Path) -> None:
    plan = design(tmp_path, {"base.rounds": SLOW_ROUNDS}, grid=GRID)
    undisturbed = run_study(plan, tmp_path / "undisturbed", workers=2, threads=1)
    messages: list[Message] = []
    with scheduler(tmp_path, workers=2) as (address, processes):

        def kill_once(message: Message) -> None:
            running = {one.run for one in messages if isinstance(one, Progress)}
            if len(running) < 2 and len({*running, message.run}) == 2:
                processes[1].send_signal(signal.SIGKILL)
            messages.append(message)

        study = run_study(plan, tmp_path / "out", scheduler=address, on_message=kill_once)
    assert same_numbers(study.to_dataframe(), undisturbed.to_dataframe())
    ended = [message.run for message in messages if isinstance(message, Outcome)]
    assert sorted(ended) == sorted(run.id for run in plan.runs)
    firsts = [message.run for message in messages if isinstance(message, Progress) and message.round == 1]
    assert len(firsts) == len(set(firsts))  # nobody began again at the first round
    assert processes[1].returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_study_and_it_resumes(tmp_path: Path) -> None:
    plan = design(tmp_path, {"base.rounds": SLOW_ROUNDS}, grid=GRID)
    with scheduler(tmp_path, workers=1) as (address, processes):

        def kill(message: Message) -> None:
            processes[0].kill()

        with pytest.raises(InfeasibleError, match="the connection to the Dask scheduler is lost"):
            run_study(plan, tmp_path / "out", scheduler=address, on_message=kill)
    statuses = {record.status for record in open_study(tmp_path / "out").records}
    assert statuses <= {"complete", "interrupted", "waiting"} and statuses != {"complete"}
    study = run_study(plan, tmp_path / "out", resume=True, workers=2, threads=1)
    undisturbed = run_study(plan, tmp_path / "undisturbed", workers=2, threads=1)
    assert same_numbers(study.to_dataframe(), undisturbed.to_dataframe())


@pytest.mark.slow
def test_a_stopped_study_stops_its_runs_on_the_cluster(tmp_path: Path) -> None:
    plan = design(tmp_path, {"base.rounds": 50 * SLOW_ROUNDS}, grid={"uplink.snr_db": [0, 10]})

    def stop(message: Message) -> None:
        raise RunInterrupted("a signal")

    with scheduler(tmp_path, workers=1) as (address, _):
        with pytest.raises(RunInterrupted):
            run_study(plan, tmp_path / "out", scheduler=address, on_message=stop)
        begun = plan.runs[0].id
        with RunFolder(tmp_path / "out" / "runs" / begun).held(lambda: None):  # waits until the worker has let go of it
            attributes = read_attributes(tmp_path / "out" / "runs" / begun / "trace.h5")
    assert attributes["status"] == "interrupted"


@pytest.mark.slow
def test_a_run_fails_on_the_cluster_as_it_does_here(tmp_path: Path) -> None:
    plan = design(tmp_path, grid={"uplink.jammer": [{"epsilon": 2.0, "power_db": -20}, None]})
    with scheduler(tmp_path, workers=1) as (address, _):
        study = run_study(plan, tmp_path / "out", scheduler=address)
    assert [record.status for record in study.records] == ["failed", "complete"]
    assert "uplink.jammer.power_db" in (study.failures[0].error or "")


PLUGIN = """
import numpy as np
class Constant:
    def draw(self, stream):
        return np.full(len(stream.uniform(1)), {gain}, dtype=complex)
"""


@pytest.mark.slow
def test_workers_elsewhere_find_a_plugin_and_never_answer_with_an_edited_one(tmp_path: Path) -> None:
    """The workers start in another folder; the edit comes while they have the earlier text loaded."""
    own, place = tmp_path / "own", tmp_path / "cluster"
    for folder in (own, place):
        folder.mkdir()
    module = own / "cluster_fading.py"
    module.write_text(PLUGIN.format(gain=1.0))
    keys: dict[str, Any] = {
        "set": {"channel.fading.model": "cluster_fading:Constant"},
        "grid": {"uplink.snr_db": [0, 10]},
        "seeds": 1,
    }
    with scheduler(place, workers=1) as (address, _):
        plan = design(own, **keys)
        there = run_study(plan, tmp_path / "there", scheduler=address)
        assert [record.status for record in there.records] == ["complete"] * 2, there.failures
        assert same_numbers(
            there.to_dataframe(), run_study(plan, tmp_path / "here", workers=1, threads=1).to_dataframe()
        )
        before = there.to_dataframe()
        module.write_text(PLUGIN.format(gain=0.05))
        command = [sys.executable, "-m", "wirelessfl", "study", str(own / "small-study.yaml"), "--quiet", "--out"]
        for more in ([str(tmp_path / "there"), "--resume", "--scheduler", address], [str(tmp_path / "fresh")]):
            told = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
            assert told.returncode == 0, told.stderr
    resumed, fresh = (open_study(tmp_path / name).to_dataframe() for name in ("there", "fresh"))
    assert same_numbers(resumed, fresh) and not same_numbers(resumed, before)


def test_a_scheduler_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.5)
    began = time.monotonic()
    with pytest.raises(InfeasibleError, match=r"no Dask scheduler answered at tcp://127\.0\.0\.1:9 within 0\.5 s"):
        run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler="tcp://127.0.0.1:9")
    assert time.monotonic() - began < 30
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_scheduler_without_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WORKER_PATIENCE_S", 0.5)
    monkeypatch.setattr(cluster, "_LOOK_INTERVAL_S", 0.1)
    with (
        scheduler(tmp_path, workers=0) as (address, _),
        pytest.raises(InfeasibleError, match=r"has had no workers for 0\.5 s; start some with: dask worker"),
    ):
        run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler=address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "somewhere",
        "slum",
        "127.0.0.1:8786",
        "tcp://",
        "tcp://host",
        "tcp://host:port",
        "tcp://host:0",
        "tcp://host:65536",
        "tcp://two words:1",
        "foo://host:1",
    ],
)
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    allowed = r"allowed: tcp://HOST:PORT, tls://HOST:PORT \(ports 1 to 65535\) or slurm"
    with pytest.raises(InputError, match=rf"scheduler: found {re.escape(repr(address))}; {allowed}"):
        run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (b"", r"no Dask scheduler answered at tcp://127\.0\.0\.1:\d+ within 0\.5 s"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", r"what answered at tcp://127\.0\.0\.1:\d+ is not a Dask scheduler"),
    ],
)
def test_what_is_no_scheduler_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes, words: str
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.5)

    def answer(listener: socket.socket) -> None:
        with suppress(TimeoutError):  # on a busy machine nobody may have called by then
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                connection.sendall(says)
                connection.recv(1 << 16)  # Dask's greeting
                connection.recv(1)  # until the other side is gone

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        other = threading.Thread(target=answer, args=(listener,))
        other.start()
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(InfeasibleError, match=words):
            run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler=address)
        other.join()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("address", "code"), [("foo://host:1", 2), ("tcp://127.0.0.1:9", 3)])
def test_the_command_says_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, code: int
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.5)
    file, out = write_study(tmp_path, seeds=1), tmp_path / "out"
    result = CliRunner().invoke(main, ["study", str(file), "--scheduler", address, "--out", str(out)])
    assert result.exit_code == code and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ") and address in line
    assert not out.exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InfeasibleError, match=r"pip install 'wirelessfl\[cluster\]'"):
        run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler="tcp://127.0.0.1:9")


FAKE_SBATCH = """#!/bin/sh
# Runs a job at once, as Slurm would on a free node.
sh "$1" >"{folder}/job.log" 2>&1 &
echo $! >>"{folder}/pids"
echo "Submitted batch job $!"
"""
FAKE_SCANCEL = '#!/bin/sh\nkill "$@" 2>/dev/null\ntrue\n'


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Slurm's two commands, which run jobs on this machine."""
    pytest.importorskip("dask_jobqueue")
    import dask

    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("sbatch", FAKE_SBATCH.format(folder=tmp_path)), ("scancel", FAKE_SCANCEL)):
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, map(os.path.abspath, sys.path))))
    job = {"cores": 1, "memory": "2GB", "processes": 1, "interface": "lo", "local-directory": str(tmp_path)}
    with dask.config.set({"jobqueue.slurm": {**dask.config.get("jobqueue.slurm"), **job}}):
        yield tmp_path


@pytest.mark.slow
def test_slurm_starts_the_workers(slurm: Path) -> None:
    plan = design(slurm, grid={"uplink.snr_db": [0, 10]})
    study = run_study(plan, slurm / "out", scheduler="slurm", workers=2)
    assert [record.status for record in study.records] == ["complete", "complete"]
    jobs = (slurm / "pids").read_text().split()
    assert len(jobs) == 2
    assert same_numbers(study.to_dataframe(), run_study(plan, slurm / "here", workers=1, threads=1).to_dataframe())


def test_slurm_must_be_configured(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    with pytest.raises(
        InfeasibleError,
        match=r"cores and memory missing\); set cores, memory, processes and walltime under jobqueue\.slurm",
    ):
        run_study(design(tmp_path, seeds=1), tmp_path / "out", scheduler="slurm")
