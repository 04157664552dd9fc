"""MATLAB files: their variables as arrays, and channels from them."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.file import OPTIONAL, REQUIRED, pairs_of, plain
from wirelessfl.channels.record import ChannelRecord
from wirelessfl.channels.sources.options import ImportOptions, amplitudes, needed, numbers, one_number
from wirelessfl.errors import DataError, TraceError, precondition
from wirelessfl.trace import opened_values

_MOST_BYTES = 4 * 10**9


def load_mat(path: Path, form: str) -> dict[str, Any]:
    """The variables of a MATLAB file of version 5 ("mat") or 7.3 ("mat73").

    Raises:
        DataError: it is damaged.
    """
    return _load_73(path) if form == "mat73" else _load_5(path)


def _load_5(path: Path) -> dict[str, Any]:
    from scipy import io  # which takes a while

    try:
        found = io.loadmat(path, struct_as_record=False)
    except Exception as error:  # the boundary: whatever a damaged file makes the reader raise
        raise DataError(f"no readable MATLAB file: {error}") from error
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _load_73(path: Path) -> dict[str, Any]:
    try:
        with opened_values(path, _inspect) as file:
            # MATLAB's axes are in the reverse order
            return {name: plain(node).T for name, node in file.items() if _holds_numbers(node)}
    except TraceError as error:
        raise DataError(str(error).removeprefix(f"{path}: ")) from error


def _inspect(path: Path, file: h5py.File) -> None:
    # Run in a process of its own: it reads what would be read
    total = 0
    for node in file.values():
        if _holds_numbers(node):
            total += node.size * node.dtype.itemsize
            if total > _MOST_BYTES:
                raise TraceError(f"{path}: found more than {_MOST_BYTES:,} bytes of numbers")


def _holds_numbers(node: h5py.Group | h5py.Dataset) -> bool:
    if not isinstance(node, h5py.Dataset) or node.shape is None:
        return False
    return node.dtype.kind in "iufb" or pairs_of(node.dtype) is not None


def from_matlab(arrays: dict[str, Any], options: ImportOptions) -> ChannelRecord:
    """Channels from variables that are named as in a channel file, or as the options say.

    Raises:
        DataError: something is missing, or of another shape.
    """
    wrong = options.names.keys() - {*REQUIRED, *OPTIONAL}
    precondition(
        not wrong,
        f"name: found {', '.join(sorted(wrong))}; allowed: {', '.join((*REQUIRED, *OPTIONAL))}",
        DataError,
    )
    for ours, theirs in options.names.items():
        arrays = {**arrays, ours: needed(arrays, theirs)}
    needed(arrays, "gains")
    gains = amplitudes(arrays, "gains")
    precondition(
        gains.ndim <= 4,
        f"gains: found the shape {gains.shape}; allowed: (snapshot, client, antenna, subcarrier)",
        DataError,
    )
    gains = _with_last_axes(gains, 4)
    places = numbers(arrays, "position_m") if "position_m" in arrays else None
    if places is not None and places.shape == (gains.shape[1], 3):
        places = np.broadcast_to(places, (*gains.shape[:2], 3))
    return ChannelRecord(
        gains=gains,
        time_s=options.times(arrays, "time_s", len(gains)),
        frequency_hz=options.frequencies(arrays, "frequency_hz", gains.shape[3]),
        position_m=places,
        receiver_m=numbers(arrays, "receiver_m").ravel() if "receiver_m" in arrays else None,
        carrier_hz=one_number(arrays, "carrier_hz"),
        jammer=_with_last_axes(amplitudes(arrays, "jammer"), 3) if "jammer" in arrays else None,
        source="MATLAB",
    )


def _with_last_axes(found: NDArray[Any], count: int) -> NDArray[Any]:
    # MATLAB leaves out last axes of length 1
    return found.reshape(*found.shape, *[1] * (count - found.ndim))
