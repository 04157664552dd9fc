"""A checkpoint continues its own run under its own numbers; anything else is refused, and nothing on disk changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl import cli
from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.errors import RunInterrupted, TraceError, VersionWarning
from wirelessfl.scenario import Scenario, dump_scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import RunIdentity, load_checkpoint, read_attributes, save_checkpoint
from wirelessfl.trace.checkpoint import _start_of_body

ROUNDS, STOP = 4, 2
KEYS: dict[str, Any] = {
    "uplink__jammer": {"epsilon": 1.0},
    "channel__correlation": {"model": "gauss_markov", "doppler_hz": 10.0},
}


def scenario(seed: int = 11) -> Scenario:
    return small(rounds=ROUNDS, seed=seed, **KEYS)


def run(folder: Path, seed: int = 11, *, resume: bool = False) -> None:
    wfl.simulate(scenario(seed), folder, device="cpu", threads=1, resume=resume, pictures=False)


def stopped(folder: Path, seed: int = 11) -> Path:
    """A run that was stopped after two of its rounds."""

    def stop(this: FinishedRound) -> None:
        if this.index == STOP:
            raise RunInterrupted

    with suppress(RunInterrupted):
        wfl.simulate(scenario(seed), folder, device="cpu", threads=1, pictures=False, on_round=stop)
    return folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stopped(tmp_path_factory.mktemp("stopped") / "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be tampered with."""
    return Path(shutil.copytree(original, tmp_path / "run"))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_refused(folder: Path, words: str) -> None:
    """Exit code 2 with these words and a way out, and every byte as it was."""
    before = content(folder)
    with pytest.raises(TraceError, match=words):
        run(folder, resume=True)
    assert content(folder) == before
    (folder.parent / "scenario.yaml").write_text(dump_scenario(scenario()), encoding="utf-8")
    arguments = ["simulate", str(folder.parent / "scenario.yaml"), "--resume", "--quiet", "--out", str(folder)]
    answer = CliRunner().invoke(cli.main, arguments)
    assert answer.exit_code == 2, answer.output
    assert "--overwrite" in answer.stderr and "Traceback" not in answer.output
    assert content(folder) == before


def change(folder: Path, **attributes: Any) -> None:
    with h5py.File(folder / "trace.h5", "r+") as file:
        for name, value in attributes.items():
            if value is None:
                del file.attrs[name]
            else:
                file.attrs[name] = value


def test_trace_and_checkpoint_carry_one_identity(folder: Path) -> None:
    attributes = read_attributes(folder / "trace.h5")
    assert attributes["stream_version"] == STREAM_VERSION
    load_checkpoint(folder / "checkpoint.bin", RunIdentity.of(attributes))
    again = stopped(folder.parent / "again")
    assert read_attributes(again / "trace.h5")["run_id"] != attributes["run_id"]
    assert read_attributes(again / "trace.h5")["scenario_digest"] == attributes["scenario_digest"]


def test_the_rest_has_the_bits_of_an_undisturbed_run(folder: Path, whole: Path) -> None:
    run(folder, resume=True)
    assert compare_traces(folder / "trace.h5", whole / "trace.h5", 1, ROUNDS).difference is None


@pytest.mark.parametrize("seed", [11, 12], ids=["another run of the scenario", "another seed"])
def test_the_checkpoint_of_another_run(seed: int, folder: Path) -> None:
    other = stopped(folder.parent / "other", seed)
    shutil.copy(other / "checkpoint.bin", folder / "checkpoint.bin")
    check_refused(folder, "checkpoint of another run than the trace beside it \\(run id")


@pytest.mark.slow
def test_a_trace_from_before_run_ids_is_read_and_not_continued(folder: Path) -> None:
    change(folder, run_id=None, scenario_digest=None, stream_version=None)
    check_refused(folder, "has no run id .* can be read and reported, but not continued")
    for arguments in (["replay", str(folder / "trace.h5"), "--json"], ["report", str(folder / "trace.h5")]):
        answer = CliRunner().invoke(cli.main, [*arguments, "--out", str(folder.parent / "page.html")])
        assert answer.exit_code == 0, answer.output


