"""The public face: files of a run, resuming, interrupting, and what stands in the way."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.errors import (
    InfeasibleError,
    InputError,
    OutputError,
    PlanWarning,
    RunInterrupted,
    ScenarioError,
    TraceError,
)
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.learning.flat import INITIAL_MODEL, FlatModel
from wirelessfl.learning.models import mlp
from wirelessfl.scenario import dump_scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.streams import Streams
from wirelessfl.study import Outcome
from wirelessfl.summary import to_json

JAMMED = small(uplink__jammer={"epsilon": 1.0}, rounds=4, trace__models="every 2")


def recorded(path: Path) -> dict[str, Any]:
    """Every number in a trace except wall-clock time."""
    values: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and name != "wall_time":
            values[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return values


def assert_same_trace(one: Path, other: Path) -> None:
    """Bit for bit, wall-clock time aside."""
    left, right = recorded(one), recorded(other)
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert np.asarray(value).tobytes() == np.asarray(right[name]).tobytes(), name


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> wfl.Result:
    """An undisturbed run."""
    return wfl.simulate(JAMMED, tmp_path_factory.mktemp("runs") / "undisturbed", device="cpu", threads=1)


def test_the_files_of_a_run(finished: wfl.Result) -> None:
    names = {path.name for path in finished.folder.iterdir()}
    assert names == {"trace.h5", "checkpoint.bin", "scenario.yaml", "summary.json", "summary.png", "timeline.png"}
    assert (finished.folder / "scenario.yaml").read_text(encoding="utf-8") == dump_scenario(JAMMED)
    assert wfl.load_scenario(finished.folder / "scenario.yaml") == JAMMED
    assert finished.picture.read_bytes().startswith(b"\x89PNG")
    assert finished.timeline.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_drawn_where_they_are_wanted(tmp_path: Path) -> None:
    result = wfl.simulate(small(rounds=1), tmp_path, threads=1, pictures=False)
    assert not result.picture.exists() and not result.timeline.exists()
    assert wfl.simulate(small(rounds=1), tmp_path, resume=True).picture.exists()


def test_the_summary_says_what_the_trace_says(finished: wfl.Result) -> None:
    on_disk = json.loads((finished.folder / "summary.json").read_text(encoding="utf-8"))
    with wfl.open_trace(finished.trace) as trace:
        assert on_disk["test_accuracy"] == trace["test_accuracy"].values[-1]
        assert on_disk["epsilon_accounted"] == trace["epsilon_accounted"].values[-1]
        assert on_disk["airtime"] == pytest.approx(float(trace["airtime"].sum()))
        assert on_disk["rounds"] == trace.sizes["round"] == 4
        assert on_disk["status"] == trace.attrs["status"] == "complete"
        assert on_disk["samples"] == int(trace["samples"].sum()) == 120
    assert on_disk["d"] == 610 and on_disk["energy"] is None
    assert on_disk["epsilon_published"] == pytest.approx(1.0)
    assert on_disk["why_different"] and all(isinstance(reason, str) for reason in on_disk["why_different"])


def test_the_trace_opens_in_xarray(finished: wfl.Result) -> None:
    with xr.open_dataset(finished.trace, engine="h5netcdf") as trace:
        assert dict(trace.sizes) == {"round": 4, "slot": 6, "client": 6}
        assert np.isfinite(trace["backoff"].values).all()
        assert trace["channel_re"].dims == ("round", "slot")
        assert all("long_name" in variable.attrs for variable in trace.data_vars.values())
    with h5py.File(finished.trace) as file:
        assert list(file["model/round"][()]) == [2, 4, 4] or list(file["model/round"][()]) == [2, 4]


@pytest.mark.parametrize("models", ["none", "final", "every 2"])
def test_a_trace_that_keeps_models_has_the_one_before_round_1(models: str, tmp_path: Path) -> None:
    trace = wfl.simulate(small(rounds=1, trace__models=models), tmp_path / "run", pictures=False).trace
    kept = wfl.read_group(trace, "model")["initial"].to_numpy()
    scenario, module = small(), lambda: mlp((64,), 10, hidden=(8,))
    expected = FlatModel(module, (64,), 10).initial(Streams(scenario.seed).torch_seed(INITIAL_MODEL)).numpy()
    assert np.array_equal(kept, np.full(610, np.nan) if models == "none" else expected, equal_nan=True)


def test_a_result_as_a_table_and_in_a_notebook(finished: wfl.Result) -> None:
    table = finished.to_dataframe()
    assert table.index.name == "round" and table.index.tolist() == [1, 2, 3, 4]
    assert table["test_accuracy"].iloc[-1] == finished.summary["test_accuracy"]
    assert "channel_re" not in table and "jammer_gain" in table
    shown = finished._repr_html_()
    assert f"{finished.summary['test_accuracy']:.1%}" in shown and "data:image/png;base64," in shown
    named = wfl.Result(finished.folder, {**finished.summary, "name": "<b>"})
    unbounded = wfl.Result(finished.folder, {**finished.summary, "epsilon_accounted": math.inf})
    assert "<td>∞ at δ" in unbounded._repr_html_()
    assert "&lt;b&gt;" in named._repr_html_() and "<b>" not in named._repr_html_()


def test_the_recorded_plan_repeats_bit_for_bit(finished: wfl.Result, tmp_path: Path) -> None:
    again = wfl.simulate(JAMMED, tmp_path / "again", device="cpu", threads=1, pictures=False)
    assert_same_trace(finished.trace, again.trace)


class StopAfter:
    """Raises Ctrl-C at the end of a round."""

    def __init__(self, round_index: int) -> None:
        self.round_index = round_index

    def __call__(self, this: FinishedRound) -> None:
        if this.index == self.round_index:
            signal.raise_signal(signal.SIGINT)


def test_an_interrupted_run_resumes_to_the_same_bits(finished: wfl.Result, tmp_path: Path) -> None:
    with pytest.raises(RunInterrupted, match="after round 2 of 4"):
        wfl.simulate(JAMMED, tmp_path / "x", device="cpu", threads=1, on_round=StopAfter(2), pictures=False)
    with wfl.open_trace(tmp_path / "x" / "trace.h5") as trace:
        assert trace.attrs["status"] == "interrupted" and trace.sizes["round"] == 2
    resumed = wfl.simulate(JAMMED, tmp_path / "x", resume=True, pictures=False)
    assert_same_trace(finished.trace, resumed.trace)


def test_an_interrupt_raised_by_a_callback_leaves_an_interrupted_run(tmp_path: Path) -> None:
    def stop(this: FinishedRound) -> None:
        raise KeyboardInterrupt

    with pytest.raises(RunInterrupted, match="after round 1 of 4"):
        wfl.simulate(JAMMED, tmp_path / "x", on_round=stop, pictures=False)
    with wfl.open_trace(tmp_path / "x" / "trace.h5") as trace:
        assert trace.attrs["status"] == "interrupted" and trace.sizes["round"] == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"overrides": None}, "overrides: found None; allowed: a mapping, or a list of KEY=VALUE texts"),
        ({"overrides": 5}, "overrides: found 5; allowed: a mapping"),
        ({"out": 5}, "out: found 5; allowed: the path of a folder"),
        ({"on_round": 5}, "on_round: found 5; allowed: a function of a round"),
        ({"inputs": "abc"}, "inputs: found 'abc'; allowed: several paths of files"),
        ({"inputs": None}, "inputs: found None; allowed: several paths of files"),
        ({"scheduler": 5}, "scheduler: found 5; allowed: an address, or slurm"),
    ],
)
def test_arguments_of_wrong_types_are_refused_in_words(wrong: dict[str, Any], words: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"out": tmp_path / "x", "pictures": False} | wrong
    with pytest.raises(InputError, match=words):
        wfl.simulate(JAMMED, **arguments)
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError, match="path: found None; allowed: the folder of a run"):
        wfl.open_run(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [1, None, b"rounds=1"])
def test_a_list_of_overrides_holds_texts(entry: Any) -> None:
    with pytest.raises(ScenarioError, match="allowed: texts KEY=VALUE"):
        wfl.load_scenario("quickstart", [entry])


def test_resuming_a_complete_run_only_summarises_it(finished: wfl.Result) -> None:
    before = finished.trace.read_bytes()
    again = wfl.simulate(JAMMED, finished.folder, resume=True, pictures=False)
    assert to_json(again.summary) == to_json(finished.summary)
    assert finished.trace.read_bytes() == before


def test_resuming_where_there_is_nothing_starts(finished: wfl.Result, tmp_path: Path) -> None:
    started = wfl.simulate(JAMMED, tmp_path / "new", device="cpu", threads=1, resume=True, pictures=False)
    assert_same_trace(finished.trace, started.trace)


def test_another_scenario_is_not_resumed(finished: wfl.Result) -> None:
    other = small(uplink__jammer={"epsilon": 2.0}, rounds=4, trace__models="every 2")
    with pytest.raises(ScenarioError, match=r"uplink\.jammer\.epsilon: 1\.0 -> 2\.0"):
        wfl.simulate(other, finished.folder, resume=True, pictures=False)


def test_runs_in_several_threads_of_one_process_are_those_of_one_thread(finished: wfl.Result, tmp_path: Path) -> None:
    def run(name: str) -> Path:
        return wfl.simulate(JAMMED, tmp_path / name, device="cpu", threads=1, pictures=False).trace

    with ThreadPoolExecutor(4) as pool:
        traces = list(pool.map(run, "abcd"))
    for trace in traces:
        assert_same_trace(trace, finished.trace)


def test_runs_are_resumed_in_several_threads_of_one_process(finished: wfl.Result, tmp_path: Path) -> None:
    def run(name: str) -> Path:
        return wfl.simulate(JAMMED, tmp_path / name, device="cpu", threads=1, resume=True, pictures=False).trace

    for name in "abcd":
        with pytest.raises(RunInterrupted):
            wfl.simulate(JAMMED, tmp_path / name, device="cpu", threads=1, on_round=StopAfter(2), pictures=False)
    with ThreadPoolExecutor(4) as pool:
        traces = list(pool.map(run, "abcd"))
    for trace in traces:
        assert_same_trace(trace, finished.trace)


def test_a_trace_is_checked_unless_this_process_has_written_it(
    finished: wfl.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.h5"
    shutil.copy(finished.trace, other)
    with h5py.File(other, "r+") as file:
        file.attrs["seed"] = "seven"

    def replace(this: FinishedRound) -> None:
        if this.index == JAMMED.rounds:
            other.rename(tmp_path / "replaced" / "trace.h5")

    with pytest.raises(TraceError, match="attribute seed"):
        wfl.simulate(JAMMED, tmp_path / "replaced", device="cpu", threads=1, pictures=False, on_round=replace)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("wirelessfl.trace.opening.watched_from_any_thread", refuse)
    wfl.simulate(JAMMED, tmp_path / "own", device="cpu", threads=1, pictures=False)
    with pytest.raises(AssertionError):
        wfl.open_trace(tmp_path / "replaced" / "trace.h5")


def test_a_run_goes_on_with_the_threads_it_began_with(tmp_path: Path) -> None:
    def stop(_: object) -> None:
        raise RunInterrupted("enough")

    scenario = small(rounds=2)
    with pytest.raises(RunInterrupted):
        wfl.simulate(scenario, tmp_path, device="cpu", threads=1, on_round=stop, pictures=False)
    with pytest.warns(PlanWarning, match=r"\(device cpu, threads 1\), not with threads 2"):
        result = wfl.simulate(scenario, tmp_path, threads=2, resume=True, pictures=False)
    with wfl.open_trace(result.trace) as trace:
        assert json.loads(trace.attrs["plan"])["threads"] == 1 and trace.sizes["round"] == 2


@pytest.mark.parametrize("plan", [None, '{"device": "cpu"}', '{"device": "cpu", "threads": "1", "chunk": 5}'])
def test_a_run_whose_plan_is_not_whole_does_not_go_on(plan: str | None, finished: wfl.Result, tmp_path: Path) -> None:
    for name in ("trace.h5", "checkpoint.bin"):
        shutil.copy(finished.folder / name, tmp_path)
    with h5py.File(tmp_path / "trace.h5", "r+") as file:
        file.attrs["status"] = "interrupted"
        del file.attrs["plan"]
        if plan is not None:
            file.attrs["plan"] = plan
    with pytest.raises(InfeasibleError, match="cannot"):
        wfl.simulate(JAMMED, tmp_path, resume=True, pictures=False)


def test_a_run_is_not_replaced_unless_asked(finished: wfl.Result, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="overwrite=True to replace it, or out= for another folder"):
        wfl.simulate(JAMMED, finished.folder, pictures=False)
    shorter = small(rounds=1)
    wfl.simulate(JAMMED, tmp_path / "x", device="cpu", pictures=False)
    replaced = wfl.simulate(shorter, tmp_path / "x", device="cpu", overwrite=True, pictures=False)
    assert replaced.summary["rounds"] == 1


def test_what_cannot_be_built_replaces_nothing(finished: wfl.Result, tmp_path: Path) -> None:
    kept = wfl.simulate(small(rounds=1), tmp_path / "x", device="cpu", pictures=False)
    before = kept.trace.read_bytes()
    with pytest.raises(ScenarioError):
        wfl.simulate(small(model={"name": "no_such_module:build"}), tmp_path / "x", overwrite=True, pictures=False)
    assert kept.trace.read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "truncated", "foreign"])
def test_a_damaged_trace_is_named(damage: str, tmp_path: Path, finished: wfl.Result) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    whole = finished.trace.read_bytes()
    content = {"empty": b"", "truncated": whole[: len(whole) // 3], "foreign": b"no HDF5 at all" * 100}[damage]
    (folder / "trace.h5").write_bytes(content)
    with pytest.raises(TraceError, match=r"trace\.h5"):
        wfl.simulate(JAMMED, folder, resume=True, pictures=False)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunInterrupted):
        wfl.simulate(JAMMED, tmp_path / "x", device="cpu", on_round=StopAfter(1), pictures=False)
    checkpoint = tmp_path / "x" / "checkpoint.bin"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-7])
    with pytest.raises(TraceError, match=r"checkpoint\.bin"):
        wfl.simulate(JAMMED, tmp_path / "x", resume=True, pictures=False)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        wfl.simulate(JAMMED, tmp_path / "x", device="cpu", pictures=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        wfl.simulate(JAMMED, tmp_path / "x", device="cpu", pictures=False)


def test_a_gpu_that_is_not_there() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InfeasibleError, match="cuda"):
        wfl.simulate(JAMMED, "never-written", device="cuda", pictures=False)


KILLED = """
import signal, sys
import wirelessfl as wfl
from wirelessfl.simulation import FinishedRound
from wirelessfl.study import Outcome
from wirelessfl.summary import to_json

