"""Failures to read or write a file, in words: here alone foreign exceptions become those of the package."""

import errno
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from wirelessfl.errors import OutputError, TraceError, WirelessFLError
from wirelessfl.outputs import FULL, READ_ONLY, RUN_LOCK, holder
from wirelessfl.plugins import place_of


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


@contextmanager
def removed_on_failure(new: Path) -> Iterator[None]:
    """Context in which a file is written, of which nothing is left where that fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _write_failure(path: Path, error: Exception) -> str:
    text, code = str(error), getattr(error, "errno", None)
    refused = f"the folder cannot be written ({os.strerror(code or 0)}); choose another with --out"
    locked = _locked(path, error)
    reasons = {
        "no space left on the disk; free some and continue with --resume": code in FULL or "No space left" in text,
        refused: code in READ_ONLY,
        f"{locked}; wait for it, or choose another folder with --out": locked,
        f"the folder {path.parent} does not exist": code == errno.ENOENT,
    }
    return f"{path}: {next((words for words, holds in reasons.items() if holds), f'cannot be written ({text})')}"


def _locked(path: Path, error: Exception) -> str:
    # Words on the writer of a locked trace, as the lock of its folder names it; empty for any other error
    if not isinstance(error, BlockingIOError) and "lock file" not in str(error):
        return ""
    who = holder(path.with_name(RUN_LOCK))
    return f"locked by a run that is writing it{f' ({who})' if who else ''}"


def debugging() -> bool:
    """Whether what a damaged file raised is shown as it came, with its traceback: the environment asks for that."""
    return bool(os.environ.get("WIRELESSFL_DEBUG"))


@contextmanager
def trace_errors(path: Path) -> Iterator[None]:
    """Context in which every failure to open, read or interpret ``path`` is an error of the trace.

    Every exception is caught here, and nowhere else: what a damaged file raises in NumPy, HDF5, xarray or in sums over
    its values cannot be listed. The words name the exception and where it came from, so that a fault of this package
    is not taken for one of the file; ``WIRELESSFL_DEBUG`` shows it whole. A division by zero, an overflow or an invalid
    operation of NumPy is one of them: no values that a run wrote lead there.

    Raises:
        TraceError: One line that says what is wrong with the file and what to do.
        OutputError: What was made of it found no room on the disk.
    """
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            yield
    except WirelessFLError:
        raise
    except Exception as error:
        if debugging() or place_of(error) is not None:  # a line of the user's failed, and not the file
            raise
        if getattr(error, "errno", None) in FULL:
            raise OutputError(_write_failure(path, error)) from error
        raise TraceError(read_failure(path, error)) from error


_AGAIN = ", or run again with --overwrite"


def of_no_run(error: TraceError) -> TraceError:
    """The same error of a file that no run wrote."""
    return TraceError(str(error).replace(_AGAIN, ""))


def read_failure(path: Path, error: Exception) -> str:
    """The words for what was raised while ``path`` was read."""
    text, locked = str(error), _locked(path, error)
    reasons = {
        "a folder, not a trace; name the trace.h5 inside it": path.is_dir(),
        "no such trace": not path.exists(),
        f"{locked}; wait for it, or stop it with Ctrl-C": locked,
        "no permission to read it": isinstance(error, PermissionError),
        "not an HDF5 file; name a trace.h5 that wirelessfl wrote": "signature not found" in text,
        f"cut short (copied incompletely?); restore it{_AGAIN}": "truncated file" in text,
    }
    words = next((words for words, holds in reasons.items() if holds), None)
    return damaged(path, failure_words(error)) if words is None else f"{path}: {words}"


_LONGEST_REASON = 300


def failure_words(error: Exception) -> str:
    """Words on an unexpected exception, in one line: its type, where it came from, and its text."""
    text = " ".join(str(error).split())[:_LONGEST_REASON]
    memory = f"more values than memory can hold {text}".rstrip()
    return memory if isinstance(error, MemoryError) else f"{type(error).__name__} {_origin(error)}: {text}"


def damaged(path: Path, words: str) -> str:
    """The words for a file of which something is not as it should be."""
    return f"{path}: damaged ({words}); restore it{_AGAIN}"


def _origin(error: Exception) -> str:
    # The last place in this package that an exception came through.
    where = [
        f"in {Path(frame.filename).relative_to(_PACKAGE)}, line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if _PACKAGE in Path(frame.filename).parents
    ]
    return where[-1] if where else "outside the package"


_PACKAGE = Path(__file__).parents[1]
