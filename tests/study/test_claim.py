"""Who may write where, also after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from wirelessfl.errors import OutputError
from wirelessfl.folder import RunFolder
from wirelessfl.study.task import Claim, claim_folder

HOLD = """
import sys, time
from pathlib import Path
from wirelessfl.folder import RunFolder
from wirelessfl.study.task import claim_folder
with {what}:
    print("held", flush=True)
    time.sleep(60)
"""


def holder(what: str, folder: Path) -> subprocess.Popen[str]:
    """Another process that holds a study's folder or a run."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(what=what), str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_claim_holds_until_it_is_released(tmp_path: Path) -> None:
    with claim_folder(tmp_path / "out") as claim:
        assert claim.holds()
        with pytest.raises(OutputError, match="a study is in progress there"), claim_folder(tmp_path / "out"):
            pass
        assert claim.holds()
        claim.release()
        assert not claim.holds()
    with claim_folder(tmp_path / "out") as later:
        assert later.holds() and not claim.holds()
        claim.release()  # of the old one
        assert later.holds()


def test_an_absent_file_is_no_claim(tmp_path: Path) -> None:
    assert not Claim(tmp_path / "study.lock", "").holds()


def test_an_error_inside_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="mine"), claim_folder(tmp_path):
        raise BlockingIOError("mine")


def test_a_killed_study_leaves_the_folder_free_and_its_workers_without_a_claim(tmp_path: Path) -> None:
    process = holder("claim_folder(Path(sys.argv[1]))", tmp_path)
    with pytest.raises(OutputError), claim_folder(tmp_path):
        pass
    token = (tmp_path / "study.lock").read_text().partition("\n")[0]
    end(process)
    assert Claim(tmp_path / "study.lock", token).holds()  # nobody told them yet
    with claim_folder(tmp_path):
        assert not Claim(tmp_path / "study.lock", token).holds()


def test_a_run_is_waited_for(tmp_path: Path) -> None:
    process = holder("RunFolder(Path(sys.argv[1])).held()", tmp_path / "run")
    entered = threading.Event()

    def wait_and_enter() -> None:
        with RunFolder(tmp_path / "run").held(lambda: None):
            entered.set()

    waiting = threading.Thread(target=wait_and_enter)
    waiting.start()
    assert not entered.wait(0.2)
    end(process)
    assert entered.wait(10)
    waiting.join()
