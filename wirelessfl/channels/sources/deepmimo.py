"""DeepMIMO: arrays of version 4 (.npz, .mat), and datasets of the MATLAB generators (.mat)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.record import ChannelRecord
from wirelessfl.channels.sources.options import ImportOptions, amplitudes, needed, numbers, places
from wirelessfl.errors import DataError

_DATASET = "DeepMIMO_dataset"


def from_deepmimo(arrays: dict[str, Any], options: ImportOptions) -> ChannelRecord:
    """Channels from base station to users, taken for those from users to base station, by reciprocity.

    DeepMIMO's gains of a link are √(P/N) e^{jφ} for each path, with P its path gain (received watts of one watt sent)
    and N all subcarriers of an OFDM symbol; they are multiplied by √N here.

    Raises:
        DataError: something is missing, or of another shape.
    """
    if options.ofdm_subcarriers is None:
        raise DataError(
            "found no --ofdm-subcarriers; allowed: the number of all subcarriers of an OFDM symbol (ofdm.subcarriers "
            "of DeepMIMO), by whose root its gains are divided"
        )
    if _DATASET in arrays:
        arrays = _of_structures(arrays[_DATASET], options)
    else:
        options.one_of("receiver", 1, "base stations of an array")
    name = "channel" if "channel" in arrays else "channels"
    needed(arrays, "channel", "channels")
    found = _by_snapshot(name, amplitudes(arrays, name), arrays)
    if not found.shape[4] <= options.ofdm_subcarriers:
        raise DataError(f"ofdm-subcarriers: found {options.ofdm_subcarriers}; allowed: at least {found.shape[4]}")
    antenna = options.one_of("antenna", found.shape[2], "antennas of a user")
    gains = found[:, :, antenna] * np.sqrt(options.ofdm_subcarriers)
    snapshots, clients = gains.shape[:2]
    stations = places(arrays, "tx_pos", 1)
    return ChannelRecord(
        gains=gains,
        time_s=options.times(arrays, "times", snapshots),
        frequency_hz=options.frequencies(arrays, "frequencies", gains.shape[3]),
        position_m=_positions(arrays, snapshots, clients),
        receiver_m=None if stations is None else stations[0],
        source="DeepMIMO",
    )


def _by_snapshot(name: str, found: NDArray[Any], arrays: dict[str, Any]) -> NDArray[Any]:
    # (snapshot, user, user antenna, base station antenna, subcarrier): scenes come first, times of one scene last
    if found.ndim == 4:
        return found[None]
    if found.ndim == 5 and "times" not in arrays:
        return found
    times = np.size(arrays.get("times", ()))
    if found.ndim == 5 and found.shape[4] == times:
        return np.moveaxis(found, 4, 0)
    meaning = "(user, user antenna, base station antenna, subcarrier), behind a scene, or before as many times as times"
    raise DataError(f"{name}: found the shape {found.shape}; allowed: {meaning}")


def _positions(arrays: dict[str, Any], snapshots: int, clients: int) -> NDArray[np.float64] | None:
    if "rx_pos" not in arrays:
        return None
    found = numbers(arrays, "rx_pos")
    if found.shape == (clients, 3):
        return np.broadcast_to(found, (snapshots, clients, 3))
    if found.shape == (snapshots, clients, 3):
        return found
    raise DataError(f"rx_pos: found the shape {found.shape}; allowed: ({clients}, 3), or one for each scene, in metres")


def _of_structures(stations: Any, options: ImportOptions) -> dict[str, Any]:
    # DeepMIMO_dataset{b}.user{u}: channel (user antenna, base station antenna, subcarrier) and loc; .loc of the station
    cells = np.asarray(stations).ravel()
    users = [_field(one, "user", f"{_DATASET}{{{number + 1}}}") for number, one in enumerate(cells)]
    station = options.one_of("receiver", len(cells), "base stations")
    where = f"{_DATASET}{{{station + 1}}}"
    rows = [
        (f"{where}.user{{{number + 1}}}", _only(one)) for number, one in enumerate(np.asarray(users[station]).ravel())
    ]
    channels = [_three(_field(user, "channel", name), name) for name, user in rows]
    shapes = {one.shape for one in channels}
    if len(shapes) != 1:
        raise DataError(f"{where}: found channels of the shapes {sorted(shapes)}; allowed: the same for all users")
    found: dict[str, Any] = {"channel": np.stack(channels)}
    if all(hasattr(user, "loc") for _, user in rows):
        found["rx_pos"] = np.stack([_place(user, name) for name, user in rows])
    if hasattr(own := _only(cells[station]), "loc"):
        found["tx_pos"] = _place(own, where)[None]
    return found


def _place(cell: Any, where: str) -> NDArray[np.float64]:
    # (3,) metres
    found = numbers({f"{where}.loc": cell.loc}, f"{where}.loc").ravel()
    if found.shape != (3,):
        raise DataError(f"{where}.loc: found {found.size} numbers; allowed: x, y and z in metres")
    return found


def _only(cell: Any) -> Any:
    # What a cell of MATLAB holds, out of the arrays of one element around it
    while isinstance(cell, np.ndarray) and cell.size == 1:
        cell = cell.ravel()[0]
    return cell


def _field(cell: Any, name: str, where: str) -> Any:
    found = getattr(_only(cell), name, None)
    if found is None:
        raise DataError(f"{where}: found no {name}; allowed: what DeepMIMO's generators write")
    return found


def _three(channel: Any, where: str) -> NDArray[Any]:
    found = np.asarray(channel)
    if found.dtype.kind not in "cfiu" or found.ndim > 3:
        raise DataError(f"{where}.channel: found {found.dtype} of the shape {found.shape}; allowed: complex numbers")
    # MATLAB leaves out last axes of length 1, and the imaginary part where it is 0
    return np.asarray(found.reshape(*found.shape, *[1] * (3 - found.ndim)), dtype=np.complex128)
