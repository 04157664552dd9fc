"""The one door to a file that may be damaged or foreign: it is inspected first, and only then read."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from wirelessfl.errors import TraceError
from wirelessfl.trace.containment import open_hdf5, refuse_irregular, refuse_unlinked_dimensions
from wirelessfl.trace.failures import damaged, debugging, read_failure, trace_errors
from wirelessfl.trace.inspection import Damage, inspect_trace, inspect_values
from wirelessfl.trace.storage import check_format
from wirelessfl.trace.watched import watched

_MOST_REMEMBERED = 1024
# Files that were found in order, by what changes when they do: one inspection a file and process.
_sound: dict[tuple[object, ...], None] = {}


@contextmanager
def opened_trace(path: Path) -> Iterator[h5py.File]:
    """A trace, open for reading. What fails while it is read is translated as ``trace_errors`` does.

    Raises:
        TraceError: It is no trace of this version, or is damaged.
    """
    inspect_file(path)
    with trace_errors(path), open_hdf5(path) as file:
        check_format(path, file.attrs)
        yield file


@contextmanager
def opened_values(path: Path) -> Iterator[h5py.File]:
    """Any HDF5 file of numbers, open for reading; a trace is inspected as one.

    Raises:
        TraceError: It is damaged.
    """
    inspect_file(path, _inspect_any)
    with trace_errors(path), open_hdf5(path) as file:
        yield file


def inspect_file(path: Path, inspect: Callable[[Path, h5py.File], None] | None = None) -> None:
    """Check of a file in a process of its own, unless it was found in order before.

    Raises:
        TraceError: It cannot be read, is no trace of this version, or is damaged.
    """
    inspect = _inspect_trace if inspect is None else inspect
    with trace_errors(path):
        refuse_irregular(path)
        about = path.stat()
    key = (inspect, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if key in _sound:
        return
    if debugging():
        _look(path, inspect)
    elif (words := _watched(path, inspect, about.st_size)) is not None:
        raise TraceError(words if words.startswith(os.fspath(path)) else damaged(path, words))
    if len(_sound) >= _MOST_REMEMBERED:
        _sound.clear()
    _sound[key] = None


def _watched(path: Path, inspect: Callable[[Path, h5py.File], None], size: int) -> str | None:
    try:
        return watched(lambda: _words(path, inspect), size)
    except OSError as error:
        raise TraceError(
            f"{path}: not checked, and so not read: no process can be started for it ({error.strerror})"
        ) from error


def _look(path: Path, inspect: Callable[[Path, h5py.File], None]) -> None:
    with open_hdf5(path) as file:
        inspect(path, file)
        refuse_unlinked_dimensions(path, file)


def _words(path: Path, inspect: Callable[[Path, h5py.File], None]) -> str | None:
    try:
        _look(path, inspect)
    except TraceError as error:
        return str(error)
    except Damage as error:
        return damaged(path, str(error))
    except Exception as error:  # the boundary: whatever a damaged file makes a reader raise
        return read_failure(path, error)
    return None


def _inspect_trace(path: Path, file: h5py.File) -> None:
    check_format(path, file.attrs)
    inspect_trace(file)


def _inspect_any(path: Path, file: h5py.File) -> None:
    if "format" in file.attrs:
        _inspect_trace(path, file)
    else:
        inspect_values(file)
