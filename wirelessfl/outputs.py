"""Output files that appear only when they are complete, and refusals of places for them."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wirelessfl.errors import InputError, OutputError

READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Error numbers of a place that this process may not write."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a full disk, a full quota and a file-size limit."""
PARTIAL = ".partial-"
"""Prefix of the names of incomplete files; a killed process may leave one."""
_MAX_NAMED = 5


def output_folder(out: str | Path) -> Path:
    """Path of an output folder that a user named.

    Raises:
        InputError: the name is empty, which Python takes for the current folder.
    """
    if out == "":
        raise InputError("--out: found an empty name; allowed: a folder (. is the current one)")
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
        if foreign:
            more = f" and {len(foreign) - _MAX_NAMED} more" if len(foreign) > _MAX_NAMED else ""
            raise OutputError(
                f"{folder}: found what no {maker} has written ({', '.join(foreign[:_MAX_NAMED])}{more}); allowed: "
                f"{allowed}; choose another with --out"
            )


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Refusal of outputs that are inputs of the command too, also through links, ``..`` or another case.

    Raises:
        OutputError: naming the file that is both.
    """
    sources = {identity: source for source in inputs if (identity := _identity(source)) is not None}
    for target in targets:
        identity = _identity(target)
        if identity in sources:
            raise OutputError(
                f"{target}: found an input of this command there ({sources[identity]}), which would be written over; "
                "choose another place with --out"
            )


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
