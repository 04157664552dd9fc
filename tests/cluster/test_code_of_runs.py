"""Code from outside of several runs in one worker process, and what of it cannot be sent there."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from tests.cluster.test_training import require_same_traces, small
from tests.study.test_cluster import scheduler
from wirelessfl import plugins
from wirelessfl.cluster.training import check_sendable
from wirelessfl.errors import ScenarioError
from wirelessfl.plugins import RunCode, places, tops_of, turns

OPTIMIZER = """
from dataclasses import dataclass
from typing import ClassVar

from wirelessfl.learning import Optimizer

@dataclass(frozen=True)
class Mine(Optimizer):
    decay: ClassVar[float] = 0.0
    def init_state(self, parameters):
        return ()
    def step(self, parameters, gradients, state, learning_rate, step):
        from helper_of_a_run import FACTOR
        for one, gradient in zip(parameters, gradients, strict=True):
            one.sub_(gradient, alpha=learning_rate * FACTOR)
"""
NAME, HELPER = "optimizer_of_a_run", "helper_of_a_run"
TOPS = {NAME, HELPER}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    plugins.forget(TOPS)


def folder_of(tmp_path: Path, factor: float) -> Path:
    folder = tmp_path / f"{factor}"
    folder.mkdir()
    (folder / f"{NAME}.py").write_text(OPTIMIZER)
    (folder / f"{HELPER}.py").write_text(f"FACTOR = {factor}\n")
    return folder


def loaded(name: str) -> Any:
    """What a late import finds, as within a method of a plug-in."""
    with places.searching():
        return importlib.import_module(name)


def test_each_run_finds_its_own_modules(tmp_path: Path) -> None:
    runs = [RunCode(TOPS, [folder_of(tmp_path, factor)]) for factor in (1.0, 0.25)]
    sent, classes = [], []
    for run in runs:
        with run.in_use():
            classes.append(loaded(NAME).Mine)
            sent.append(pickle.dumps(classes[-1]))
    assert classes[0] is not classes[1]
    for _ in range(2):
        for run, pickled, own, factor in zip(runs, sent, classes, (1.0, 0.25), strict=True):
            with run.in_use():
                assert pickle.loads(pickled) is own  # noqa: S301 - written a moment ago
                assert factor == loaded(HELPER).FACTOR


def test_a_run_finds_no_module_beside_another_one(tmp_path: Path) -> None:
    """Neither one that is loaded nor one that only lies there; nor is a library loaded twice."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / f"{NAME}.py").write_text("import json\n")
    (first / f"{HELPER}.py").write_text("FACTOR = 1.0\n")
    one, other = RunCode(TOPS, [first]), RunCode(tops_of([f"{NAME}.py", "json"]), [second])
    library = loaded("json")
    with one.in_use():
        assert loaded(HELPER).FACTOR == 1.0
    with other.in_use():
        assert loaded(NAME).json is library
        with pytest.raises(ModuleNotFoundError):
            loaded(HELPER)
    with one.in_use():
        assert loaded(HELPER).FACTOR == 1.0


def test_a_failing_start_lets_the_next_run_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(turns, "look_for", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError), RunCode(TOPS, [tmp_path]).in_use():
            pass
    with RunCode(TOPS, [folder_of(tmp_path, 1.0)]).in_use():
        assert loaded(HELPER).FACTOR == 1.0


def test_an_edited_file_is_for_runs_that_come_later(tmp_path: Path) -> None:
    """A run that has imported a module keeps it; a run that is new reads the file."""
    folder = folder_of(tmp_path, 1.0)
    before, after = RunCode(TOPS, [folder]), RunCode(TOPS, [folder])
    with before.in_use():
        assert loaded(HELPER).FACTOR == 1.0
    (folder / f"{HELPER}.py").write_text("FACTOR = 0.125  # edited\n")
    with after.in_use():
        assert loaded(HELPER).FACTOR == 0.125
    with before.in_use():
        assert loaded(HELPER).FACTOR == 1.0


