"""Where commands write: over no input, into no folder of the user's, and one process at a time."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.trace.traces import header
from wirelessfl import outputs
from wirelessfl.analysis.replay import paired
from wirelessfl.analysis.replay.export import Format
from wirelessfl.cli import main
from wirelessfl.errors import OutputError, OutputWarning
from wirelessfl.folder import RunFolder
from wirelessfl.outputs import RUN_LOCK, lock_folder
from wirelessfl.study.local import LocalWorkers
from wirelessfl.trace import CheckpointWriter, RunIdentity, TraceWriter

pytestmark = pytest.mark.usefixtures("undrawn")

SCENARIO = """\
name: small
seed: 3
rounds: 2
data: {limit: 60}
clients: {count: 3}
model: {name: logistic}
training: {epochs: 1}
"""
STUDY = "name: pair\nbase: {base}\ngrid: {{uplink.snr_db: [0, 5]}}\nseeds: 1\n"


def invoke(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(result: Result, *words: str) -> None:
    """One message with these words, exit code 2, and no traceback."""
    assert result.exit_code == 2, (result.output, result.exception)
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A folder of the user's with nothing but a scenario."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    return folder / "scenario.yaml"


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a complete run; look, do not touch."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    wfl.simulate(wfl.load_scenario(folder / "s.yaml"), folder / "out", device="cpu", threads=1, pictures=False)
    return folder / "out"


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    """The folder of a complete run, to be touched."""
    folder = tmp_path / "copied"
    folder.mkdir()
    for file in run.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def _same(scenario: Path) -> Path:
    return scenario.parent


def _dots(scenario: Path) -> Path:
    (scenario.parent / "below").mkdir()
    return scenario.parent / "below" / ".."


def _linked_folder(scenario: Path) -> Path:
    link = scenario.parent.with_name("link")
    link.symlink_to(scenario.parent)
    return link


def _linked_file(scenario: Path) -> Path:
    folder = scenario.parent.with_name("other")
    folder.mkdir()
    (folder / "scenario.yaml").symlink_to(scenario)
    return folder


def _hard_link(scenario: Path) -> Path:
    folder = scenario.parent.with_name("other")
    folder.mkdir()
    os.link(scenario, folder / "summary.json")
    return folder


@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--resume",)])
@pytest.mark.parametrize("place", [_same, _dots, _linked_folder, _linked_file, _hard_link])
def test_a_scenario_is_never_written_over(
    place: Callable[[Path], Path], more: tuple[str, ...], scenario: Path, tmp_path: Path
) -> None:
    out = place(scenario)
    before = content(tmp_path)
    refused(invoke("simulate", scenario, "--out", out, *more), "scenario.yaml")
    assert content(tmp_path) == before


def test_the_scenario_of_a_run_is_an_input_too(copied: Path, run: Path) -> None:
    before = content(copied)
    refused(invoke("simulate", copied / "scenario.yaml", "--out", copied, "--overwrite"), "input of this command")
    assert content(copied) == before
    again = invoke("simulate", copied / "scenario.yaml", "--out", copied, "--resume", "--quiet")
    assert again.exit_code == 0, again.stderr
    assert (copied / "scenario.yaml").read_bytes() == before["scenario.yaml"]


def test_the_gains_of_a_recorded_run_are_an_input(copied: Path, scenario: Path) -> None:
    before = content(copied)
    recorded = ("--set", f"channel.fading={{model: recorded, file: {copied / 'trace.h5'}}}")
    refused(
        invoke("simulate", scenario, *recorded, "--out", copied, "--overwrite"), "trace.h5", "input of this command"
    )
    assert content(copied) == before


def test_a_scenario_that_the_user_edited_is_not_replaced(copied: Path) -> None:
    (copied / "scenario.yaml").write_text(SCENARIO + "# mine\n", encoding="utf-8")
    before = content(copied)
    with pytest.raises(OutputError, match=r"no run has written \(scenario\.yaml\)"):
        wfl.simulate(wfl.load_scenario("quickstart"), copied, overwrite=True, pictures=False)
    assert content(copied) == before


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_a_folder_with_other_files_is_refused(more: tuple[str, ...], scenario: Path, copied: Path) -> None:
    (copied / "thesis.tex").write_text("mine", encoding="utf-8")
    (scenario.parent / "thesis.tex").write_text("mine", encoding="utf-8")
    for out in (copied, scenario.parent):
        before = content(out)
        found = invoke("simulate", "quickstart", "--out", out, *more)
        refused(found, "thesis.tex" if more or out != copied else "holds a trace already")
        assert content(out) == before


@pytest.mark.slow
def test_a_run_is_replaced_with_what_commands_made_of_it(copied: Path, scenario: Path) -> None:
    assert invoke("report", copied).exit_code == 0
    assert invoke("replay", copied / "trace.h5", "--export", "csv").exit_code == 0
    (copied / ".partial-1-summary.png").write_bytes(b"half")  # of a killed process
    done = invoke("simulate", scenario, "--set", "rounds=1", "--out", copied, "--overwrite", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert json.loads((copied / "summary.json").read_text(encoding="utf-8"))["rounds"] == 1
    assert (copied / "report.html").exists() and (copied / "replay" / "rounds.csv").exists()
    assert not list(copied.glob(".partial*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "quickstart"),
        ("study", "snr-clients"),
        ("audit", "quickstart"),
        ("report", "RUN"),
        ("replay", "RUN/trace.h5", "--export", "csv"),
    ],
)
@pytest.mark.parametrize(
    ("out", "words"),
    [("", "empty name"), ("x" * 300, "name too long"), ("RUN/trace.h5/below", "")],
    ids=["empty", "long", "below-a-file"],
)
def test_a_place_that_is_none(out: str, words: str, arguments: tuple[str, ...], run: Path, tmp_path: Path) -> None:
    before = content(run)
    named = [argument.replace("RUN", str(run)) for argument in (*arguments, "--out", out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        result = invoke(*named)
    refused(result)
    assert words in result.stderr.lower()
    assert content(run) == before and not list(tmp_path.iterdir())


def test_an_empty_name_is_no_folder() -> None:
    refused(invoke("papers", "run", "ota-cross-layer-dp", "--out", ""), "empty name")
    with pytest.raises(wfl.errors.InputError, match="empty name"):
        wfl.simulate(wfl.load_scenario("quickstart"), "", pictures=False)


def test_a_study_begins_where_nothing_else_lies(scenario: Path, tmp_path: Path) -> None:
    study = scenario.with_name("study.yaml")
    study.write_text(STUDY.format(base="scenario.yaml"), encoding="utf-8")
    before = content(tmp_path)
    for more in ((), ("--resume",)):
        refused(invoke("study", study, "--out", study.parent, *more), "study.yaml", "input of this command")
        assert content(tmp_path) == before
    named = scenario.with_name("study.json")
    study.rename(named)
    before = content(tmp_path)
    refused(invoke("study", named, "--out", named.parent, "--resume"), "input of this command")
    assert content(tmp_path) == before


@pytest.mark.slow
def test_a_page_replaces_nothing_but_a_page(copied: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to(copied / "trace.h5")
    for out in (copied / "trace.h5", copied / "scenario.yaml", link):
        before = content(copied)
        refused(invoke("report", copied, "--out", out), "no HTML page")
        assert content(copied) == before
    for _ in range(2):
        assert invoke("report", copied, "--out", tmp_path / "page.html").exit_code == 0


def test_a_replay_does_not_replace_a_run(copied: Path, run: Path) -> None:
    before = content(copied)
    change = ("--set", "uplink.power_control.policy=full_power")
    refused(invoke("replay", run / "trace.h5", *change, "--out", copied), "not a replay", "checkpoint.bin")
    refused(invoke("replay", run / "trace.h5", "--verify", "--out", copied), "not a replay")
    refused(invoke("replay", copied / "trace.h5", "--verify", "--out", copied / "."), "input of this command")
    assert content(copied) == before


@pytest.mark.slow
def test_a_replay_goes_where_a_replay_and_exports_lie(copied: Path) -> None:
    exports = [("--export", form) for form in get_args(Format)]
    for more in (("--set", "rounds=1"), *exports, ("--set", "training.epochs=2")):
        done = invoke("replay", copied / "trace.h5", *more, "--quiet")
        assert done.exit_code == 0, done.stderr
    assert "epochs: 2" in (copied / "replay" / "scenario.yaml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_nobody_changes_a_replay_while_it_is_compared(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = copied / "replay"

    def draw(_recorded: object, _other: object, new: Path, _title: str, _width: float) -> None:
        with pytest.raises(OutputError, match="in progress there"), RunFolder(place).held():
            pass
        new.touch()

    monkeypatch.setattr(paired, "draw_paired", draw)
    assert invoke("replay", copied / "trace.h5", "--set", "rounds=1", "--quiet").exit_code == 0
    assert (place / "paired.png").exists()


def test_an_export_does_not_replace_its_trace(run: Path, tmp_path: Path) -> None:
    trace = tmp_path / "rounds.csv"
    trace.write_bytes((run / "trace.h5").read_bytes())
    refused(invoke("replay", trace, "--export", "csv", "--out", tmp_path), "input of this command")
    assert trace.read_bytes() == (run / "trace.h5").read_bytes()


def test_a_device_is_written_and_not_replaced(tmp_path: Path) -> None:
    outputs.write_text(Path(os.devnull), "text")
    assert Path(os.devnull).is_char_device()


def test_a_file_that_is_not_whole_does_not_appear(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("old", encoding="utf-8")
    with pytest.raises(OutputError, match="No space left"), outputs.replacing(target) as new:
        new.write_text("ne", encoding="utf-8")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert content(tmp_path) == {"x.json": b"old"}


# One process at a time.

PAUSED = """
import sys
import wirelessfl as wfl
def on_round(this):
    print(this.index, flush=True)
    sys.stdin.readline()
