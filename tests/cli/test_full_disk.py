"""Outputs that cannot be written: a full disk at each of its writes, a full standard output, folders of others."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.speed import rest_slow
from wirelessfl import outputs
from wirelessfl.cli import main
from wirelessfl.errors import OutputError
from wirelessfl.trace import read_attributes

SCENARIO = """\
name: small
seed: 3
rounds: 2
data: {limit: 60}
clients: {count: 3}
model: {name: logistic}
training: {epochs: 1}
"""
STUDY = "name: pair\nbase: s.yaml\ngrid: {uplink.snr_db: [0, 5]}\nseeds: 1\n"
FULL = Path("/dev/full")


def invoke(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def process(*arguments: object, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own, with other standard streams."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "wirelessfl", *map(str, arguments)]
    return subprocess.run(command, env=environment, text=True, check=False, timeout=300, **streams)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario, a study and a complete run of the scenario."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    wfl.simulate(wfl.load_scenario(folder / "s.yaml"), folder / "run", device="cpu", threads=1)
    return folder


def copy(run: Path, target: Path, *names: str) -> Path:
    """Some files of a run in another folder."""
    target.mkdir()
    for name in names:
        (target / name).write_bytes((run / name).read_bytes())
    return target


COMMANDS = [
    *map(pytest.param, (("simulate", "s.yaml", "--out", "OUT"), ("scenarios",), ("schema",))),
    *(
        pytest.param(command, marks=pytest.mark.slow)
        for command in (
            ("validate", "s.yaml"),
            ("replay", "run/trace.h5"),
            ("report", "run", "--out", "OUT.html"),
            ("pack", "run", "--out", "OUT.zip"),
            ("audit", "s.yaml", "--trials", "10", "--out", "OUT"),
            ("privacy", "epsilon", "--noise-multiplier", "1", "--steps", "10", "--delta", "1e-5"),
            ("papers",),
        )
    ),
]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", rest_slow(COMMANDS), ids=lambda command: command[0])
def test_a_full_standard_output(command: tuple[str, ...], place: Path, tmp_path: Path) -> None:
    named = [word.replace("OUT", str(tmp_path / "out")) for word in command]
    with FULL.open("w") as full:
        silent = process(*named, cwd=place, stdout=full, stderr=subprocess.PIPE)
    told = silent.stderr.rstrip("\n").splitlines()
    assert (silent.returncode, told[-1]) == (2, "Error: standard output cannot be written: No space left on device")
    assert "Traceback" not in silent.stderr and "Exception ignored" not in silent.stderr
    if command[0] == "simulate":
        assert read_attributes(tmp_path / "out" / "trace.h5")["status"] == "complete"


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command",
    [pytest.param(*COMMANDS[0].values, marks=pytest.mark.slow), *COMMANDS[1:]],
    ids=lambda command: command[0],
)
def test_a_full_standard_error(command: tuple[str, ...], place: Path, tmp_path: Path) -> None:
    named = [word.replace("OUT", str(tmp_path / "out")) for word in command]
    with FULL.open("w") as full:
        deaf = process(*named, cwd=place, stdout=subprocess.PIPE, stderr=full)
    assert deaf.returncode == 0 and deaf.stdout


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_verdict_outlives_a_full_output(place: Path, tmp_path: Path) -> None:
    with FULL.open("w") as full:
        refused = process("simulate", "no-such-scenario", stdout=full, stderr=subprocess.PIPE)
    assert refused.returncode == 2 and "no-such-scenario" in refused.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_and_streams_that_are_closed() -> None:
    shell = f"{sys.executable} -m wirelessfl schema | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{0\n", "")
    shell = f"{sys.executable} -m wirelessfl schema 2>&-"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert "uplink" in json.loads(done.stdout)["properties"]


class FullDisk:
    """A disk that is full from one opening of a file for writing on, below one folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.left, self.opened = folder, 10**6, list[str]()
        self._open = io.open
        patch.setattr(io, "open", self._opening)
        patch.setattr(builtins, "open", self._opening)

    def _opening(self, file: Any, mode: str = "r", *more: Any, **others: Any) -> Any:
        if isinstance(file, str | Path) and set(mode) & set("wxa+") and str(file).startswith(str(self.folder)):
            self.opened.append(Path(file).name)
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))
        return self._open(file, mode, *more, **others)


def at_each_write(work: Callable[[Path], None], folder: Path, check: Callable[[Path, str], None]) -> list[str]:
    """Have the disk full from the first, the second, ... file on; returns the files that were opened."""
    with pytest.MonkeyPatch.context() as patch:
        disk = FullDisk(folder, patch)
        work(folder / "whole")
        opened = list(disk.opened)
        for at in range(len(opened)):
            disk.left, disk.opened = at, []
            out = folder / f"full-{at}"
            with pytest.raises(OutputError) as refusal:
                work(out)
            disk.left = 10**6
            check(out, str(refusal.value))
    return opened


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
def test_a_run_whose_disk_is_full_resumes_when_there_is_room(place: Path, tmp_path: Path) -> None:
    """A picture is a file like the others here: what a drawing makes of a full disk is the next test's affair."""
    scenario = wfl.load_scenario(place / "s.yaml")

    def work(out: Path) -> None:
        wfl.simulate(scenario, out, device="cpu", threads=1).require_files()

    def check(out: Path, words: str) -> None:
        assert "No space left" in words or "no space left" in words
        assert str(out) in words
        if out.exists() and (out / "trace.h5").exists():
            complete = read_attributes(out / "trace.h5")["status"] == "complete"
            assert ("the run is complete and" in words) == complete
        wfl.simulate(scenario, out, device="cpu", threads=1, resume=True).require_files()
        assert {file.name for file in out.iterdir()} == {file.name for file in (place / "run").iterdir()}
        with wfl.open_trace(place / "run" / "trace.h5") as whole, wfl.open_trace(out / "trace.h5") as resumed:
            assert whole.drop_vars("wall_time").identical(resumed.drop_vars("wall_time").assign_attrs(whole.attrs))

    opened = at_each_write(work, tmp_path, check)
    pictures = [name for name in opened if name.endswith(".png")]
    assert len(pictures) == 2 and any(name.endswith("summary.json") for name in opened)


