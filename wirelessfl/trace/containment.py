"""HDF5 files that hold all of their data themselves: the one way in which the package opens a file to read it.

HDF5 lets a file name other files: links, datasets whose bytes lie elsewhere, datasets put together from other files,
and filters whose code is a library of the machine. A file from somebody else could so have any file that its reader may
read copied into figures and tables, or have a library loaded. Nothing that the package writes uses any of this, and
nothing of it is followed: links are listed and creation properties looked at before the first value is read.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
from h5py import h5a, h5d, h5l, h5o, h5r, h5t, h5z

from wirelessfl.errors import TraceError

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


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file, open for reading, after a check that it is a regular file and self-contained.

    Raises:
        TraceError: It is neither a regular file nor a folder, or it refers to what lies outside of it.
        OSError: It cannot be opened, or is no HDF5 file.
    """
    refuse_irregular(path)
    with h5py.File(path, "r") as file:
        refuse_outside(path, file)
        yield file


def refuse_irregular(path: Path) -> None:
    """Checks that a path, if there is anything, is a regular file or a folder: a pipe or a device might never end.

    Raises:
        TraceError: It is not.
        OSError: It may not be looked at.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise TraceError(f"{path}: a pipe, socket or device; allowed: a regular file")


def refuse_outside(path: Path, file: h5py.File) -> None:
    """Checks that nothing in a file leads out of it, without following anything.

    Args:
        path: The file, for messages.
        file: The same, open.

    Raises:
        TraceError: It has a link that is not a hard link, a dataset with its data elsewhere, or one that needs a filter
            that is not built in.
    """
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


def refuse_unlinked_dimensions(path: Path, file: h5py.File) -> None:
    """Checks that variables refer to dimensions that links of the file name: those that ``refuse_outside`` has seen.

    Raises:
        TraceError: A reference leads to a dataset that no link of the file names.
    """
    names: list[bytes] = []
    file.id.links.visit(names.append)
    nodes = {name: h5o.open(file.id, name) for name in names}
    places = {h5o.get_info(node).addr for node in nodes.values()}
    for name, node in nodes.items():
        if not isinstance(node, h5d.DatasetID) or not h5a.exists(node, _DIMENSIONS):
            continue
        for references in h5py.Dataset(node).attrs[_DIMENSIONS.decode()]:
            for reference in references:
                target = h5r.dereference(reference, file.id) if reference else None
                if target is None or h5o.get_info(target).addr not in places:
                    raise _refusal(path, name, "a reference to a dimension that has no name")


def _outside(node: h5d.DatasetID) -> str | None:
    # What of a dataset lies outside of its file, in words; None where nothing does.
    properties = node.get_create_plist()
    if properties.get_external_count():
        return "a dataset with its data in another file (external storage)"
    if properties.get_layout() == h5d.VIRTUAL:
        return "a dataset put together from others (virtual)"
    filters = {properties.get_filter(index)[0] for index in range(properties.get_nfilters())}
    if unknown := sorted(filters - _BUILT_IN_FILTERS):
        return f"a dataset that needs the filter {unknown[0]}, whose library HDF5 would load"
    if isinstance(node.get_type(), h5t.TypeReferenceID):
        return "a dataset of references"
    return None


def _refusal(path: Path, name: bytes, found: str) -> TraceError:
    place = name.decode("utf-8", "replace")
    return TraceError(f"{path}: /{place}: found {found}; allowed: a file that holds all of its data itself")
