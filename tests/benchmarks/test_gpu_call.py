"""``make gpu`` on a bad day: broken tables, signals, a second call, terminals and machines that lack something."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.gpu import call, cuda_tests, prepare, probe
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.prepare import NotReadyError, unsuitable
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.table import Row, TableError, read_rows, write_rows
from benchmarks.gpu.training import measure_shell_and_trace
from tests.processes import is_running
from wirelessfl.trace import CheckpointWriter

ROOT = Path(__file__).resolve().parents[2]
TINY = Setting("cpu", tiny=True)
HERE = probe.Machine("a processor", "", "2.11.0", "abc123")


def program(text: str, *arguments: str, stdin: int | None = None, **environment: str) -> subprocess.Popen[str]:
    """A Python program that can import this repository."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# --- the table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",ok\n", "", "line 2: found 14 cells; allowed are 15"),
        ("1.5", "1.5x", "line 2: seconds: found '1.5x'; allowed is a number or nothing"),
        ("part,", "prt,", "line 1: found columns prt,workload"),
        ("abc", '"abc', "unexpected end of data"),
        ("abc", "a\udcffc", "invalid start byte"),
    ],
)
def test_a_broken_table_is_refused_and_kept(
    old: str, new: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(call, "look", lambda commit: HERE)
    path = tmp_path / "rehearsal.csv"
    write_rows([Row("peaks", "copy", commit="abc", seconds=1.5, status="ok")], path)
    path.write_bytes(path.read_text().replace(old, new).encode(errors="surrogateescape"))
    before = path.read_bytes()
    with pytest.raises(TableError, match=str(path)):
        read_rows(path)
    assert main(["--rehearse", "--out", str(tmp_path)]) == 2
    assert told in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_second_call_and_a_place_that_is_no_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(call, "look", lambda commit: HERE)
    (tmp_path / "file").touch()
    assert main(["--rehearse", "--out", str(tmp_path / "file")]) == 2
    assert "no folder to write in" in capsys.readouterr().err
    place = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    try:
        assert main(["--rehearse", "--out", str(tmp_path)]) == 2
    finally:
        os.close(place)
    assert f"{tmp_path}: another call measures into it; allowed is one at a time" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(call, "look", lambda commit: HERE)
    assert call.rehearse(call.Wanted(within_s=0.0), tmp_path, None) == 0


@pytest.mark.slow
def test_a_process_that_leads_no_group_ends_alone() -> None:
    text = "import time\nfrom benchmarks.gpu.child import end_with_input\nend_with_input()\ntime.sleep(600)"
    with program(text, stdin=subprocess.DEVNULL) as running:
        running.communicate(timeout=120)
    assert running.returncode == 1


@pytest.mark.parametrize("seconds", ["nan", "0", "-1", "inf", "soon"])
def test_times_are_positive_numbers(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--limit", "--within"):
        with pytest.raises(SystemExit) as ended:
            main([f"{option}={seconds}"])
        assert ended.value.code == 2
        assert f"{option}: found {seconds}; allowed is a number above 0" in capsys.readouterr().err


# --- signals -------------------------------------------------------------------------------------------------------

CHILD = """
import subprocess, sys, time
from benchmarks.gpu.child import end_with_input

end_with_input()
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("sleeper", sleeper.pid, flush=True)
time.sleep(600)
"""
CALL = """
import sys
from benchmarks.gpu import call, runner
from benchmarks.gpu.__main__ import main

call.look = lambda commit: call.Machine("GPU", "1", "2", "c")
runner._CHILD = ("-c", sys.argv[1])
sys.exit(main(["--rehearse", "--only", "peaks", "--out", sys.argv[2]]))
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
@pytest.mark.slow
def test_a_call_that_is_stopped_leaves_no_process_and_no_row(number: signal.Signals, tmp_path: Path) -> None:
    log, patience = tmp_path / "rehearsal-peaks.txt", time.monotonic() + 120
    with program(CALL, CHILD, str(tmp_path)) as running:
        while not (log.exists() and log.read_text().endswith("\n")):
            assert time.monotonic() < patience and running.poll() is None
            time.sleep(0.05)
        sleeper = int(log.read_text().split()[-1])
        running.send_signal(number)
        _, errors = running.communicate()
    if number == signal.SIGTERM:
        assert running.returncode == 130
        assert errors.strip().endswith("what was measured is kept, and the same command goes on there")
        assert "Traceback" not in errors
    while is_running(sleeper) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not is_running(sleeper)
    assert [path.name for path in tmp_path.iterdir()] == [log.name]


# --- terminals -----------------------------------------------------------------------------------------------------

SAID = """
import sys
from benchmarks.gpu import call
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.setting import Measured

def run_part(name, workloads, setting, limit_s, log, announce):
    announce("cnn_cifar10, 8 × 40", Measured(failure="no kernel [/usr/lib] for shape [red]"))

call.run_part = run_part
call.look = lambda commit: call.Machine("GPU", "1", "2", "c")
sys.exit(main(["--rehearse", "--only", "agreement", "--out", sys.argv[1]]))
"""


@pytest.mark.slow
def test_a_failure_is_shown_as_it_is_on_a_terminal_without_its_letters(tmp_path: Path) -> None:
    with program(SAID, str(tmp_path), PYTHONIOENCODING="ascii", COLUMNS="200") as running:
        output, errors = running.communicate()
    assert running.returncode == 1, errors
    for told in (output, errors):
        assert "8 \\u00d7 40" in told and "no kernel [/usr/lib] for shape [red]" in told
    assert read_rows(tmp_path / "rehearsal.csv")[0].workload == "cnn_cifar10, 8 × 40"


# --- the machine ---------------------------------------------------------------------------------------------------


def test_an_old_python_is_told_so_though_it_lacks_a_module() -> None:
    text = "import sys; sys.modules['tomllib'] = None; sys.version_info = (3, 10, 1)\n"
    text += "from benchmarks.gpu.__main__ import main; sys.exit(main([]))"
    with program(text) as running:
        _, errors = running.communicate()
    assert (running.returncode, errors) == (
        2,
        "Python: found 3.10; allowed is 3.11 to 3.13, as in make gpu PYTHON=python3.12\n",
    )


def test_a_version_that_is_not_asked_for_is_named() -> None:
    (told,) = unsuitable(["numpy>=99", "torch>=2", "surely-not-there; python_version < '3'"])
    assert told.startswith("numpy: found ") and told.endswith("; asked for is >=99")


def test_without_packaging_and_pip_nothing_can_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("packaging.requirements", "pip", "pip._vendor", "pip._vendor.packaging.requirements"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotReadyError, match=r"packages are missing: packaging; .* has neither it nor pip"):
        prepare.missing(["numpy"])


def test_packages_of_one_python_are_not_offered_to_another() -> None:
    assert prepare.PACKAGES.name.startswith(f"cpython-{sys.version_info.major}{sys.version_info.minor}-")


def test_the_digest_changes_with_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "ROOT", tmp_path)
    (tmp_path / "wirelessfl").mkdir()
    digests = []
    for name in ("a.py", "kernel.c", "scenario.yaml", "kernel.bin"):
        (tmp_path / "wirelessfl" / name).write_text("text")
        digests.append(probe.source_digest())
    assert len(set(digests)) == 3 and digests[-1] == digests[-2]


def test_warnings_of_other_packages_decide_on_no_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda_tests, "ROOT", tmp_path)
    settings = '[tool.pytest.ini_options]\nmarkers = ["cuda: x"]\nfilterwarnings = ["error"]\n'
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        f"import os, warnings\nimport pytest\npytestmark = {cuda_tests.MARK}\n"
        "def test_it() -> None:\n    warnings.warn('old', DeprecationWarning)\n"
        "def test_plugins() -> None:\n    assert os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD']\n"
    )
    assert cuda_tests.measure_tests(TINY).detail == "2 passed, 0 failed, 0 skipped"


def test_waiting_for_files_counts_among_shell_and_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    save = CheckpointWriter.save

    def slowly(self: CheckpointWriter, *arguments: object, **options: object) -> None:
        time.sleep(0.2)  # as a disk does, without the processor
        save(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(CheckpointWriter, "save", slowly)
    assert measure_shell_and_trace(TINY).seconds > 0.2