@pytest.mark.slow
def test_a_complete_run_says_what_is_missing(place: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        disk = FullDisk(tmp_path / "out", patch)

        def fill(_: object) -> None:
            disk.left = 1  # the checkpoint of the second round

        patch.setattr("wirelessfl.cli.console.progress_line", lambda *_, **__: _always(fill))
        result = invoke("simulate", place / "s.yaml", "--out", tmp_path / "out", "--set", "rounds=1")
    assert result.exit_code == 2
    assert "test accuracy" in result.stdout
    for name in ("summary.png", "timeline.png"):
        assert f"{name} cannot be written: No space left" in result.stderr
    assert "--resume makes it from the trace" in result.stderr
    again = invoke("simulate", place / "s.yaml", "--out", tmp_path / "out", "--set", "rounds=1", "--resume")
    assert again.exit_code == 0 and (tmp_path / "out" / "timeline.png").exists()


class _always:
    """A context that gives one value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *_: object) -> None:
        return None


def test_a_study_whose_disk_is_full(place: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        disk = FullDisk(tmp_path, patch)
        for at in range(2):
            disk.left = at
            result = invoke("study", place / "study.yaml", "--out", tmp_path / f"out-{at}", "--workers", "1", "--quiet")
            assert result.exit_code == 2, result.output
            assert "cannot be written: No space left" in result.stderr


@pytest.mark.parametrize("at", ["ftruncate", "pwrite"])
def test_a_claim_on_a_full_disk(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, at, full)
    with outputs.lock_folder(tmp_path, outputs.RUN_LOCK):
        assert outputs.holder(tmp_path / outputs.RUN_LOCK) == ""
    with (
        pytest.raises(OutputError, match="No space left"),
        outputs.lock_folder(tmp_path, outputs.STUDY_LOCK, "token"),
    ):
        pass


LIMITED = """
import resource, sys
from wirelessfl.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 20_000, 60_000])
def test_a_limit_on_the_size_of_files(limit: int, place: Path, tmp_path: Path) -> None:
    commands = [
        ("simulate", "s.yaml", "--out", tmp_path / "run"),
        ("replay", "run/trace.h5", "--export", "netcdf", "--out", tmp_path / "export"),
        ("report", "run", "--out", tmp_path / "page.html"),
        ("pack", "run", "--out", tmp_path / "run.zip"),
    ]
    for command in commands:
        words = [sys.executable, "-c", LIMITED, str(limit), *map(str, command)]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode in (0, 2), done.stderr
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
        assert not list(tmp_path.rglob(".partial-*"))
        if limit == 0:
            assert (done.returncode == 2 and "File too large" in done.stderr) or "no space left" in done.stderr
    if (tmp_path / "run").exists():
        resumed = invoke("simulate", place / "s.yaml", "--out", tmp_path / "run", "--resume", "--device", "cpu")
        assert resumed.exit_code == 0, resumed.stderr


@pytest.mark.slow
def test_a_complete_run_is_summarised_where_nothing_can_be_written(place: Path, tmp_path: Path) -> None:
    whole = copy(place / "run", tmp_path / "whole", *(file.name for file in (place / "run").iterdir()))
    trace = copy(place / "run", tmp_path / "trace", "trace.h5")
    for folder, code in ((whole, 0), (trace, 2)):
        with pytest.MonkeyPatch.context() as patch:
            _forbid_writing(folder, patch)
            result = invoke("simulate", place / "s.yaml", "--out", folder, "--resume")
        assert result.exit_code == code, result.output
        assert "test accuracy" in result.stdout
        assert ("summary.json cannot be written" in result.stderr) == bool(code)
    with pytest.MonkeyPatch.context() as patch:
        _forbid_writing(whole, patch)
        for more in ((), ("--overwrite",)):
            assert invoke("simulate", place / "s.yaml", "--out", whole, *more).exit_code == 2


def _forbid_writing(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """What a read-only folder does, also to root."""
    opening, low = io.open, os.open

    def refuse(file: Any) -> None:
        if str(file).startswith(str(folder)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(file))

    def high(file: Any, mode: str = "r", *more: Any, **others: Any) -> Any:
        if set(mode) & set("wxa+"):
            refuse(file)
        return opening(file, mode, *more, **others)

    def low_level(file: Any, flags: int, *more: Any, **others: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refuse(file)
        return low(file, flags, *more, **others)

    patch.setattr(io, "open", high)
    patch.setattr(builtins, "open", high)
    patch.setattr(os, "open", low_level)
