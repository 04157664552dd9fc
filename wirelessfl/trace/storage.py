"""HDF5 beneath the trace: layout, block writes, and errors in words.

The file format is that of HDF5's default library version: it carries no "open for writing" mark, so a file whose writer
was killed opens again (a SWMR file does not).
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5s, h5t
from numpy.typing import NDArray

from wirelessfl.errors import TraceError, precondition
from wirelessfl.trace.layout import FORMAT, GAIN_AXES, JAMMER_AXIS, VERSION, Group, SecAggStage, Variable
from wirelessfl.trace.schema import GROUPS, SECAGG

_CHUNK_VALUES = {"round": 1024, "slot": 16384, "client": 4096, "event": 4096, "snapshot": 1024, "parameter": 65536}
_MIN_CHUNK_VALUES = 64
# A chunk is rewritten whole at every flush: few wide rounds or many narrow ones, about 32 KiB either way.
_ROW_CHUNK_VALUES = 4096

# Dimensions can grow, yet are not unlimited: h5netcdf then takes their length from the scale itself. So the length of
# ``round`` counts for every reader, and a trace opens at once, not after looking at every pair of variables.
_LIMIT = 1 << 40


def check_format(path: Path, attributes: Mapping[str, object]) -> None:
    """Check that root attributes are those of a trace of this version.

    Raises:
        TraceError: Otherwise.
    """
    form, version = (attributes.get(name) for name in ("format", "version"))
    ours = not np.ndim(form) and form == FORMAT  # type: ignore[arg-type]
    precondition(ours, f"{path}: an HDF5 file, but not a wirelessfl trace", TraceError)
    precondition(
        not np.ndim(version) and version == VERSION,  # type: ignore[arg-type]
        f"{path}: trace version {str(version)[:40]}, this wirelessfl reads version {VERSION}; "
        "use the wirelessfl that wrote it",
        TraceError,
    )


def committed_rounds(file: h5py.File) -> int:
    """Number of rounds of the trace; HDF5 wipes a label before it shortens ``round``, so a wiped one is no round."""
    return int(np.count_nonzero(file["round"][()] >= 0))


def committed_snapshots(file: h5py.File) -> int:
    """Number of stored models that belong to committed rounds."""
    rounds = committed_rounds(file)
    labels = file["model/round"][()]
    return int(np.count_nonzero((labels >= 0) & (labels <= file["round"][rounds - 1]))) if rounds else 0


def create_layout(file: h5py.File, slots: int, parameters: int, *, secagg: bool, gain_axes: Mapping[str, int]) -> None:
    """Groups, dimension scales and datasets of the schema, created empty.

    Args:
        file: Empty file, open for writing.
        slots: Expected selected clients per round; more may come.
        parameters: Model dimension d.
        secagg: Whether the run aggregates securely.
        gain_axes: Sizes of the axes of gains, and of the jammer's, that are longer than 1.
    """
    sizes = {"slot": slots, "parameter": parameters, "stage": len(SecAggStage), **gain_axes}
    for group in (known.over(tuple(gain_axes)) for known in GROUPS if secagg or not known.optional):
        node = file.require_group(group.path)
        node.attrs["long_name"] = group.long_name
        for coordinate in group.coordinates:
            _create_dataset(node, coordinate, {}).make_scale(coordinate.name)
        for name in group.dimensions:
            # Without labels, marked as netCDF-4 marks it; its values are never stored.
            size = sizes.get(name, 0)
            scale = node.create_dataset(name, (size,), dtype=">f4", maxshape=(_LIMIT,), chunks=(1024,))
            scale.make_scale(f"This is a netCDF dimension but not a netCDF variable.{size:10}")
        for variable in group.variables:
            dataset = _create_dataset(node, variable, sizes)
            for axis, dimension in enumerate(variable.dims):
                dataset.dims[axis].attach_scale(node[dimension] if dimension in node else file[dimension])
    _label(file["slot"], np.arange(slots, dtype=np.int64))
    if secagg:
        _label(file[dataset_path(SECAGG, "stage")], np.array(list(SecAggStage), dtype=np.uint8))


def _label(scale: h5py.Dataset, labels: NDArray[np.generic]) -> None:
    scale.resize(labels.shape)
    scale[...] = labels


def _create_dataset(node: h5py.Group, variable: Variable, sizes: Mapping[str, int]) -> h5py.Dataset:
    shape = tuple(sizes.get(dimension, 0) for dimension in variable.dims)
    chunks = [_chunk(dimension, size) for dimension, size in zip(variable.dims, shape, strict=True)]
    row = math.prod(chunks[1:]) * max(1, np.dtype(variable.dtype).itemsize // 8)
    if row > 1:
        largest = _CHUNK_VALUES["round"] if "stage" in variable.dims else _ROW_CHUNK_VALUES
        chunks[0] = max(1, min(chunks[0], largest // row))
    dataset = node.create_dataset(
        variable.name,
        shape,
        dtype=variable.dtype,
        chunks=tuple(chunks),
        maxshape=(_LIMIT,) * len(shape),
        fillvalue=variable.fill,
    )
    dataset.attrs.update(variable.attributes())
    return dataset


def _chunk(dimension: str, size: int) -> int:
    # Values of a chunk along a dimension; ``stage`` and those of gains never grow.
    if dimension == "stage":
        return len(SecAggStage)
    if dimension in (*GAIN_AXES, JAMMER_AXIS):
        return size
    return max(_MIN_CHUNK_VALUES, min(_CHUNK_VALUES[dimension], size or _CHUNK_VALUES[dimension]))


def open_datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Every dataset of the file by its path, such as ``/privacy/air_received_bound``."""
    labels = [dataset_path(group, label.name) for group in _groups_of(file) for label in group.coordinates]
    return {path: file[path] for path in (*labels, *axes_of(file))}


