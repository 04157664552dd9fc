"""Files that appear whole: written beside their place, and put there when they are complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wirelessfl.errors import InputError, OutputError

READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Error numbers of a place that this process may not write."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a full disk, a full quota and a file-size limit."""
PARTIAL = ".partial-"
"""How the names of files begin that are not whole yet; a killed process may leave one."""


def output_folder(out: str | Path) -> Path:
    """A folder that a user named.

    Raises:
        InputError: the name is empty, which Python takes for the current folder.
    """
    if out == "":
        raise InputError("--out: found an empty name; allowed: a folder (. is the current one)")
    return Path(out)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of ``path`` when the body ends in order, and is taken away when it does not.

    So a full disk or a kill leaves the file that was there. What is no regular file, such as ``/dev/stdout``, is
    written itself.

    Raises:
        OutputError: the place cannot be written.
    """
    try:
        new = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
        direct = path.exists() and not path.is_file()
    except (OSError, ValueError) as error:
        raise OutputError(f"{path} cannot be written: {getattr(error, 'strerror', error)}") from error
    try:
        if not direct:
            new.unlink(missing_ok=True)  # a link that somebody laid there would lead the writing elsewhere
        yield path if direct else new
        if not direct:
            new.replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if not direct:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises:
        OutputError: the place cannot be written.
    """
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[str | Path]) -> None:
    """Nothing is written over what it is made from, by whatever name: through links, ``..`` or another case.

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
    """Device and inode of an existing file."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
