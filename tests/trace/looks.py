"""Looks at files, for processes that import them, and what they leave behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.processes import is_running

PATIENCE_S = 60.0


def find(words: str | None) -> str | None:
    return words


def find_folder() -> str:
    return str(Path.cwd())


def wait(note: Path, seconds: float) -> None:
    """Notes the process, and the one that it was forked from."""
    note.with_suffix(".partial").write_text(f"{os.getpid()} {os.getppid()}")
    note.with_suffix(".partial").rename(note)
    time.sleep(seconds)


def end_the_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(PATIENCE_S)


class OnlyHere:
    """A look that no other process can read."""

    def __init__(self, error: type[Exception]) -> None:
        self._error = error

    def __call__(self) -> None:
        raise AssertionError

    def __reduce__(self) -> Any:
        return _refused, (self._error,)


def _refused(error: type[Exception]) -> OnlyHere:
    raise error("only here")


def noted(note: Path) -> tuple[int, int]:
    """The processes that `wait` has noted."""
    deadline = time.monotonic() + PATIENCE_S
    while not note.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    look, parent = map(int, note.read_text().split())
    return look, parent


def require_end(pid: int) -> None:
    """A process is gone, or soon will be."""
    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
