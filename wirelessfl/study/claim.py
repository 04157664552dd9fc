"""Who may write where: one study at a time in a folder, one process at a time on a run.

Locks are the kernel's (``flock``): a killed process holds none, also over NFS.
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from wirelessfl.errors import OutputError


@dataclass(frozen=True)
class Claim:
    """A study's hold on its folder, as its workers see it, also on other machines.

    Attributes:
        file: Where it is written.
        token: What stands there while the study goes on. A worker that finds something else stops: its study was
            stopped, or was killed and has been taken up by another process.
    """

    file: Path
    token: str

    def holds(self) -> bool:
        """Whether the study still goes on."""
        try:
            return self.file.read_text(encoding="ascii") == self.token
        except OSError:
            return False

    def release(self) -> None:
        """End the study: whatever works for it stops after the round in progress."""
        if self.holds():
            self.file.write_text("", encoding="ascii")


@contextmanager
def claim_folder(folder: Path) -> Iterator[Claim]:
    """Claim a study's folder for the time of a study.

    Raises:
        OutputError: another study goes on there, or it cannot be written.
    """
    path = folder.resolve() / "study.lock"
    with _lock_now(path):
        claim = Claim(path, secrets.token_hex(8))
        path.write_text(claim.token, encoding="ascii")
        try:
            yield claim
        finally:
            claim.release()


def _lock_now(path: Path) -> TextIO:
    """The file, locked."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a", encoding="ascii")
    except OSError as error:
        raise OutputError(f"{path.parent} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise OutputError(
            f"{path.parent}: another study is running there; wait for it, or choose another folder with --out"
        ) from None
    return lock


@contextmanager
def hold_run(folder: Path) -> Iterator[None]:
    """Be the only process that works on a run, waiting for another that still finishes its round there."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run.lock").open("a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
