"""Code from outside that was edited: no run goes on or answers with it, studies compute again, a trace verifies."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import h5py
import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.study.studies import InlineWorkers
from wirelessfl import plugins
from wirelessfl.cli import main
from wirelessfl.errors import RunInterrupted
from wirelessfl.scenario.scenario import TRUSTED_MODULES
from wirelessfl.simulation import FinishedRound
from wirelessfl.study import load_study, runner
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.local import decode, encode
from wirelessfl.study.runner import make_task
from wirelessfl.study.task import claim_folder, run_task
from wirelessfl.trace import recorded_sources

LAW = """import numpy as np
from edited_scale import K
class Law:
    def draw(self, stream):
        return K * np.exp(2j * np.pi * stream.uniform(1)[:, 0])
"""
SCENARIO = """name: edited
rounds: 2
data: {limit: 120, partition: {scheme: iid}}
model: {name: mlp, hidden: [4]}
clients: {count: 4}
training: {algorithm: {name: fedavg}, epochs: 1}
channel: {fading: {model: "edited_law:Law"}}
uplink: {kind: over_the_air}
"""
STUDY = "base: edited.yaml\ngrid: {channel.fading.model: [static, 'edited_law:Law']}\nseeds: 1\n"
Start = Callable[..., Result]
pytestmark = [
    pytest.mark.filterwarnings("always::wirelessfl.errors.SourceWarning"),
    pytest.mark.usefixtures("undrawn"),
]


def forget() -> None:
    """A new process would know none of these modules."""
    for name in [name for name in sys.modules if name.startswith("edited_")]:
        del sys.modules[name]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A command in a folder, in this process, as if it were a new one."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # edits here take less than a second
    monkeypatch.setattr(plugins.blame, "_loaded", {})

    def in_this_process(folder: Path, *arguments: str) -> Result:
        monkeypatch.setattr(plugins.places, "_searched", [])
        monkeypatch.chdir(folder)
        forget()
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    yield in_this_process
    forget()


def write(folder: Path, scale: float = 1.0) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "edited_law.py").write_text(LAW, encoding="utf-8")
    (folder / "edited_scale.py").write_text(f"K = {scale}\n", encoding="utf-8")
    (folder / "edited.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder


SIMULATE = ("simulate", "edited.yaml", "--quiet", "--device", "cpu", "--threads", "1", "--out", "run")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, a fading law in two modules, and their run."""
    folder = write(tmp_path_factory.mktemp("edited") / "own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins.places, "_searched", [])
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.chdir(folder)
        forget()
        wfl.simulate(wfl.load_scenario("edited.yaml"), "run", device="cpu", threads=1, pictures=False)
    return folder


@pytest.fixture
def own(recorded: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(recorded, tmp_path / "own"))


@pytest.mark.slow
def test_a_complete_run_of_other_sources_is_no_answer(own: Path, start: Start) -> None:
    assert start(own, *SIMULATE, "--resume").exit_code == 0
    write(own, scale=0.5)
    refused = start(own, *SIMULATE, "--resume")
    assert refused.exit_code == 2
    assert re.search(r"run/trace.h5: was recorded with other code from outside", refused.stderr), refused.stderr
    assert re.search(r"\n  edited_scale.py \(SHA-256 \w{12} -> \w{12}\)\n", refused.stderr)
    assert "edited_law.py" not in refused.stderr
    write(own)
    assert start(own, *SIMULATE, "--resume").exit_code == 0
    (own / "run" / "trace.h5").write_bytes(without(own / "run" / "trace.h5", "sources", "sources_digest"))
    unknown = start(own, *SIMULATE, "--resume")
    assert unknown.exit_code == 2 and "the trace holds none of it" in unknown.stderr


def test_an_unfinished_run_is_not_continued_with_other_sources(tmp_path: Path, start: Start) -> None:
    own = write(tmp_path / "own")
    start(own, "validate", "edited.yaml")  # makes it the current folder

    def stop(this: FinishedRound) -> None:
        raise RunInterrupted

    with suppress(RunInterrupted):
        scenario = wfl.load_scenario("edited.yaml")
        wfl.simulate(scenario, "run", device="cpu", threads=1, pictures=False, on_round=stop)
    write(own, scale=0.5)
    refused = start(own, *SIMULATE, "--resume")
    assert refused.exit_code == 2 and "edited_scale.py" in refused.stderr
    write(own)
    assert start(own, *SIMULATE, "--resume").exit_code == 0


def without(trace: Path, *attributes: str) -> bytes:
    """A trace without some of its attributes."""
    copy = trace.with_name("copy.h5")
    shutil.copy(trace, copy)
    with h5py.File(copy, "r+") as file:
        for name in attributes:
            del file.attrs[name]
    content = copy.read_bytes()
    copy.unlink()
    return content


VERIFY = ("replay", "run/trace.h5", "--verify", "--json", "--quiet")


@pytest.mark.slow
def test_a_co_author_verifies_with_the_sources_of_the_trace(own: Path, tmp_path: Path, start: Start) -> None:
    (tmp_path / "theirs").mkdir()
    shutil.copytree(own / "run", tmp_path / "theirs" / "run")
    refused = start(tmp_path / "theirs", *VERIFY)
    assert refused.exit_code == 2 and "--allow-plugins" in refused.stderr
    verified = start(tmp_path / "theirs", *VERIFY, "--allow-plugins")
    assert verified.exit_code == 0, verified.stderr
    (note,) = json.loads(verified.stdout)["verified"]["notes"]
    assert "edited_law.py" in note and "what runs are the sources of the trace" in note
    assert not [name for name in sys.modules if name.startswith("edited_")]


def test_an_edited_module_does_not_decide_what_a_trace_says(
    own: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = start(own, *VERIFY, "--allow-plugins")
    assert same.exit_code == 0 and json.loads(same.stdout)["verified"]["notes"] == []
    write(own, scale=0.5)
    verified = start(own, *VERIFY, "--allow-plugins")
    assert verified.exit_code == 0, verified.stderr
    assert re.search(r"Warning: .*is not here as it was recorded: edited_scale.py", verified.stderr)
    monkeypatch.setenv(TRUSTED_MODULES, "edited_law")
    refused = start(own, *VERIFY)  # who trusts the module here has not read that of the trace
    assert refused.exit_code == 4 and "edited_scale.py" in refused.stderr
    write(own)
    assert start(own, *VERIFY).exit_code == 0


def test_a_trace_without_sources_is_verified_with_those_here(own: Path, start: Start) -> None:
    (own / "run" / "trace.h5").write_bytes(without(own / "run" / "trace.h5", "sources", "sources_digest"))
    verified = start(own, *VERIFY, "--allow-plugins")
    assert verified.exit_code == 0 and "the trace holds no sources" in verified.stderr


def test_altered_sources_of_a_trace_do_not_run(own: Path, tmp_path: Path, start: Start) -> None:
    trace = own / "run" / "trace.h5"
    sources = recorded_sources(trace)
    assert sources is not None
    evil = sources.text.replace("import numpy as np", "open('ran', 'w')\\nimport numpy as np")
    with h5py.File(trace, "r+") as file:
        file.attrs["sources"] = evil
    for arguments in (VERIFY, ("replay", "run/trace.h5"), ("report", "run")):
        start(own, *arguments)
    refused = start(own, *VERIFY, "--allow-plugins")
    assert refused.exit_code == 2 and "the sources it holds are not those it was begun with" in refused.stderr
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.slow
def test_another_policy_is_replayed_on_the_recorded_sources(own: Path, start: Start) -> None:
    change = ("replay", "run/trace.h5", "--set", "uplink.snr_db=5", "--json", "--quiet", "--allow-plugins")
    here = start(own, *change)
    write(own, scale=0.5)
    recorded = start(own, *change)
    assert recorded.exit_code == 0, recorded.stderr
    assert "what runs are the sources of the trace" in recorded.stderr
    assert json.loads(here.stdout)["paired"]["rows"] == json.loads(recorded.stdout)["paired"]["rows"]


@pytest.mark.slow
def test_an_exception_in_a_replay_is_told_with_its_line(own: Path, start: Start) -> None:
    text = "from wirelessfl.radio.inversion import FullPower\n\n\nclass Mine(FullPower):\n    def plan(self, *given):\n"
    (own / "edited_policy.py").write_text(f"{text}        return given[7]\n", encoding="utf-8")
    policy = "uplink.power_control={policy: 'edited_policy:Mine'}"
    failed = start(own, "replay", "run/trace.h5", "--set", policy, "--allow-plugins", "--quiet")
    assert failed.exit_code == 2
    assert "Error: edited_policy.py:6 in Mine.plan: IndexError: tuple index out of range" in failed.stderr


def test_ids_of_runs_go_by_their_sources(tmp_path: Path, start: Start) -> None:
    own = write(tmp_path / "own")

    def ids() -> list[str]:
        assert start(own, "validate", "edited.yaml").exit_code == 0
        forget()
        return [run.id for run in load_study("study.yaml").runs]

    before = ids()
    assert re.fullmatch(r"[0-9a-f]{16}", before[0]) and re.fullmatch(r"[0-9a-f]{16}-[0-9a-f]{12}", before[1])
    assert ids() == before
    write(own, scale=0.5)
    after = ids()
    assert (after[0], after[1][:17]) == (before[0], before[1][:17])
    assert after[1] != before[1]


def test_a_worker_refuses_what_the_study_did_not_begin_with(tmp_path: Path, start: Start) -> None:
    own = write(tmp_path / "own")
    assert start(own, "validate", "edited.yaml").exit_code == 0
    run = load_study("study.yaml").runs[1]
    write(own, scale=0.5)
    with claim_folder(tmp_path / "out") as claim:
        task = decode(encode(make_task(StudyFolder(tmp_path / "out"), claim, "cpu", 1, run)))
        forget()
        outcome = run_task(task, lambda progress: None)
    assert outcome.status == "failed"
    assert str(outcome.error).startswith("edited_scale.py: not the version with which the study began")


@pytest.mark.slow
def test_a_study_computes_edited_runs_again_and_keeps_the_others(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LocalWorkers", lambda *_: InlineWorkers())
    check_study(tmp_path, start)


@pytest.mark.slow
def test_two_workers_compute_edited_runs_again(tmp_path: Path, start: Start) -> None:
    check_study(tmp_path, start)


def check_study(tmp_path: Path, start: Start) -> None:
    def study(folder: Path, *options: str) -> tuple[dict[str, float], Result]:
        result = start(folder, "study", "study.yaml", "--workers", "2", "--out", "out", "--quiet", *options)
        assert result.exit_code == 0, result.stderr
        runs = json.loads((folder / "out" / "study.json").read_text(encoding="utf-8"))["runs"]
        return {run["run"]: run["summary"]["test_loss"] for run in runs}, result

    own = write(tmp_path / "own")
    before, _ = study(own)
    write(own, scale=0.05)
    after, resumed = study(own, "--resume")
    fresh, _ = study(write(tmp_path / "fresh", scale=0.05))
    assert after == fresh
    assert len(set(before) & set(after)) == 1
    told = r"Warning: out: sources .* changed \(edited_scale.py .*\): 1 of 2 runs are computed again, 1 do not depend"
    assert re.search(told, resumed.stderr), resumed.stderr
    again, untouched = study(own, "--resume")
    assert again == after and "Warning" not in untouched.stderr
