"""Opening of files that may be damaged or foreign, for the whole package: inspected first, and then read.

HDF5 lets a file name other files: links, datasets whose bytes lie elsewhere, datasets put together from other files,
and filters whose code is a library of the machine. A file from somebody else could so have any file that its reader may
read copied into figures and tables, or have a library loaded. Nothing that the package writes uses any of this, and
nothing of it is followed: links are listed and creation properties looked at before the first value is read.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import h5py
from h5py import h5a, h5d, h5l, h5o, h5r, h5t, h5z

from wirelessfl.errors import TraceError
from wirelessfl.trace.failures import damaged, debugging, of_no_run, read_failure, trace_errors
from wirelessfl.trace.inspection import Damage, inspect_trace, inspect_values
from wirelessfl.trace.storage import check_format
from wirelessfl.trace.watcher import watched_from_any_thread

# Filters that are compiled into every h5py; for any other HDF5 looks for a library in its plug-in folders.
_BUILT_IN_FILTERS = frozenset(
    {
        h5z.FILTER_DEFLATE,
        h5z.FILTER_SHUFFLE,
        h5z.FILTER_FLETCHER32,
        h5z.FILTER_NBIT,
        h5z.FILTER_SCALEOFFSET,
        h5z.FILTER_LZF,
    }
)
_LINKS = {h5l.TYPE_SOFT: "a soft link", h5l.TYPE_EXTERNAL: "a link to another file"}
# The attribute by which a variable refers to its dimensions: the references that a netCDF-4 reader follows.
_DIMENSIONS = b"DIMENSION_LIST"

_MOST_REMEMBERED = 2**14
# Files that were found in order, by what changes when they do: one inspection a file and process.
_sound: dict[tuple[object, ...], None] = {}

FileState: TypeAlias = tuple[int, ...]
"""What changes with a file: device, inode, bytes, and nanoseconds at which its content and its inode changed."""

Inspection = Callable[[Path, h5py.File], None]
"""Check of an open file, whose path is for messages."""


@contextmanager
def opened_trace(path: Path) -> Iterator[h5py.File]:
    """A trace, open for reading. What fails while it is read is translated as ``trace_errors`` does.

    Raises:
        TraceError: It is no trace of this version, or is damaged.
    """
    with opened_values(path, _inspect_trace) as file:
        check_format(path, file.attrs)
        yield file


def _inspect_trace(path: Path, file: h5py.File) -> None:
    check_format(path, file.attrs)
    inspect_trace(file)


def _inspect_any(path: Path, file: h5py.File) -> None:
    if "format" in file.attrs:
        _inspect_trace(path, file)
    else:
        inspect_values(file)


@contextmanager
def opened_values(path: Path, inspect: Inspection = _inspect_any) -> Iterator[h5py.File]:
    """Any HDF5 file of numbers, open for reading; a trace is inspected as one.

    Raises:
        TraceError: It is damaged.
    """
    try:
        inspect_file(path, inspect)
        with trace_errors(path), open_hdf5(path) as file:
            yield file
    except TraceError as error:
        if inspect is _inspect_trace:
            raise
        raise of_no_run(error) from error


def inspect_file(path: Path, inspect: Inspection = _inspect_trace) -> None:
    """Check of a file in a process of its own, unless it was found in order before.

    Raises:
        TraceError: It cannot be read, is no trace of this version, or is damaged.
    """
    with trace_errors(path):
        refuse_irregular(path)
        about = path.stat()
    key = inspect, *file_state(about)
    if key in _sound:
        return
    if debugging():
        _look(path, inspect)
    else:
        try:
            words = watched_from_any_thread(partial(_words, path, inspect), about.st_size)
        except OSError as error:
            raise TraceError(
                f"{path}: not checked, and so not read: no other process can check it ({error.strerror})"
            ) from error
        if words is not None:
            raise TraceError(words if words.startswith(os.fspath(path)) else damaged(path, words))
    _remember(key)


def trust_trace(state: FileState) -> None:
    """Note that a trace that a process of this run or study has written is sound: in this state it is not inspected.

    Args:
        state: Of the file when it was left.
    """
    _remember((_inspect_trace, *state))


def trusted_state(path: Path) -> FileState | None:
    """The state of a trace that this process trusts; None of any other file, and where there is none."""
    try:
        state = file_state(path.stat())
    except OSError:
        return None
    return state if (_inspect_trace, *state) in _sound else None


def file_state(about: os.stat_result) -> FileState:
    """The state of a file, by what the system knows of it."""
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _remember(key: tuple[object, ...]) -> None:
    if len(_sound) >= _MOST_REMEMBERED:
        _sound.clear()
    _sound[key] = None


def _words(path: Path, inspect: Inspection) -> str | None:
    try:
        _look(path, inspect)
    except TraceError as error:
        return str(error)
    except Damage as error:
        return damaged(path, str(error))
    except Exception as error:  # the boundary: whatever a damaged file makes a reader raise
        return read_failure(path, error)
    return None


def _look(path: Path, inspect: Inspection) -> None:
    with open_hdf5(path) as file:
        inspect(path, file)
        _refuse_unlinked_dimensions(path, file)


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file, open for reading, after a check that it is a regular file and self-contained.

    Raises:
        TraceError: It is neither a regular file nor a folder, or it refers to what lies outside of it.
        OSError: It cannot be opened, or is no HDF5 file.
    """
    refuse_irregular(path)
    with h5py.File(path, "r") as file:
        _refuse_outside(path, file)
        yield file