wfl.simulate(wfl.load_scenario(sys.argv[1]), sys.argv[2], device="cpu", threads=1, on_round=on_round, pictures=False)
"""


@pytest.fixture
def running(scenario: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run that has written its first round and goes on when it reads a line."""
    out = tmp_path / "running"
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSED, str(scenario), str(out)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        assert process.stdout.readline() == "1\n"
        yield process, out
        process.kill()


def finish(process: subprocess.Popen[str]) -> None:
    assert process.communicate("\n" * 9)[0].splitlines() == ["2"]
    assert process.returncode == 0


@pytest.mark.slow
def test_a_run_in_progress_is_not_disturbed(running: tuple[subprocess.Popen[str], Path], scenario: Path) -> None:
    process, out = running
    for more in (("--overwrite",), ("--resume",)):
        result = invoke("simulate", scenario, "--out", out, *more)
        refused(result, "a run is in progress there", f"process {process.pid} on ", "since 2")
    refused(invoke("simulate", scenario, "--out", out), "holds a trace already")
    for command in (
        ("report", out),
        ("replay", out / "trace.h5"),
        ("replay", out / "trace.h5", "--verify"),
        ("replay", out / "trace.h5", "--export", "csv"),
    ):
        refused(invoke(*command), f"locked by a run that is writing it (process {process.pid} on ")
    finish(process)
    assert not (out / RUN_LOCK).exists()
    verified = invoke("replay", out / "trace.h5", "--verify", "--json")
    assert verified.exit_code == 0, verified.stderr


