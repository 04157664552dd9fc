"""One run on workers, of Dask or of this machine: its bits are those of one process, whatever dies."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import wirelessfl as wfl
from tests.processes import is_running
from tests.study.test_cluster import scheduler
from wirelessfl.assembly import build_simulation, choose_plan
from wirelessfl.cluster import connection, local, worker
from wirelessfl.cluster.blocks import BlocksElsewhere, Workers
from wirelessfl.cluster.dask_workers import DaskWorkers
from wirelessfl.cluster.training import check_workers
from wirelessfl.cluster.worker import RunOnWorkers
from wirelessfl.errors import DataError, InfeasibleError, InputError, RunInterrupted, ScenarioError
from wirelessfl.folder import RunFolder
from wirelessfl.learning import ExecutionPlan
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation

distributed = pytest.importorskip("distributed")

PLAN = ExecutionPlan("cpu", 1, 3)
UPLINKS = ("ideal", "ota", "digital", "secure_aggregation")
DP_SGD = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "sampling": "poisson"}
WAVELET = {"mechanism": "wavelet", "clip_domain": "weighted", "clip": 1.0, "noise_multiplier": 1.0}
LEARNING: dict[str, dict[str, Any]] = {
    "FedAvg": {},
    "FedProx": {"training.algorithm": {"name": "fedprox", "mu": 0.1}},
    "SCAFFOLD": {"training.algorithm.name": "scaffold"},
    "DP-SGD": {"training.privacy": DP_SGD},
    "wavelet": {"training.privacy": WAVELET},
}
PATIENCE_S = 120.0
LOOPBACK = "127.0.0.1:0"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of three workers in this process."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=LOOPBACK
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


def small(**changes: Any) -> Scenario:
    keys = {"rounds": 2, "clients.count": 10, "data.limit": 300, **changes}
    return wfl.load_scenario("quickstart", overrides=keys)


@pytest.fixture(scope="module")
def on_dask(client: Any) -> DaskWorkers:
    return dask(client)


@pytest.fixture(scope="module")
def on_processes() -> Iterator[local.LocalWorkers]:
    with local.local_workers(3, lambda: None) as workers:
        yield workers


@pytest.fixture(params=["on_dask", "on_processes"])
def workers(request: pytest.FixtureRequest) -> Workers:
    """Three workers, in a Dask cluster and as processes of this machine."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def dask(client: Any, check: Callable[[], None] = lambda: None) -> DaskWorkers:
    return DaskWorkers(client, "the cluster", check, patient=False)


def on(workers: Workers, **changes: Any) -> Callable[[Scenario, Any], BlocksElsewhere]:
    """What trains the blocks of a run, told with changes, on workers."""

    def blocks(scenario: Scenario, learner: Any) -> BlocksElsewhere:
        return BlocksElsewhere(workers, dataclasses.replace(RunOnWorkers.of(scenario, learner.population), **changes))

    return blocks


def ran(scenario: Scenario, workers: Workers | None = None) -> Simulation:
    simulation = build_simulation(scenario, PLAN, elsewhere=None if workers is None else on(workers))
    simulation.run(lambda *_: None)
    return simulation


def require_same(ours: Any, theirs: Any) -> None:
    """All that a checkpoint holds is the same, bit for bit, but the clock on the wall."""
    if isinstance(ours, Mapping):
        assert ours.keys() == theirs.keys()
        for name in ours.keys() - {"wall_time"}:
            require_same(ours[name], theirs[name])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            require_same(one, other)
    else:
        np.testing.assert_array_equal(ours, theirs)


CASES = [("ota", "SCAFFOLD"), ("digital", "DP-SGD"), ("secure_aggregation", "FedAvg")]


@pytest.mark.parametrize(
    ("uplink", "learning"),
    [
        pytest.param(uplink, name, marks=() if (uplink, name) in CASES else pytest.mark.slow)
        for uplink in UPLINKS
        for name in LEARNING
    ],
)
def test_workers_give_the_bits_of_one_process(workers: Workers, uplink: str, learning: str) -> None:
    kind = {} if uplink == "ota" else {"uplink": {"kind": uplink}}
    scenario = small(**kind, **LEARNING[learning])
    require_same(ran(scenario, workers).state.as_mapping(), ran(scenario).state.as_mapping())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("name", sorted(path.stem for path in (Path(__file__).parents[2] / "scenarios").glob("*.yaml")))
def test_every_shipped_scenario_has_the_same_bits_on_workers(
    workers: Workers, name: str, request: pytest.FixtureRequest
) -> None:
    """Compressed, personal, robust, asynchronous and with adaptive clips: whatever a checkpoint holds."""
    scenario = wfl.load_scenario(name, overrides={"rounds": 2})
    if scenario.data.dataset.name == "mnist":
        root = str(request.getfixturevalue("shared_data"))
        scenario = wfl.load_scenario(name, overrides={"rounds": 2, "data.dataset.root": root})
    require_same(ran(scenario, workers).state.as_mapping(), ran(scenario).state.as_mapping())