def axes_of(file: h5py.File) -> dict[str, tuple[str, ...]]:
    """The dimensions of every dataset that is not the labels of one, by its path."""
    return {
        dataset_path(group, name): axes
        for group in _groups_of(file)
        for name, axes in [(name, (name,)) for name in group.dimensions] + [(v.name, v.dims) for v in group.variables]
    }


def _groups_of(file: h5py.File) -> tuple[Group, ...]:
    return tuple(group.over(gain_axes_of(file)) for group in GROUPS if group.path in file)


def gain_axes_of(file: h5py.File) -> tuple[str, ...]:
    """The axes of gains that the file has."""
    return tuple(axis for axis in (*GAIN_AXES, JAMMER_AXIS) if axis in file)


def dataset_path(group: Group, name: str) -> str:
    """Absolute path of a dataset of the group."""
    return f"{group.path.rstrip('/')}/{name}"


def write_block(
    dataset: h5py.Dataset, extent: tuple[int, ...], offset: tuple[int, ...], values: NDArray[np.generic]
) -> None:
    """Write of ``values`` at ``offset`` into a dataset of this extent, over its trailing axes.

    The low-level interface, with descriptions made once for all datasets of a shape: twenty times as fast as indexing,
    which decides how long a round of the trace takes.
    """
    if values.size:
        dataset.id.write(*_spaces(extent, offset, values.shape), values, _memory_type(values.dtype))


@lru_cache(maxsize=64)
def _spaces(
    extent: tuple[int, ...], offset: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    in_file = h5s.create_simple(extent)
    in_file.select_hyperslab(offset, (1,) * (len(extent) - len(shape)) + shape)
    return h5s.create_simple(shape or (1,)), in_file


_memory_type = lru_cache(maxsize=64)(h5t.py_create)


def set_attributes(node: h5py.Group, attributes: Mapping[str, Any]) -> None:
    """Write of attributes; truth values become 1 and 0, which every netCDF reader knows."""
    node.attrs.update({name: int(value) if isinstance(value, bool) else value for name, value in attributes.items()})