@pytest.mark.slow
def test_a_killed_run_holds_nothing(running: tuple[subprocess.Popen[str], Path], scenario: Path, run: Path) -> None:
    process, out = running
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (out / RUN_LOCK).exists()
    resumed = invoke("simulate", scenario, "--out", out, "--resume", "--quiet", "--device", "cpu")
    assert resumed.exit_code == 0, resumed.stderr
    with wfl.open_trace(run / "trace.h5") as whole, wfl.open_trace(out / "trace.h5") as other:
        assert whole.drop_vars("wall_time").identical(other.drop_vars("wall_time").assign_attrs(whole.attrs))


@pytest.mark.slow
def test_two_starts_at_once_leave_one_run(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    commands = [
        [
            sys.executable,
            "-m",
            "wirelessfl",
            "simulate",
            str(scenario),
            "--seed",
            str(seed),
            "--out",
            str(out),
            "--quiet",
        ]
        for seed in (1, 2)
    ]
    starts = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    messages = [start.communicate()[1] for start in starts]
    codes = [start.returncode for start in starts]
    assert sorted(codes) == [0, 2], messages
    won = codes.index(0)
    seed = won + 1
    assert wfl.load_scenario(out / "scenario.yaml").seed == seed
    with wfl.open_trace(out / "trace.h5") as trace:
        assert (trace.attrs["seed"], trace.attrs["status"]) == (seed, "complete")
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["seed"] == seed
    assert "in progress" in messages[1 - won] or "holds a trace" in messages[1 - won]


def test_a_lock_is_taken_once_and_leaves_nothing(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    with lock_folder(deep, RUN_LOCK):
        with pytest.raises(OutputError, match=f"process {os.getpid()} on "), lock_folder(deep, RUN_LOCK):
            pass
        assert (deep / RUN_LOCK).exists()
    assert not list(tmp_path.iterdir())


def test_whoever_waits_takes_the_lock_that_is_there(tmp_path: Path) -> None:
    """The file that is waited for is taken away by its holder: it must not count as the lock of the folder any more."""
    outer = lock_folder(tmp_path, RUN_LOCK)
    outer.__enter__()
    waits: list[int] = []

    def wait() -> None:
        waits.append(1)
        if len(waits) == 2:
            outer.__exit__(None, None, None)

    with lock_folder(tmp_path, RUN_LOCK, wait=wait) as path:
        assert len(waits) == 2 and path.exists()
        with pytest.raises(OutputError), lock_folder(tmp_path, RUN_LOCK):
            pass


def test_the_lock_of_another_process_is_not_taken_away(tmp_path: Path) -> None:
    """Nothing keeps a user from deleting a lock file; then there are two, and each ends its own."""
    with lock_folder(tmp_path, RUN_LOCK):
        (tmp_path / RUN_LOCK).unlink()
        second = lock_folder(tmp_path, RUN_LOCK)
        second.__enter__()
    with pytest.raises(OutputError, match="in progress there"), lock_folder(tmp_path, RUN_LOCK):
        pass
    second.__exit__(None, None, None)
    assert not list(tmp_path.iterdir())


def test_a_lock_whose_name_is_gone_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process takes the file away between our opening and our locking it."""
    lock, calls = fcntl.flock, list[int]()

    def late(descriptor: int, operation: int) -> None:
        if not calls:
            (tmp_path / RUN_LOCK).unlink()
        calls.append(descriptor)
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with lock_folder(tmp_path, RUN_LOCK):
        assert len(calls) == 2 and (tmp_path / RUN_LOCK).exists()


def test_a_file_system_without_locks_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(OutputWarning, match="the file system has no locks"), lock_folder(tmp_path, RUN_LOCK):
        pass


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"pid": "x"}', "\xff"])
def test_a_lock_file_with_anything_in_it(text: str, tmp_path: Path) -> None:
    with lock_folder(tmp_path, RUN_LOCK):
        (tmp_path / RUN_LOCK).write_bytes(text.encode("latin-1"))
        with pytest.raises(OutputError, match="in progress there; wait"), RunFolder(tmp_path).held():
            pass


def test_nothing_is_written_through_a_link_that_lies_in_a_folder(tmp_path: Path) -> None:
    """A folder that somebody packed may hold links of any name, with a process id in it too."""
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    packed = tmp_path / "packed"
    packed.mkdir()
    for name in ("summary.json", f"{outputs.PARTIAL}{os.getpid()}-summary.json", "trace.h5", ".trace.h5.partial"):
        (packed / name).symlink_to(precious)
    for name in (".checkpoint.bin.partial", "workers.log"):
        (packed / name).symlink_to(precious)
    outputs.write_text(packed / "summary.json", "theirs")
    (packed / "trace.h5").unlink()
    TraceWriter.create(packed / "trace.h5", header(), slots=2).finish("interrupted")
    with CheckpointWriter(packed / "checkpoint.bin", RunIdentity("a run", "a scenario", 1, "0.2.0")) as checkpoint:
        checkpoint.save({"round": 1})
    with pytest.raises(OutputError, match=r"workers\.log cannot be written"):
        LocalWorkers(1, 1, packed / "workers.log")
    (packed / "workers.log").unlink()
    with LocalWorkers(1, 1, packed / "workers.log"):
        assert (packed / "workers.log").exists()
    assert not (packed / "workers.log").exists()  # nothing was said
    assert precious.read_text(encoding="utf-8") == "mine"
    written = [packed / name for name in ("summary.json", "trace.h5", "checkpoint.bin")]
    assert all(path.is_file() and not path.is_symlink() for path in written)