def test_a_complete_run_from_before_run_ids_is_summarised(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    change(folder, run_id=None, scenario_digest=None, stream_version=None)
    run(folder, resume=True)


def test_other_streams_are_refused(folder: Path) -> None:
    change(folder, stream_version=STREAM_VERSION + 1)
    check_refused(folder, f"stream version {STREAM_VERSION + 1} .* here is {STREAM_VERSION} .* other numbers")


def test_another_package_version_warns_and_goes_on(folder: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelessfl.version.VERSION", "9.9")
    with pytest.warns(VersionWarning, match=r"begun with wirelessfl .*, continued with 9\.9"):
        run(folder, resume=True)
    assert compare_traces(folder / "trace.h5", whole / "trace.h5", 1, ROUNDS).difference is None


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"scenario_digest": "0" * 64}, "scenario it holds is not the one it was begun with"),
        ({"run_id": 7}, "attribute run_id: int"),
        ({"run_id": "f" * 32}, "another run than the trace"),
        ({"stream_version": "one"}, "attribute stream_version: str"),
        ({"stream_version": None}, "attributes of its identity"),
        ({"package_version": None}, "no attribute package_version"),
    ],
    ids=str,
)
def test_a_trace_with_another_identity(attributes: dict[str, Any], words: str, folder: Path) -> None:
    change(folder, **attributes)
    check_refused(folder, words)


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.__delitem__(name)


def _with(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.__setitem__(name, value)


def _memory(state: dict[str, Any]) -> dict[str, Any]:
    """What the simulation remembers of the channels' past."""
    memory: dict[str, Any] = next(part for part in state["memories"].values() if "nodes" in part)
    return memory


NONSENSE: dict[str, Callable[[dict[str, Any]], None]] = {
    "a missing part": _without("clock"),
    "an unknown part": _with("weather", 1),
    "text for a number": _with("clock", "noon"),
    "a number for text": _with("release_settings", {"x": "y"}),
    "a truth value for a number": _with("round_index", True),
    "a negative round": _with("round_index", -2),
    "round zero": _with("round_index", 0),
    "a round to come": _with("round_index", ROUNDS),
    "an earlier round": _with("round_index", 1),
    "another time": _with("clock", 5),
    "another number of steps": _with("model_version", 7),
    "a model of another size": _with("parameters", np.zeros(3, dtype=np.float32)),
    "a model of another type": _with("parameters", np.zeros(3)),
    "batteries where there are none": _with("battery_used_j", np.zeros(6)),
    "a server memory": _with("server_memory", {"momentum": np.zeros(3, dtype=np.float32)}),
    "a memory of a server optimizer": _with("optimizer_memory", {"velocity": np.zeros(3, dtype=np.float32)}),
    "rows of clients": _with("client_rows", {"client": np.zeros(1, dtype=np.int64), "control": np.zeros((1, 3))}),
    "rows of clients as text": _with("client_rows", {"client": "all"}),
    "an empty ledger": _with("ledger", {"clients": np.zeros(0)}),
    "a ledger of text": _with("ledger", {"clients": "all"}),
    "no memories": _with("memories", {}),
    "memories of text": _with("memories", {"fading": "none"}),
    "a memory with a row too few": lambda state: _memory(state).update(nodes=np.zeros(1, dtype=np.int64)),
    "a memory of nobody": lambda state: _memory(state).__delitem__("nodes"),
}


@pytest.mark.parametrize("name", rest_slow(NONSENSE, fast=8))
def test_nonsense_behind_a_valid_checksum(name: str, folder: Path) -> None:
    identity = RunIdentity.of(read_attributes(folder / "trace.h5"))
    state = load_checkpoint(folder / "checkpoint.bin", identity)
    NONSENSE[name](state)
    save_checkpoint(folder / "checkpoint.bin", state, identity)
    check_refused(folder, "checkpoint")


@pytest.mark.slow
def test_what_is_no_tree_behind_a_valid_checksum(folder: Path) -> None:
    path = folder / "checkpoint.bin"
    for tree in (
        b"",
        b"null",
        b"[1]",
        b'{"map": {}}',
        b'{"map": 7}',
        b'{"map": {"run": {"map": {}}, "state": {"map": {}}}}',
        b'{"map": {"run": {"int": "zz"}}}',
        b'{"map": {"run": {"array": ["<f8", [1000000000000], 0]}}}',
        b'{"map": {"run": {"array": ["<f8", [-1], 0]}}}',
        b'{"map": {"run": {"array": ["O", [1], 0]}}}',
        b'{"map": {"run": {"float": "00"}}}',
        b'{"what": 1}',
        b"[" * 100_000,
    ):
        body = len(tree).to_bytes(8, "little") + tree
        path.write_bytes(_start_of_body(body) + body)
        check_refused(folder, "its checksum is right, but its content is not a state of a run")