def refuse_irregular(path: Path) -> None:
    """Checks that a path, if there is anything, is a regular file or a folder: a pipe or a device might never end.

    Raises:
        TraceError: It is not.
        OSError: It may not be looked at.
    """
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise TraceError(f"{path}: a pipe, socket or device; allowed: a regular file")


def _refuse_outside(path: Path, file: h5py.File) -> None:
    # Refuses links that are not hard ones, datasets with their data elsewhere, and those that need a filter that is not
    # built in, without following anything
    names: list[bytes] = []

    def note(name: bytes, link: h5l.LinkInfo) -> str | None:
        names.append(name)
        return None if link.type == h5l.TYPE_HARD else _LINKS.get(link.type, "a link of an unknown kind")

    found = file.id.links.visit(note, info=True)
    if found is not None:
        raise _refusal(path, names[-1], found)
    for name in names:
        node = h5o.open(file.id, name)
        if isinstance(node, h5d.DatasetID) and (found := _outside(node)) is not None:
            raise _refusal(path, name, found)


def _refuse_unlinked_dimensions(path: Path, file: h5py.File) -> None:
    # Refuses what is no list of references to dimensions, and references to those that no link of the file names:
    # `_refuse_outside` has not seen those
    names: list[bytes] = []
    file.id.links.visit(names.append)
    nodes = {name: h5o.open(file.id, name) for name in names}
    places = {h5o.get_info(node).addr for node in nodes.values()}
    for name, node in nodes.items():
        if not isinstance(node, h5d.DatasetID) or not h5a.exists(node, _DIMENSIONS):
            continue
        if not _is_list_for_each_axis(h5a.open(node, _DIMENSIONS), node):
            raise _refusal(path, name, "dimensions that are no list of references for each axis")
        for reference in (one for references in h5py.Dataset(node).attrs[_DIMENSIONS.decode()] for one in references):
            target = h5r.dereference(reference, file.id) if reference else None
            if target is None or h5o.get_info(target).addr not in places:
                raise _refusal(path, name, "a reference to a dimension that has no name")


def _is_list_for_each_axis(ties: h5a.AttrID, node: h5d.DatasetID) -> bool:
    # HDF5 reads what ties a dataset to its dimensions without a look at its type and length, and crashes on another
    kind = ties.get_type()
    references = isinstance(kind, h5t.TypeVlenID) and kind.get_super().equal(h5t.STD_REF_OBJ)
    return references and ties.shape == (node.get_space().get_simple_extent_ndims(),)


def _outside(node: h5d.DatasetID) -> str | None:
    # What of a dataset lies outside of its file, in words; None where nothing does.
    properties = node.get_create_plist()
    filters = {properties.get_filter(index)[0] for index in range(properties.get_nfilters())} - _BUILT_IN_FILTERS
    library = f"a dataset that needs the filter {min(filters, default='')}, whose library HDF5 would load"
    found = {
        "a dataset with its data in another file (external storage)": properties.get_external_count(),
        "a dataset put together from others (virtual)": properties.get_layout() == h5d.VIRTUAL,
        library: filters,
        "a dataset of references": isinstance(node.get_type(), h5t.TypeReferenceID),
    }
    return next((words for words, holds in found.items() if holds), None)


def _refusal(path: Path, name: bytes, found: str) -> TraceError:
    place = name.decode("utf-8", "replace")
    return TraceError(f"{path}: /{place}: found {found}; allowed: a file that holds all of its data itself")
