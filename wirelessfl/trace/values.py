"""Values of a trace read with h5py alone, for the numbers of every run: importing xarray takes half a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from wirelessfl.trace.opening import opened_trace
from wirelessfl.trace.schema import EVENTS, ROOT
from wirelessfl.trace.storage import axes_of, committed_rounds, dataset_path


class AnyVariable(Protocol):
    """A variable with its dimensions and values: an ``xarray.DataArray`` is one."""

    @property
    def dims(self) -> tuple[Any, ...]:
        """Names of its dimensions."""

    @property
    def values(self) -> Any:
        """Array of its values."""

    def __getitem__(self, place: Any, /) -> Any:
        """Some of its values, without reading the others."""


class Events(Protocol):
    """The events of a trace, as both `read_group` and `read_values` give them."""

    def __getitem__(self, name: str, /) -> AnyVariable: ...


class AnyRoot(Protocol):
    """The root group of a trace, as both `open_trace` and `read_values` give it."""

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """Attributes of the trace."""

    @property
    def sizes(self) -> Mapping[Any, int]:
        """Lengths of its dimensions."""

    @property
    def data_vars(self) -> Iterable[Any]:
        """Names of its variables, without the labels of dimensions."""

    def __contains__(self, name: object, /) -> bool: ...

    def __getitem__(self, name: str, /) -> AnyVariable: ...


@dataclass(frozen=True)
class StoredVariable:
    """A variable in memory, or in an open file.

    Attributes:
        dims: names of its dimensions.
        stored: its values, and maybe further ones.
        length: how many along the first dimension are its own; None for all.
    """

    dims: tuple[str, ...]
    stored: NDArray[Any] | h5py.Dataset
    length: int | None = None

    @property
    def values(self) -> NDArray[Any]:
        """Array of its values."""
        return np.asarray(self.stored[: self.length])

    def __getitem__(self, place: tuple[slice | int, ...]) -> NDArray[Any]:
        """Some of the values along the further dimensions; the first one is whole."""
        return np.asarray(self.stored[(slice(self.length), *place[1:])])


class StoredRoot:
    """Root group of an open trace; a variable is read when it is asked for, as far as its rounds are committed.

    Args:
        file: The open trace.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        root = f"{ROOT.path.rstrip('/')}/"
        axes = {path.removeprefix(root): dims for path, dims in axes_of(file).items() if path in file}
        self._axes = {name: dims for name, dims in axes.items() if "/" not in name and dims != (name,)}
        self.sizes = {"round": committed_rounds(file)}
        self.attrs: dict[str, Any] = dict(file.attrs)

    @property
    def data_vars(self) -> Iterator[str]:
        """Names of the variables, without the labels of dimensions."""
        return iter(self._axes)

    def __contains__(self, name: object) -> bool:
        return name in self._axes

    def __getitem__(self, name: str) -> StoredVariable:
        dims = self._axes.get(name, (name,))
        return StoredVariable(dims, self._file[name], self.sizes["round"] if dims[0] == "round" else None)

    def events(self) -> dict[str, StoredVariable]:
        """The events of the committed rounds, by the names of their variables."""
        rounds = self.sizes["round"]
        count = int(self["event_count"].values[rounds - 1]) if rounds else 0
        return {
            variable.name: StoredVariable(variable.dims, self._file[dataset_path(EVENTS, variable.name)], count)
            for variable in EVENTS.variables
        }


@contextmanager
def read_values(path: Path) -> Iterator[StoredRoot]:
    """The root group of a trace, in whose context values can be read.

    Args:
        path: The trace file.

    Raises:
        TraceError: Not a readable trace of this version, or a run holds it.
    """
    with opened_trace(path) as file:
        yield StoredRoot(file)