def test_threads_of_one_run_work_beside_each_other_and_runs_take_turns(tmp_path: Path) -> None:
    """In the order in which they came: a run whose threads never cease does not keep another one out."""
    first, second = (RunCode(TOPS, [folder_of(tmp_path, factor)]) for factor in (1.0, 0.25))
    both, order = threading.Barrier(2, timeout=30.0), list[str]()
    came = threading.Event()

    def together() -> None:
        with first.in_use():
            both.wait()  # passes only if both are inside
            came.wait(30.0)
            order.append("first")

    def alone() -> None:
        came.set()
        with second.in_use():
            order.append("second")

    def again() -> None:
        came.wait(30.0)
        time.sleep(0.2)
        with first.in_use():
            order.append("again")

    threads = [threading.Thread(target=one) for one in (together, together, again)]
    for one in threads:
        one.start()
    while len(turns._inside) < 2:
        time.sleep(0.01)
    threads.append(threading.Thread(target=alone))
    threads[-1].start()
    for one in threads:
        one.join(60.0)
    assert order[:2] == ["first", "first"] and sorted(order[2:]) == ["again", "second"]
    assert not turns._inside and not turns._waiting


def test_a_process_with_one_run_changes_nothing(tmp_path: Path) -> None:
    before = dict(sys.modules)
    with RunCode((), [tmp_path]).in_use():
        assert dict(sys.modules) == before and tmp_path.resolve() not in plugins.folders()


def test_an_object_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"uplink\.power_control\.policy: its object cannot be sent to workers"):
        check_sendable({"training.optimizer.name": 1, "uplink.power_control.policy": lambda: None})


LAMBDA = """
from wirelessfl.radio import CrossLayer
class Held(CrossLayer):
    def __init__(self):
        super().__init__(60.0)
        object.__setattr__(self, "held", lambda: None)
"""


@pytest.mark.slow
def test_what_cannot_be_sent_leaves_the_earlier_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "held_by_a_run.py").write_text(LAMBDA)
    monkeypatch.chdir(tmp_path)
    keys = {"uplink": {"kind": "over_the_air", "power_control": {"policy": "held_by_a_run:Held"}}, "rounds": 1}
    run: dict[str, Any] = {
        "allow_plugins": True,
        "pictures": False,
        "threads": 1,
        "overrides": {**keys, "data.limit": 300},
    }
    wfl.simulate("quickstart", tmp_path / "run", **run)
    kept = (tmp_path / "run" / "trace.h5").read_bytes()
    with pytest.raises(ScenarioError, match=r"uplink\.power_control\.policy: its object cannot be sent"):
        wfl.simulate("quickstart", tmp_path / "run", **run, workers=1, overwrite=True)
    assert (tmp_path / "run" / "trace.h5").read_bytes() == kept


SCRIPT = """
import wirelessfl as wfl
from wirelessfl.learning import SGD
class Mine(SGD):
    pass
if __name__ == "__main__":
    keys = {"training.optimizer": {"name": "__main__:Mine", "lr": 0.1}, "rounds": 1, "data.limit": 300}
    means = {"workers": WORKERS, "allow_plugins": True, "overwrite": True, "pictures": False}
    wfl.simulate("quickstart", "run", overrides=keys, **means)
"""


@pytest.mark.slow
def test_a_class_of_a_script_is_refused_before_anything_is_deleted(tmp_path: Path) -> None:
    results = []
    for workers in ("None", "1"):
        (tmp_path / "script.py").write_text(SCRIPT.replace("WORKERS", workers))
        command = [sys.executable, "script.py"]
        results.append(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True))
    assert results[0].returncode == 0, results[0].stderr
    assert "training.optimizer.name: found __main__:Mine, which worker processes cannot import" in results[1].stderr
    assert wfl.open_run(tmp_path / "run").summary["status"] == "complete"


@pytest.mark.slow
def test_runs_with_modules_of_one_name_share_a_worker(tmp_path: Path) -> None:
    """Side by side on one worker of two threads, both have the bits that they have alone and without workers."""
    plain = wfl.scenario.dump_scenario(small(rounds=12, **{"training.epochs": 6}))
    command = [sys.executable, "-m", "wirelessfl", "simulate", "run.yaml", "--allow-plugins", "--figures", "none"]
    command += ["--quiet", "--threads", "1", "--set", "compute.chunk=3"]
    command += ["--set", f'training.optimizer={{"name": "{NAME}:Mine", "lr": 0.05}}']
    folders = [folder_of(tmp_path, factor) for factor in (1.0, 0.25)]
    for folder in folders:
        (folder / "run.yaml").write_text(plain)
        subprocess.run([*command, "--out", "here"], cwd=folder, check=True, capture_output=True)
    with scheduler(tmp_path, workers=1, threads=2) as (address, _):
        there = [*command, "--out", "there", "--scheduler", address]
        started = [
            subprocess.Popen(there, cwd=folder, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
            for folder in folders
        ]
        for one in started:
            _, words = one.communicate(timeout=300)
            assert one.returncode == 0, words
    for folder in folders:
        require_same_traces(folder / "there", folder / "here")
