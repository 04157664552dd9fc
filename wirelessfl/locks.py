"""Exclusive lock on a folder, by the kernel's advisory lock (``flock``) on a file in it.

A dead process holds no lock; the file that a killed one leaves has no meaning by itself. It names its last holder, for
messages only.
"""

import errno
import fcntl
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from wirelessfl.errors import OutputError, OutputWarning

RUN_LOCK = "run.lock"
"""The lock file in the folder of a run."""
STUDY_LOCK = "study.lock"
"""The lock file in the folder of a study."""

_POLL_S = 0.1
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


@contextmanager
def lock_folder(
    folder: Path, name: str, note: str = "", wait: Callable[[], None] | None = None, what: str = "a run"
) -> Iterator[Path]:
    """Exclusive lock on a folder, which is made where it is missing; yields the lock file.

    The file is removed afterwards, and so are folders that were made here and are empty.

    Args:
        folder: The folder.
        name: Name of the lock file in it.
        note: First line of the file while the lock is held.
        wait: Called repeatedly while another process holds the folder; None to refuse then.
        what: Work in progress there, for messages.

    Raises:
        OutputError: another process holds it, or it cannot be written.
    """
    made = _make(folder)
    try:
        path = folder / name
        descriptor = _acquire(path, wait, what)
    except BaseException:
        _unmake(made)
        raise
    try:
        _write_holder(descriptor, path, note)
        yield path
    finally:
        with suppress(OSError):
            if _is_still_there(descriptor, path):  # not where somebody took it away, and another process made the next
                path.unlink()  # whoever waits for it sees that, and takes the next one
        os.close(descriptor)
        _unmake(made)


def holder(path: Path) -> str:
    """Last holder of a lock file, for messages; empty where it is not known."""
    try:
        taken = json.loads(path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2])
        return f"process {int(taken['pid'])} on {taken['host']!s:.100}, since {taken['since']!s:.40}"
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _make(folder: Path) -> list[Path]:
    # Folders that were made, the innermost first
    made = []
    try:
        for place in (folder, *folder.absolute().parents):
            if os.path.lexists(place):
                break
            made.append(place)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror}") from error
    return made


def _unmake(made: list[Path]) -> None:
    with suppress(OSError):  # not empty, or gone already
        for place in made:
            place.rmdir()


def _acquire(path: Path, wait: Callable[[], None] | None, what: str) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise OutputError(f"{path.parent} cannot be written: {error.strerror} ({path.name})") from error
        try:
            if _locked(descriptor, path):
                if _is_still_there(descriptor, path):
                    return descriptor
            elif wait is None:
                who = holder(path)
                raise OutputError(
                    f"{path.parent}: {what} is in progress there{f' ({who})' if who else ''}; wait for it, stop it, "
                    "or choose another folder with --out"
                )
            else:
                wait()
                time.sleep(_POLL_S)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _locked(descriptor: int, path: Path) -> bool:
    # Whether this process holds the lock; on a file system without locks it does, with a warning
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise OutputError(f"{path}: cannot be locked: {error.strerror}") from error
        warnings.warn(
            f"{path.parent}: the file system has no locks (flock: {error.strerror}), so that nothing keeps a second "
            "process out of this folder; see to it that there is only one",
            OutputWarning,
            stacklevel=2,
        )
    return True


def _is_still_there(descriptor: int, path: Path) -> bool:
    # Whether the locked file still has its name, which its last holder may have removed
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write_holder(descriptor: int, path: Path, note: str) -> None:
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (f"{note}\n{text}\n" if note else f"{text}\n").encode(), 0)
    except OSError as error:
        if note:  # others go by it
            raise OutputError(f"{path} cannot be written: {error.strerror}") from error
