"""SIGINT and SIGTERM at any moment of any command: exit code 130, one line, nothing half-written, no process left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import wirelessfl as wfl
from tests.processes import is_running
from wirelessfl.errors import RunInterrupted
from wirelessfl.interrupts import Interrupts, catch_interrupts, stop_at_once

PATIENCE_S = 120.0
SCENARIO = """\
name: small
seed: 3
rounds: 30
data: {limit: 200}
clients: {count: 5}
model: {name: logistic}
training: {epochs: 1}
"""
STUDY = "name: pair\nbase: scenario.yaml\ngrid: {uplink.snr_db: [0, 5]}\nseeds: 2\n"
ENTERED = (
    "import sys; from wirelessfl.cli import main; print('entered', file=sys.stderr, flush=True); main(sys.argv[1:])"
)

COMMANDS = {
    "simulate": ("simulate", "scenario.yaml", "--device", "cpu", "--threads", "1", "--out", "OUT"),
    "validate": ("validate", "scenario.yaml"),
    "report": ("report", "run", "--out", "OUT.html"),
    "verify": ("replay", "run/trace.h5", "--verify"),
    "export": ("replay", "run/trace.h5", "--export", "netcdf", "--out", "OUT"),
    "audit": ("audit", "scenario.yaml", "--trials", "2000", "--out", "OUT"),
    "study": ("study", "study.yaml", "--out", "OUT", "--workers", "2", "--threads", "1"),
}
QUICK = ("simulate", "report", "audit")


@dataclass
class Bench:
    """A folder with a scenario, a study and a complete run, and how long every command takes there."""

    folder: Path
    seconds: dict[str, float]

    def start(self, name: str, out: str) -> subprocess.Popen[str]:
        """A command that has entered ``main``."""
        arguments = [argument.replace("OUT", out) for argument in COMMANDS[name]]
        process = subprocess.Popen(
            [sys.executable, "-c", ENTERED, *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert process.stderr is not None and process.stderr.readline() == "entered\n"
        return process


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("bench")
    (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    wfl.simulate(wfl.load_scenario(folder / "scenario.yaml"), folder / "run", device="cpu", threads=1, pictures=False)
    return Bench(folder, {})


def workers_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def stop(bench: Bench, name: str, number: signal.Signals, delay: float, out: str) -> int:
    """Stop a command after a delay; returns its exit code, 0 where it had ended."""
    process = bench.start(name, out)
    time.sleep(delay)
    workers = workers_of(process.pid)
    process.send_signal(number)
    _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 130), (name, delay, process.returncode, words)
    assert "Traceback" not in words and "Exception ignored" not in words, (name, delay, words)
    if process.returncode == 130:
        last = words.rstrip("\n").splitlines()[-1]
        assert last.startswith("Error: "), (name, delay, words)
        assert "stopped" in last, (name, delay, words)
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, f"{name}, stopped after {delay:.2f} s, left workers behind"
        time.sleep(0.02)
    assert not [path.name for path in bench.folder.rglob(".partial-*")], (name, delay)
    return process.returncode


def check_resumes(bench: Bench, name: str, out: str) -> None:
    """What was stopped goes on to the bits of a run that was not."""
    folder = bench.folder / out
    if not folder.exists():
        return
    scenario = wfl.load_scenario(bench.folder / "scenario.yaml")
    if name == "simulate":
        result = wfl.simulate(scenario, folder, device="cpu", threads=1, resume=True, pictures=False)
        with wfl.open_trace(bench.folder / "run" / "trace.h5") as whole, wfl.open_trace(result.trace) as resumed:
            assert whole.drop_vars("wall_time").identical(resumed.drop_vars("wall_time").assign_attrs(whole.attrs))
    else:
        for trace in folder.glob("runs/*/trace.h5"):
            with wfl.open_trace(trace) as dataset:
                assert dataset.attrs["status"] in ("complete", "interrupted", "running")
                dataset.load()


def attack(bench: Bench, name: str, times: int, seed: int) -> list[int]:
    """The exit codes of a command that is stopped after random delays, up to the time that it takes."""
    began = time.monotonic()
    process = bench.start(name, f"{name}-whole")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    span = time.monotonic() - began
    draw = random.Random(f"{name} {seed}")
    codes = []
    for attempt in range(times):
        out = f"{name}-{seed}-{attempt}"
        number = draw.choice([signal.SIGINT, signal.SIGTERM])
        codes.append(stop(bench, name, number, draw.uniform(0.005, span), out))
        if name in ("simulate", "study"):
            check_resumes(bench, name, out)
    return codes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in COMMANDS]
)
def test_a_command_stops_at_once(name: str, bench: Bench) -> None:
    """Half a second after the start every command still imports or works."""
    assert stop(bench, name, signal.SIGTERM if len(name) % 2 else signal.SIGINT, 0.3, f"{name}-early") == 130


@pytest.mark.slow
@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_stops_at_any_moment(name: str, bench: Bench) -> None:
    codes = attack(bench, name, int(os.environ.get("SIGNALS", "12")), int(os.environ.get("SEED_SHIFT", "0")))
    print(name, {code: codes.count(code) for code in set(codes)})
    assert 130 in codes


@pytest.mark.slow
@pytest.mark.parametrize("second", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_workers_of_a_study_end_with_it(second: bool, bench: Bench) -> None:
    process = bench.start("study", f"workers-{second}")
    deadline = time.monotonic() + PATIENCE_S
    while len(workers := workers_of(process.pid)) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    if second:  # ends at once, without waiting for its workers
        time.sleep(0.15)
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in ((130, -signal.SIGTERM) if second else (130,))
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "workers were left behind"
        time.sleep(0.02)


def test_work_at_once_is_interrupted_and_work_with_an_end_is_not() -> None:
    with catch_interrupts() as interrupts:
        with pytest.raises(RunInterrupted, match="now"), interrupts.at_once("now"):
            signal.raise_signal(signal.SIGINT)
            pytest.fail("went on")
        with pytest.raises(RunInterrupted):
            interrupts.check()
    reached = False
    with pytest.raises(RunInterrupted), catch_interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        reached = True
    assert reached


def test_an_interrupt_that_became_another_error_is_one() -> None:
    with catch_interrupts() as interrupts, pytest.raises(RunInterrupted), interrupts.at_once():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("as C code says it") from None


def test_an_interrupt_that_is_lost_comes_again() -> None:
    class Lossy:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(RunInterrupted), stop_at_once():
        held = Lossy()
        del held
        time.sleep(PATIENCE_S)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_interrupt_that_a_library_swallows_comes_again() -> None:
    began = time.monotonic()
    with pytest.raises(RunInterrupted), stop_at_once():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        time.sleep(5.0)
    assert time.monotonic() - began < 5.0


def test_a_signal_that_is_sent_twice_at_once_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.05, 11.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    died: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", died.append)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    interrupts = Interrupts()
    for expected in ([], [], [signal.SIGTERM]):
        interrupts.note(signal.SIGTERM, None)
        assert died == expected
