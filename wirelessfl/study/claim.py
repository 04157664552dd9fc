"""Claim of a study on its folder, which its workers see, also those on other machines."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wirelessfl.locks import STUDY_LOCK, lock_folder


@dataclass(frozen=True)
class Claim:
    """Claim of a study on its folder, in a file that workers on other machines read as well.

    Attributes:
        file: The file of the claim.
        token: Its first line while the study runs. A worker that finds another one stops: its study was stopped, or
            was killed and continued by another process.
    """

    file: Path
    token: str

    def holds(self) -> bool:
        """Whether the study still runs."""
        try:
            return self.file.read_text(encoding="utf-8").partition("\n")[0] == self.token
        except (OSError, UnicodeDecodeError):
            return False

    def release(self) -> None:
        """End of the study: its workers stop after their rounds in progress."""
        if self.holds():
            holder = self.file.read_text(encoding="utf-8").partition("\n")[2]
            with suppress(OSError):  # on a full disk the file is empty then, which says the same
                self.file.write_text(f"released\n{holder}", encoding="utf-8")


@contextmanager
def claim_folder(folder: Path) -> Iterator[Claim]:
    """Claim of a folder for the duration of a study.

    Raises:
        OutputError: another study goes on there, or it cannot be written.
    """
    token = secrets.token_hex(8)
    with lock_folder(folder.resolve(), STUDY_LOCK, token, what="a study") as path:
        claim = Claim(path, token)
        try:
            yield claim
        finally:
            claim.release()
