"""Looks at files, for processes that import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


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
    time.sleep(60.0)


class OnlyHere:
    """A look that no other process can read."""

    def __call__(self) -> None:
        raise AssertionError

    def __reduce__(self) -> Any:
        return _refused, (os.getpid(),)


def _refused(pid: int) -> OnlyHere:
    if os.getpid() != pid:
        raise ValueError("only here")
    return OnlyHere()
