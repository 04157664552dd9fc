"""What goes wrong with a file, in words: the one place where foreign exceptions become those of the package."""

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wirelessfl.errors import OutputError, TraceError, WirelessFLError
from wirelessfl.locks import RUN_LOCK, holder
from wirelessfl.outputs import FULL


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Context in which failures to write ``path`` are errors of the output.

    Raises:
        OutputError: One line that says what to do.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise OutputError(_write_failure(path, error)) from error


def _write_failure(path: Path, error: Exception) -> str:
    text = str(error)
    code = getattr(error, "errno", None)
    if code in FULL or "No space left" in text:
        return f"{path}: no space left on the disk; free some and continue with --resume"
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path}: the folder cannot be written ({os.strerror(code)}); choose another with --out"
    if _is_locked(error):
        return f"{path}: {_locked(path)}; wait for it, or choose another folder with --out"
    if code == errno.ENOENT:
        return f"{path}: the folder {path.parent} does not exist"
    return f"{path}: cannot be written ({text})"


def _locked(path: Path) -> str:
    # Who writes the trace, as the lock of its folder says.
    who = holder(path.with_name(RUN_LOCK))
    return f"locked by a run that is writing it{f' ({who})' if who else ''}"


def _is_locked(error: Exception) -> bool:
    return isinstance(error, BlockingIOError) or "lock file" in str(error)


DEBUG = "WIRELESSFL_DEBUG"
"""Environment variable: set to anything, what a damaged file raised is shown as it came, with its traceback."""


def debugging() -> bool:
    """Whether errors are shown as they come."""
    return bool(os.environ.get(DEBUG))


@contextmanager
def trace_errors(path: Path) -> Iterator[None]:
    """Context in which every failure to open, read or interpret ``path`` is an error of the trace.

    Every exception is caught here, and nowhere else: what a damaged file raises in NumPy, HDF5, xarray or in sums over
    its values cannot be listed. The words name the exception and where it came from, so that a fault of this package
    is not taken for one of the file; ``WIRELESSFL_DEBUG`` shows it whole.

    Raises:
        TraceError: One line that says what is wrong with the file and what to do.
        OutputError: What was made of it found no room on the disk.
    """
    try:
        yield
    except WirelessFLError:
        raise
    except Exception as error:
        if debugging():
            raise
        if getattr(error, "errno", None) in FULL:
            raise OutputError(_write_failure(path, error)) from error
        raise TraceError(read_failure(path, error)) from error


def read_failure(path: Path, error: Exception) -> str:
    """The words for what was raised while ``path`` was read."""
    text = str(error)
    if path.is_dir():
        return f"{path}: a folder, not a trace; name the trace.h5 inside it"
    if not path.exists():
        return f"{path}: no such trace"
    if _is_locked(error):
        return f"{path}: {_locked(path)}; wait for it, or stop it with Ctrl-C"
    if isinstance(error, PermissionError):
        return f"{path}: no permission to read it"
    if "signature not found" in text:
        return f"{path}: not an HDF5 file; name a trace.h5 that wirelessfl wrote"
    if "truncated file" in text:
        return f"{path}: cut short (copied incompletely?); restore it, or run again with --overwrite"
    return damaged(path, failure_words(error))


_LONGEST_REASON = 300


def failure_words(error: Exception) -> str:
    """An exception that nobody raised on purpose, in one line: its type, where it came from, and its text."""
    text = " ".join(str(error).split())[:_LONGEST_REASON]
    if isinstance(error, MemoryError):
        return f"more values than memory can hold {text}".rstrip()
    return f"{type(error).__name__} {_origin(error)}: {text}"


def damaged(path: Path, words: str) -> str:
    """The words for a file of which something is not as it should be."""
    return f"{path}: damaged ({words}); restore it, or run again with --overwrite"


def _origin(error: Exception) -> str:
    # The last place in this package that an exception came through.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in Path(frame.filename).parents]
    if not frames:
        return "outside the package"
    last = frames[-1]
    return f"in {Path(last.filename).relative_to(_PACKAGE)}, line {last.lineno}"


_PACKAGE = Path(__file__).parents[1]