def on_round(this: FinishedRound) -> None:
    print(this.index, flush=True)
    if this.index == 3:
        signal.pause()  # killed here, after the commit; a signal that is handled ends the pause

scenario = wfl.load_scenario(sys.argv[1])
wfl.simulate(scenario, sys.argv[2], device="cpu", threads=1, on_round=on_round, pictures=False)
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGTERM])
def test_a_killed_run_loses_no_finished_round(finished: wfl.Result, tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "x"
    arguments = [sys.executable, "-c", KILLED, str(finished.folder / "scenario.yaml"), str(folder)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline().strip() != "3":
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.05)
        process.send_signal(number)
        process.wait(timeout=120)
    with wfl.open_trace(folder / "trace.h5") as trace:
        assert trace.sizes["round"] == 3
        assert trace.attrs["status"] == ("running" if number == signal.SIGKILL else "interrupted")
    resumed = wfl.simulate(JAMMED, folder, resume=True, pictures=False)
    assert_same_trace(finished.trace, resumed.trace)


def test_signals_are_handed_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with catch_interrupts() as interrupts:
        interrupts.check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(RunInterrupted):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupts_start_clean() -> None:
    Interrupts().check()


def test_all_exported_names_exist() -> None:
    for name in wfl.__all__:
        assert getattr(wfl, name) is not None
    assert set(wfl.__all__) <= set(dir(wfl))
    with pytest.raises(AttributeError, match="no attribute"):
        _ = wfl.no_such_name


@pytest.mark.slow
def test_a_million_registered_clients_leave_a_small_trace(tmp_path: Path) -> None:
    crowd = small(
        clients={"count": 1_000_000, "selection": {"scheme": "uniform", "count": 10}},
        data={"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}},
        rounds=2,
    )
    result = wfl.simulate(crowd, tmp_path / "crowd", device="cpu", pictures=False)
    # 2 rounds of 10 clients: no array over the registered ones (8 MB each) lies on disk.
    assert sum(path.stat().st_size for path in result.folder.iterdir()) < 2**21
    with wfl.open_trace(result.trace) as trace:
        assert trace.sizes["slot"] == 10 and trace.sizes["client"] <= 20


def test_the_population_of_a_scenario_is_that_of_its_runs(finished: wfl.Result) -> None:
    population = wfl.load_population(JAMMED)
    np.testing.assert_array_equal(population.sizes, finished.dataset["samples"].values)
    other = wfl.load_population(JAMMED.model_copy(update={"seed": JAMMED.seed + 1}))
    one, two = (each.shards(np.arange(1)).inputs.numpy() for each in (population, other))
    assert not np.array_equal(one, two)


def test_the_progress_of_a_study_is_a_line_for_each_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    design = wfl.load_study("snr-clients", {"seeds": 1})
    first, second = design.runs[:2]
    with wfl.study_progress(design) as on_message:
        on_message(Outcome(first.id, "complete", summary={"status": "complete", "test_accuracy": 0.5}))
        on_message(Outcome(second.id, "failed", "out of luck"))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0].startswith(
        f"complete: test accuracy 50.0% ({design.describe(first)}); 1 of {len(design.runs)} runs"
    )
    assert lines[1].startswith("failed: out of luck") and "1 failed" in lines[1]
    with wfl.study_progress(design, quiet=True) as on_message:
        on_message(Outcome(first.id, "failed", "unheard"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was_found(enabled: bool, tmp_path: Path) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        seen: list[int] = []
        wfl.simulate(
            small(rounds=1), tmp_path / "run", pictures=False, on_round=lambda _: seen.append(gc.get_freeze_count())
        )
        assert seen[0] > 0 == gc.get_freeze_count()
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
