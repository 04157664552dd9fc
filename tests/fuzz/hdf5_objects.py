"""What an HDF5 file says, object by object, read with h5py alone: the numbers that a verification must vouch for."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

MAY_DIFFER = frozenset({"/wall_time", "/@created", "/@run_id", "/@torch_version", "/@package_version", "/@processor"})
"""When, where and by which version it was run, how long it took, and the name that no other run has."""

STORAGE = frozenset(
    {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"}
)
"""Attributes with which HDF5 and netCDF tie datasets together; they carry no value of the run."""

NESTED_AT_MOST = 8
LARGEST = 1 << 24


def content_of(path: Path) -> dict[str, str]:
    """For every dataset and attribute a digest of its values; ``unreadable`` where they cannot be read."""
    found: dict[str, str] = {}
    with h5py.File(path, "r") as file:
        _walk(file, "", 0, found)
    return {name: digest for name, digest in found.items() if name not in MAY_DIFFER}


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The objects whose values differ, or which one file lacks."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _walk(group: h5py.Group, place: str, depth: int, found: dict[str, str]) -> None:
    _attributes(group, f"{place}/", found)
    for name in group:
        inner = f"{place}/{name}"
        try:
            child = group[name]
            if isinstance(child, h5py.Group) and depth < NESTED_AT_MOST:
                _walk(child, inner, depth + 1, found)
            elif isinstance(child, h5py.Dataset):
                found[inner] = _digest(child[()]) if child.size <= LARGEST else "too large"
                _attributes(child, inner, found)
            else:
                found[inner] = type(child).__name__
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError):
            found[inner] = "unreadable"


def _attributes(owner: Any, place: str, found: dict[str, str]) -> None:
    for name in owner.attrs:
        if name not in STORAGE:
            try:
                found[f"{place}@{name}"] = _digest(owner.attrs[name])
            except (OSError, RuntimeError, KeyError, ValueError, TypeError):
                found[f"{place}@{name}"] = "unreadable"


def _digest(value: Any) -> str:
    """Equal for equal numbers of the same shape, whatever type carries them; NaN by its bits."""
    array = np.asarray(value)
    if array.dtype.kind in "iufb":
        wide = array.astype(np.float64)
        exact = array.dtype.kind in "fb" or bool(np.all(wide.astype(array.dtype) == array))
        data = wide.tobytes() if exact else array.astype(f"{array.dtype.kind}8").tobytes()
    else:
        data = repr(array.tolist()).encode()
    return hashlib.sha256(repr(array.shape).encode() + data).hexdigest()[:16]