@pytest.mark.parametrize(("model", "chunk"), [("logistic", 25), ("mlp", 13)])
def test_a_round_has_the_same_blocks_however_many_threads_there_are(model: str, chunk: int) -> None:
    """Of 100 clients four blocks, or of a wide perceptron, of which four would take too much memory, twice as many."""
    sizes = {"hidden": [400, 200]} if model == "mlp" else {}
    scenario = small(**{"clients.count": 100, "data.limit": 1200, "model": {"name": model, **sizes}})
    chunks = set()
    for threads in (1, 2, 8):
        plan = choose_plan(scenario.compute, "cpu", threads, elsewhere=True)
        assert not plan.calibrates
        chunks.add(build_simulation(scenario, plan).deployment.learner.plan.chunk)
    assert chunks == {chunk}


@pytest.mark.parametrize(
    ("workers", "scheduler", "words"),
    [
        (2, "tcp://127.0.0.1:8786", "allowed: one of them"),
        (None, "slurm", "found no number; allowed: with "),
        (0, None, "found 0; allowed: a whole number of at least 1"),
        (True, None, "found True; allowed: a whole number"),
        (1.5, None, "found 1.5; allowed: a whole number"),
    ],
)
def test_what_says_two_things_or_nothing_is_refused(workers: Any, scheduler: str | None, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        check_workers(workers, scheduler)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InfeasibleError, match=r"scheduler.* needs distributed; .*pip install 'wirelessfl\[cluster\]'"):
        wfl.simulate(small(), tmp_path / "out", scheduler="tcp://127.0.0.1:9")
    assert not (tmp_path / "out" / "trace.h5").exists()


def test_a_scheduler_that_does_not_answer_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(InfeasibleError, match=r"no Dask scheduler answered at tcp://127\.0\.0\.1:9"):
        wfl.simulate(small(), tmp_path / "out", scheduler="tcp://127.0.0.1:9")
    assert not (tmp_path / "out" / "trace.h5").exists()


