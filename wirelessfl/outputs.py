"""Output files that appear only when they are complete, refusals of places for them, and exclusive locks on folders.

A lock is the kernel's advisory one (``flock``) on a file in the folder. A dead process holds no lock; the file that a
killed one leaves has no meaning by itself. It names its last holder, for messages only.
"""

import errno
import fcntl
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from wirelessfl.errors import InputError, OutputError, OutputWarning, precondition

READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Error numbers of a place that this process may not write."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a full disk, a full quota and a file-size limit."""
PARTIAL = ".partial-"
"""Prefix of the names of incomplete files; a killed process may leave one."""
_MAX_NAMED = 5
RUN_LOCK = "run.lock"
"""The lock file in the folder of a run."""
STUDY_LOCK = "study.lock"
"""The lock file in the folder of a study."""

_POLL_S = 0.1
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


def output_folder(out: str | Path) -> Path:
    """Path of an output folder that a user named.

    Raises:
        InputError: it is no path, or the name is empty, which Python takes for the current folder.
    """
    precondition(
        isinstance(out, str | os.PathLike),
        f"out: found {out!r:.60}; allowed: the path of a folder",
        InputError,
    )
    precondition(out != "", "--out: found an empty name; allowed: a folder (. is the current one)", InputError)
    return Path(out)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Failures of the operating system at a place as errors of its own.

    Raises:
        OutputError: the place cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"{place} cannot be written: {error.strerror or error}") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Path of a temporary file that replaces ``path`` if the body succeeds, and is removed if it fails.

    A full disk or a kill leaves the earlier file. What is no regular file, such as ``/dev/stdout``, is written itself.

    Raises:
        OutputError: the place cannot be written.
    """
    try:
        precondition(
            not path.is_dir(),
            f"{path} cannot be written: found a folder there; allowed: the name of a file",
            OutputError,
        )
        new = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
        direct = path.exists() and not path.is_file()
    except (OSError, ValueError) as error:  # no name, one that is too long, or one with a null character
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', error)}") from error
    with writing(path):
        if direct:
            yield path
            return
        try:
            new.unlink(missing_ok=True)  # a link that lies there would lead the writing elsewhere
            yield new
            new.replace(path)
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Atomic write of a UTF-8 text file.

    Raises:
        OutputError: the place cannot be written.
    """
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def refuse_foreign(folder: Path, known: Callable[[list[str]], set[str]], maker: str, allowed: str) -> None:
    """Refusal of a folder with entries that no earlier command of the same kind left there.

    Args:
        folder: The folder, which need not exist.
        known: From the names of its entries to those that may lie there.
        maker: What leaves such entries, for messages.
        allowed: What is allowed instead, for messages.

    Raises:
        OutputError: naming what else lies there.
    """
    with writing(folder), suppress(FileNotFoundError):
        there = sorted(entry.name for entry in folder.iterdir())
        wanted = known(there)
        foreign = [name for name in there if name not in wanted and not name.startswith((PARTIAL, ".nfs"))]
        more = f" and {len(foreign) - _MAX_NAMED} more" if len(foreign) > _MAX_NAMED else ""
        precondition(
            not foreign,
            f"{folder}: found what no {maker} has written ({', '.join(foreign[:_MAX_NAMED])}{more}); allowed: "
            f"{allowed}; choose another with --out",
            OutputError,
        )


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Refusal of outputs that are inputs of the command too, also through links, ``..`` or another case.

    Raises:
        OutputError: naming the file that is both.
    """
    sources: dict[tuple[int, int] | None, str | Path] = {_identity(source): source for source in inputs}
    sources.pop(None, None)  # a text that is no file
    for target in targets:
        source = sources.get(_identity(target))
        precondition(
            source is None,
            f"{target}: found an input of this command there ({source}), which would be written over; "
            "choose another place with --out",
            OutputError,
        )


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


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
            if _is_still_there(descriptor, path):  # not where it was removed, and another process made the next
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
    with writing(folder):
        made = list(takewhile(lambda place: not os.path.lexists(place), (folder, *folder.absolute().parents)))
        folder.mkdir(parents=True, exist_ok=True)
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
    with writing(path) if note else suppress(OSError):  # others go by the note
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (f"{note}\n{text}\n" if note else f"{text}\n").encode(), 0)
