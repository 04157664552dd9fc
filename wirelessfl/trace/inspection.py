"""The check of a file against the trace schema, before any of it is used.

Types, shapes and ranges are checked here and once; what reads a trace relies on them. Sizes that are claimed come
before memory for them.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, assert_never

import h5py
import numpy as np
from h5py import h5d, h5o
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.plugins import Sources
from wirelessfl.trace.layout import (
    EMPTY_CLIENT,
    Attribute,
    AttributeKind,
    EventKind,
    Group,
    SecAggOutcome,
    Status,
    Variable,
)
from wirelessfl.trace.schema import GROUPS, MODEL
from wirelessfl.trace.storage import dataset_path, gain_axes_of

MOST_CLAIMED = 1000
"""Bytes of values that a byte of the file may stand for: as far as deflate goes; rows of NaN are not stored at all."""
_FREE_CLAIM = 256 << 20
_LARGEST_CHUNK = 256 << 20
_LONGEST_TEXT = 1 << 24
_VALUES_AT_ONCE = 1 << 20
_LAYOUTS = {h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED}


Names = dict[int, str]
"""Name of a dimension in its group by its address in the file: HDF5 takes longer to find it than for all else here."""


class Damage(Exception):
    """Damage of a file: the group, dataset or attribute, and what is wrong with it."""


def _require(holds: object, place: str, words: str) -> None:
    precondition(holds, f"{place}: {words}", Damage)


def inspect_trace(file: h5py.File) -> None:
    """Check of a whole trace, of which some rounds may still be missing.

    Raises:
        Damage: It is not as the schema says.
    """
    size = Path(file.filename).stat().st_size
    room = size * MOST_CLAIMED + _FREE_CLAIM
    axes = gain_axes_of(file)
    groups = [known.over(axes) for known in GROUPS]
    shapes: dict[str, tuple[int, ...]] = {}
    names: Names = {}
    for group in groups:
        if group.path not in file:
            _require(group.optional, group.path, "no such group")
            continue
        node = file[group.path]
        _require(isinstance(node, h5py.Group), group.path, "no group")
        _check_attributes(node, group, names)
        for variable in _variables(group):
            if (dataset := _dataset(node, group, variable, names)) is not None:
                place = dataset_path(group, variable.name)
                shapes[place] = dataset.shape
                claimed = _claimed(dataset, place)
                room -= claimed
                # A killed run may have left labels none of which is stored: no more than the file has room for.
                labels = variable in group.coordinates
                holds = room >= 0 and not (labels and claimed > max(size, _stored(dataset)))
                _require(holds, place, f"{claimed:,} bytes of values, more than the file can hold")
    _check_shapes(shapes, groups)
    _check_values(file)


def inspect_values(file: h5py.File) -> None:
    """Check of the datasets at the root of any HDF5 file: numbers that the file can hold.

    Raises:
        Damage: One is not.
    """
    datasets = [file[name] for name in file if isinstance(file.get(name), h5py.Dataset)]
    for dataset in datasets:
        _require(dataset.dtype.kind in "biufc", dataset.name, f"{dataset.dtype} values, no numbers")
        _require(dataset.shape is not None, dataset.name, "no values")
    inspect_sizes(file, datasets)


def inspect_sizes(file: h5py.File, datasets: Iterable[h5py.Dataset]) -> None:
    """Check that a file can hold the values of some of its datasets, of which none is empty of a shape.

    Raises:
        Damage: It cannot.
    """
    room = Path(file.filename).stat().st_size * MOST_CLAIMED + _FREE_CLAIM
    for dataset in datasets:
        place = dataset.name
        room -= _claimed(dataset, place)
        _require(room >= 0, place, "more values than the file can hold")


def _variables(group: Group) -> tuple[Variable, ...]:
    unlabelled = (Variable(name, "", "", dims=(name,), dtype=">f4") for name in group.dimensions)
    return (*group.coordinates, *unlabelled, *group.variables)


def _dataset(node: h5py.Group, group: Group, variable: Variable, names: Names) -> h5py.Dataset | None:
    # A dataset of the right type; None for one that an earlier version did not write.
    place = dataset_path(group, variable.name)
    if variable.name not in node:
        _require(not variable.required and variable.dims != (variable.name,), place, "no such dataset")
        return None
    dataset = node[variable.name]
    _require(isinstance(dataset, h5py.Dataset), place, "no dataset")
    found, wanted = dataset.dtype, np.dtype(variable.dtype)
    alike = (found.kind, found.itemsize) == (wanted.kind, wanted.itemsize)
    _require(alike, place, f"values of type {found}, not {wanted}")
    _require(dataset.ndim == len(variable.dims), place, f"{dataset.ndim} dimensions, not {len(variable.dims)}")
    # Readers make up names of dimensions where a variable is tied to nothing.
    attributes = _read_attributes(dataset, place)
    tied = tuple(ends[0] if ends else "" for ends in _dimensions(dataset, attributes, place, names))
    sound = variable.dims in ((variable.name,), tied)
    _require(sound, place, f"dimensions ({', '.join(tied)}), not ({', '.join(variable.dims)})")
    return dataset


def _claimed(dataset: h5py.Dataset, place: str) -> int:
    # Bytes that all values would take in memory, after a look at where they are stored.
    _require(dataset.id.get_create_plist().get_layout() in _LAYOUTS, place, "values that lie elsewhere")
    if dataset.chunks is not None:
        readable = math.prod(dataset.chunks) * dataset.dtype.itemsize <= _LARGEST_CHUNK
        _require(readable, place, f"pieces of {dataset.chunks} values, more than can be read at once")
        dataset.id.chunk_iter(lambda _: None)
    return int(math.prod(dataset.shape)) * int(dataset.dtype.itemsize)


def _stored(dataset: h5py.Dataset) -> int:
    return int(dataset.id.get_storage_size()) * (MOST_CLAIMED if dataset.id.get_create_plist().get_nfilters() else 1)


def _check_attributes(node: h5py.Group, group: Group, names: Names) -> None:
    found = _read_attributes(node, group.path)
    _dimensions(node, found, group.path, names)
    for attribute in group.attributes:
        if attribute.name in found:
            _check_attribute(attribute, found[attribute.name], f"{group.path}, attribute {attribute.name}")
        else:
            _require(attribute.later or not attribute.required, group.path, f"no attribute {attribute.name}")


def _read_attributes(node: h5py.Group | h5py.Dataset, place: str) -> dict[str, Any]:
    found = {}
    attributes = node.attrs
    for name in attributes:
        size = h5py.h5a.open(node.id, name.encode()).get_storage_size()
        _require(size <= _LONGEST_TEXT, f"{place}, attribute {name}", f"{size} bytes")
        found[name] = attributes[name]
    return found


def _dimensions(
    node: h5py.Group | h5py.Dataset, attributes: Mapping[str, Any], place: str, names: Names
) -> list[list[str]]:
    # Names of the dimensions that a variable is tied to along each of its axes; references are followed as readers do.
    file = node.file
    return [[_dimension(file, one, place, names) for one in ends] for ends in attributes.get("DIMENSION_LIST", ())]


def _dimension(file: h5py.File, reference: h5py.Reference, place: str, names: Names) -> str:
    dimension = file[reference]
    _require(isinstance(dimension, h5py.Dataset), place, "a dimension that is no dataset")
    address = int(h5o.get_info(dimension.id).addr)
    if (name := names.get(address)) is None:
        name = dimension.name
        _require(name is not None, place, "a reference to a dimension that has no name")
        # Bytes, where it is no text
        text = name if isinstance(name, str) else bytes(name).decode("utf-8", "replace")
        name = names[address] = text.rpartition("/")[2]
    return name


def _check_attribute(attribute: Attribute, value: Any, place: str) -> None:
    if isinstance(value, str):
        _require(len(value) <= _LONGEST_TEXT, place, f"a text of {len(value)} letters")
    _require(_is(attribute.kind, value), place, f"{type(value).__name__}, not a {attribute.kind}")
    known = not attribute.among or value in attribute.among
    _require(known, place, f"{str(value)[:40]!r}, none of {', '.join(attribute.among)}")


def _is(kind: AttributeKind, value: Any) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "whole number":
            return isinstance(value, int | np.integer) and int(value) >= 0
        case "positive number":
            return isinstance(value, int | float | np.number) and 0 < float(value) < math.inf
        case "JSON mapping":
            return isinstance(_tree(value), dict)
        case "JSON list of texts":
            tree = _tree(value)
            return isinstance(tree, list) and all(isinstance(item, str) for item in tree)
        case "JSON mapping of sources":
            return _are_sources(value)
        case _:
            assert_never(kind)


def _are_sources(value: Any) -> bool:
    # Nothing of them is run for that; their sizes are bounded, and no path leads out of its folder
    try:
        return isinstance(value, str) and Sources.of_text(value).text == value
    except (ValueError, RecursionError):
        return False


def _tree(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None


def _check_shapes(shapes: Mapping[str, tuple[int, ...]], groups: Iterable[Group]) -> None:
    # Every dataset reaches as far as its dimensions do.
    for group in groups:
        for variable in group.variables:
            place = dataset_path(group, variable.name)
            for dimension, size in zip(variable.dims, shapes.get(place, ()), strict=False):
                own = dataset_path(group, dimension)
                length = shapes[own if own in shapes else f"/{dimension}"][0]
                _require(size >= length, place, f"{size} values along {dimension}, which has {length}")


def _check_values(file: h5py.File) -> None:
    # Labels, clients, codes and counts are such that others may be looked up by them.
    rounds = file["round"][()]
    count = int(np.count_nonzero(rounds >= 0))
    _require(
        np.all(rounds[:count] >= 0) and np.all(np.diff(rounds[:count]) == 1),
        "/round",
        "labels that do not count rounds",
    )
    events = file["event_count"][:count]
    length = len(file["events/time"])
    rising = np.all(np.diff(events, prepend=0) >= 0) and np.all(events <= length)
    _require(rising, "/event_count", f"counts that do not rise, or beyond the {length} events")
    _check_clients(file, count)
    happened = int(events[-1]) if count else 0
    for path, flags, length in (
        ("status", Status, count),
        ("events/kind", EventKind, happened),
        ("secagg/outcome", SecAggOutcome, count),
    ):
        if path in file:
            _check_codes(file[path], flags, length)
    labels = file["model/round"][()]
    _require(np.all(np.diff(labels[labels >= 0]) > 0), f"{MODEL.path}/round", "labels that do not rise")


def _check_clients(file: h5py.File, count: int) -> None:
    # Clients of a round are ascending, and so are those of ``client``, up to where a killed run had no labels yet.
    clients = file["client"][()]
    known, rest = np.split(clients, [np.count_nonzero(clients >= 0)])
    rising = np.all(known >= 0) and np.all(np.diff(known) > 0) and np.all(rest == EMPTY_CLIENT)
    _require(rising, "/client", "clients that do not rise from 0")
    for rows in _pieces(file["client_id"], count):
        rising = (rows == EMPTY_CLIENT) | (np.diff(rows, prepend=EMPTY_CLIENT) > 0)
        _require(np.all(rows >= EMPTY_CLIENT) and np.all(rising), "/client_id", "clients of a round that do not rise")


def _check_codes(dataset: h5py.Dataset, flags: type[IntEnum], count: int) -> None:
    codes = np.zeros(256, dtype=bool)
    codes[[0, *flags]] = True
    for rows in _pieces(dataset, count):
        _require(codes[rows].all(), dataset.name, "a code that the trace format does not know")


def _pieces(dataset: h5py.Dataset, count: int) -> Iterator[NDArray[Any]]:
    step = max(1, _VALUES_AT_ONCE // max(1, math.prod(dataset.shape[1:])))
    yield from (dataset[start : min(start + step, count)] for start in range(0, count, step))
