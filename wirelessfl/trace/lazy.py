"""A group of a trace as xarray sees it, by h5py alone: values are read when they are used.

h5netcdf asks for the shape, dimensions and filters of every variable by a search through the file, 3 ms for each of
some eighty. A trace was inspected against its schema before, so that the axes of its variables are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendArray, BackendEntrypoint, CachingFileManager
from xarray.core import indexing

from wirelessfl.trace.storage import axes_of

_OF_NETCDF = frozenset({"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "_Netcdf4Dimid", "_NCProperties"})
# Attributes by which netCDF-4 ties variables to their dimensions
_WITHOUT_LABELS = b"This is a netCDF dimension but not a netCDF variable."


class TraceBackend(BackendEntrypoint):
    """Engine of ``xarray.open_dataset`` for traces that were inspected."""

    description = "Open traces of wirelessfl"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group", "lengths")

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Path, *, drop_variables: None, group: str, lengths: Mapping[str, int]
    ) -> xr.Dataset:
        """A group of a trace.

        Args:
            filename_or_obj: the trace.
            drop_variables: None; xarray hands it to every engine.
            group: path of the group.
            lengths: how much of each growing dimension is shown.
        """
        files = CachingFileManager(h5py.File, filename_or_obj, mode="r")
        with files.acquire_context() as file:
            axes = axes_of(file)
            found = {
                name: (axes.get(dataset.name) or _referred(dataset) or (name,), dataset)
                for name, dataset in file[group].items()
                if isinstance(dataset, h5py.Dataset) and not _is_bare(dataset)
            }
            sizes = {**_sizes(found), **lengths}
            variables = {name: _variable(files, dims, dataset, sizes) for name, (dims, dataset) in found.items()}
            attributes = _attributes(file[group])
        labels = {name: one for name, one in variables.items() if one.dims == (name,)}
        values = {name: one for name, one in variables.items() if name not in labels}
        made = xr.Dataset(values, xr.Coordinates(labels, indexes={}), attributes)
        made.set_close(files.close)
        return made


@dataclass(eq=False)
class _Values(BackendArray):
    # The first values of a dataset along each axis

    files: CachingFileManager[h5py.File]
    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __getitem__(self, key: indexing.ExplicitIndexer) -> NDArray[Any]:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        values: NDArray[Any] = indexing.explicit_indexing_adapter(key, self.shape, support, self._read)
        return values

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        # Slices end at the shape: a killed run may have left more
        bounded = tuple(
            slice(*one.indices(size)) if isinstance(one, slice) else one
            for one, size in zip(key, self.shape, strict=True)
        )
        with self.files.acquire_context() as file:
            return np.asarray(file[self.path][bounded])


def _variable(
    files: CachingFileManager[h5py.File], dims: tuple[str, ...], dataset: h5py.Dataset, sizes: Mapping[str, int]
) -> xr.Variable:
    values = _Values(files, dataset.name, tuple(sizes[dim] for dim in dims), dataset.dtype)
    return xr.Variable(dims, indexing.LazilyIndexedArray(values), _attributes(dataset), {"dtype": dataset.dtype})


def _sizes(found: Mapping[str, tuple[tuple[str, ...], h5py.Dataset]]) -> dict[str, int]:
    # What all variables hold: a killed run may have lengthened some of them
    sizes: dict[str, int] = {}
    for dims, dataset in found.values():
        for dim, size in zip(dims, dataset.shape, strict=True):
            sizes[dim] = min(sizes.get(dim, size), size)
    return sizes


def _is_bare(dataset: h5py.Dataset) -> bool:
    # A dimension without labels
    return bytes(dataset.attrs.get("NAME", b"")).startswith(_WITHOUT_LABELS)


def _referred(dataset: h5py.Dataset) -> tuple[str, ...]:
    # The dimensions of a variable that the schema lacks: another version of the package wrote it
    if "DIMENSION_LIST" not in dataset.attrs:
        return ()
    return tuple(dataset.dims[axis][0].name.rpartition("/")[2] for axis in range(dataset.ndim))


def _attributes(node: h5py.Dataset | h5py.Group) -> dict[str, Any]:
    return {name: _plain(value) for name, value in node.attrs.items() if name not in _OF_NETCDF}


def _plain(value: Any) -> Any:
    return value[0] if isinstance(value, np.ndarray) and value.shape == (1,) else value
