"""Sionna RT: path coefficients and delays of `Paths.cir`, or the frequency response of `Paths.cfr`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.record import ChannelRecord
from wirelessfl.channels.sources.options import ImportOptions, amplitudes, axes, needed, numbers, one_number, places
from wirelessfl.errors import DataError

_ENDS = ("receiver", "receive antenna", "transmitter", "transmit antenna")
_NUMPY = 'complex numbers, as out_type="numpy" gives them'


def from_sionna(arrays: dict[str, Any], options: ImportOptions) -> ChannelRecord:
    """Channels from `a` and `tau`, or from `cfr`, with `frequencies`, `times`, `tx_positions` and `rx_positions`.

    Raises:
        DataError: something of it is missing, or of another shape.
    """
    response = _response(arrays)  # (receiver, antenna, transmitter, antenna, time, subcarrier)
    side = options.clients_are or "tx"
    if side == "rx":  # the channel is the same in both directions
        response = response.transpose(2, 3, 0, 1, 4, 5)
    receiver = options.one_of("receiver", response.shape[0], "receivers")
    antenna = options.one_of("antenna", response.shape[3], "antennas of a client")
    gains = response[receiver, :, :, antenna].transpose(2, 1, 0, 3)
    snapshots, clients = gains.shape[:2]
    at = places(arrays, f"{side}_positions", clients)
    stations = places(arrays, f"{'rx' if side == 'tx' else 'tx'}_positions", response.shape[0])
    return ChannelRecord(
        gains=gains,
        time_s=options.times(arrays, "times", snapshots),
        frequency_hz=numbers(arrays, "frequencies").ravel() if "frequencies" in arrays else None,
        position_m=None if at is None else np.broadcast_to(at, (snapshots, clients, 3)),
        receiver_m=None if stations is None else stations[receiver],
        carrier_hz=one_number(arrays, "carrier_frequency"),
        source="Sionna RT",
    )


def _response(arrays: dict[str, Any]) -> NDArray[Any]:
    if "cfr" in arrays:
        found = _without_batch("cfr", amplitudes(arrays, "cfr", _NUMPY), 6)
        return axes("cfr", found, *_ENDS, "time", "subcarrier")
    needed(arrays, "a", "cfr")
    needed(arrays, "tau")
    paths = _without_batch("a", amplitudes(arrays, "a", _NUMPY), 6)
    axes("a", paths, *_ENDS, "path", "time")
    delay = numbers(arrays, "tau")
    # Of a synthetic array all antennas have the delays of its middle
    wanted = paths.shape[:5]
    narrow = (wanted[0], wanted[2], wanted[4])
    if delay.shape in ((1, *wanted), (1, *narrow)):
        delay = delay[0]
    if delay.shape == narrow:
        delay = delay[:, None, :, None]
    elif delay.shape != wanted:
        raise DataError(f"tau: found the shape {delay.shape}; allowed: {wanted}, or {narrow} of a synthetic array")
    frequency = numbers(arrays, "frequencies").ravel() if "frequencies" in arrays else np.zeros(1)
    response = np.empty((*wanted[:4], paths.shape[5], len(frequency)), dtype=np.complex128)
    for number, hertz in enumerate(frequency.tolist()):
        turned = np.exp(-2j * np.pi * hertz * delay)[..., None]
        response[..., number] = (paths * turned).sum(axis=4)
    return response


def _without_batch(name: str, found: NDArray[Any], dimensions: int) -> NDArray[Any]:
    # Sionna before 1.0 has a first axis of length 1
    if found.ndim == dimensions + 1 and found.shape[0] == 1:
        return np.asarray(found[0])
    return found
