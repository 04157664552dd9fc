"""Child processes behind pipes, from a process in an odd state."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirelessfl.child_process import start_child

START = """
import os, subprocess, sys
sys.path.insert(0, {root!r})
from wirelessfl.child_process import read_message, start_child, write_message
{state}
child = start_child("tests.echo", 1, subprocess.DEVNULL)
low = min(child.stdin.fileno(), child.stdout.fileno())
write_message(child.stdin, b"as it was said")
same = read_message(child.stdout) == b"as it was said"
child.stdin.close()
child.stdout.close()
os._exit(child.wait() if same and low > 2 else 9)
"""
STATES = {
    "streams that are closed": "for number in (0, 1, 2): os.close(number)",
    "a folder that was removed": "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); sys.path.insert(0, '')",
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_child_is_started_from_a_process_with(state: str, tmp_path: Path) -> None:
    text = START.format(root=str(Path(__file__).parents[1]), state=state)
    told = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr


def test_a_python_that_does_not_know_its_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(FileNotFoundError, match="does not know its own program"):
        start_child("tests.echo", 1, subprocess.DEVNULL)
    monkeypatch.setattr(sys, "executable", os.fspath(Path(__file__)))
    with pytest.raises(OSError, match="denied"):
        start_child("tests.echo", 1, subprocess.DEVNULL)
    assert len(list(Path("/dev/fd").iterdir())) == before