def test_a_cluster_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WORKER_PATIENCE_S", 0.3)
    monkeypatch.setattr("wirelessfl.cluster.dask_workers._LOOK_INTERVAL_S", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=LOOPBACK) as cluster,
        distributed.Client(cluster, set_as_default=False) as empty,
        pytest.raises(InfeasibleError, match=r"had no workers for 0\.3 s; start some with: dask worker"),
    ):
        ran(small(), dask(empty))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (
            {"versions": "wirelessfl 0"},
            InfeasibleError,
            "has wirelessfl .* with torch .*; allowed: wirelessfl 0",
        ),
        ({"data": {"data.dataset": "other"}}, DataError, r"data\.dataset: a worker has other data"),
        ({"sources": {"mine.py": "other"}}, ScenarioError, r"mine\.py: a worker has other code"),
    ],
)
def test_a_worker_with_other_software_or_data_trains_nothing(
    workers: Workers, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        build_simulation(small(), PLAN, elsewhere=on(workers, **change)).run(lambda *_: None)


def test_workers_give_up_data_of_runs_that_ended(client: Any) -> None:
    workers = dask(client)
    for seed in range(worker._MOST_RUNS + 1):
        ran(small(seed=seed, rounds=1), workers)
    assert len(worker._places) == worker._MOST_RUNS
    workers.forget()
    assert not worker._places


def test_an_interrupt_is_seen_while_a_block_is_waited_for(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    monkeypatch.setattr("wirelessfl.cluster.blocks.sum_part", lambda *_: time.sleep(2.0))

    def check() -> None:
        if time.monotonic() - began > 0.3:
            raise RunInterrupted("a signal")

    with pytest.raises(RunInterrupted):
        build_simulation(small(), PLAN, elsewhere=on(dask(client, check))).run(lambda *_: None)
    assert time.monotonic() - began < 1.8


PLUGIN = """
from wirelessfl.learning import SGD
class Mine(SGD):
    def __init__(self):
        super().__init__()
        object.__setattr__(self, "held", {held})
"""


def require_same_traces(ours: Path, theirs: Path) -> None:
    """All variables of two traces have the same bits, but the seconds that passed."""
    with h5py.File(ours / "trace.h5") as one, h5py.File(theirs / "trace.h5") as other:
        names: list[str] = []
        one.visititems(lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None)
        assert "round/test_accuracy" in names or any("accuracy" in name for name in names)
        for name in names:
            if not name.endswith("wall_time"):
                np.testing.assert_array_equal(one[name][()], other[name][()])


LONG = {"rounds": 6, "clients.count": 24, "training.epochs": 40, "compute.chunk": 3}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_killed_workers_lose_nothing(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once in the second round, with the only copies of the model, then one in each other round."""
    started: list[local.LocalWorkers] = []
    begin = local.LocalWorkers.__init__

    def noted(self: local.LocalWorkers, *arguments: Any) -> None:
        begin(self, *arguments)
        started.append(self)

    monkeypatch.setattr(local.LocalWorkers, "__init__", noted)
    monkeypatch.setattr(local, "_MOST_LOSSES", 20)
    killed: list[int] = []

    def kill(finished: Any) -> None:
        def soon() -> None:
            pids = started[0].pids[: None if finished.index == 1 else 1]
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed.extend(pids)

        if finished.index < LONG["rounds"]:
            threading.Timer(0.05, soon).start()

    scenario = small(**LONG)
    undisturbed = wfl.simulate(scenario, tmp_path / "here", threads=1, pictures=False)
    result = wfl.simulate(scenario, tmp_path / "there", threads=1, workers=workers, pictures=False, on_round=kill)
    require_same_traces(result.trace.parent, undisturbed.trace.parent)
    assert len(set(killed)) >= workers + 1
    assert not any(map(is_running, started[0].pids))


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_or_without_workers(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(wfl.scenario.dump_scenario(small(**{**LONG, "rounds": 150})))
    command = [sys.executable, "-m", "wirelessfl", "simulate", str(scenario), "--threads", "1", "--figures", "none"]
    whole = subprocess.run([*command, "--out", str(tmp_path / "whole"), "--quiet"], check=True)
    assert whole.returncode == 0
    out = ["--out", str(tmp_path / "cut")]
    for workers in (["--workers", "2"], ["--resume"], ["--workers", "1", "--resume"]):
        process = subprocess.Popen([*command, *workers, *out], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE_S
        before = written(tmp_path / "cut")
        while written(tmp_path / "cut") == before:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, words
        assert "Traceback" not in words and "continue with --resume" in words
    subprocess.run([*command, "--resume", "--workers", "3", *out, "--quiet"], check=True)
    require_same_traces(tmp_path / "cut", tmp_path / "whole")


def written(folder: Path) -> int:
    """When the checkpoint of a run was written last, in nanoseconds; the trace itself is locked."""
    try:
        return RunFolder(folder).checkpoint.stat().st_mtime_ns
    except OSError:
        return 0


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run_and_it_goes_on_elsewhere(tmp_path: Path) -> None:
    run = small(**LONG)
    with scheduler(tmp_path, workers=2) as (address, processes):

        def kill(finished: Any) -> None:
            if finished.index == 2:
                processes[0].kill()

        with pytest.raises(InfeasibleError, match=f"the connection with the scheduler {address} is lost"):
            wfl.simulate(run, tmp_path / "cut", threads=1, scheduler=address, pictures=False, on_round=kill)
    cut = wfl.simulate(run, tmp_path / "cut", resume=True, workers=1, pictures=False)
    whole = wfl.simulate(run, tmp_path / "whole", threads=1, pictures=False)
    require_same_traces(cut.trace.parent, whole.trace.parent)


@pytest.mark.slow
def test_workers_elsewhere_find_an_optimizer_of_the_users_own(tmp_path: Path) -> None:
    """The workers start in another folder; an object with a lock in it is refused before anything is written."""
    (tmp_path / "own").mkdir()
    module = tmp_path / "own" / "workers_optimizer.py"
    module.write_text(PLUGIN.format(held="None"))
    keys = {"training.optimizer": {"name": "workers_optimizer:Mine", "lr": 0.05}, "rounds": 2, "data.limit": 300}
    plain = wfl.scenario.dump_scenario(small(rounds=2))
    (tmp_path / "own" / "mine.yaml").write_text(plain)
    command = [sys.executable, "-m", "wirelessfl", "simulate", str(tmp_path / "own" / "mine.yaml"), "--allow-plugins"]
    command += ["--figures", "none", "--quiet", "--threads", "1", "--set", "compute.chunk=3"]
    command += ["--set", f"training.optimizer={json.dumps(keys['training.optimizer'])}"]
    with scheduler(tmp_path, workers=1) as (address, _):
        for out, more in (("here", []), ("there", ["--scheduler", address])):
            told = subprocess.run([*command, "--out", str(tmp_path / out), *more], capture_output=True, text=True)
            assert told.returncode == 0, told.stderr
        require_same_traces(tmp_path / "there", tmp_path / "here")
        module.write_text("import threading\n" + PLUGIN.format(held="threading.Lock()"))
        refused = [*command, "--out", str(tmp_path / "refused"), "--scheduler", address]
        told = subprocess.run(refused, capture_output=True, text=True)
    assert told.returncode == 2 and "training.optimizer.name: its object cannot be sent to workers" in told.stderr
    assert not (tmp_path / "refused" / "trace.h5").exists()
