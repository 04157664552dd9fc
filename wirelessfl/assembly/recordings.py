"""Gains, positions and presence that a file holds, as the core takes them.

Rounds in files count from 1, clients from 0; −2 stands for the jammer, as in a trace.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.csv_table import CsvTable, existing, read_csv
from wirelessfl.errors import DataError, TraceError, precondition
from wirelessfl.learning.faults import RecordedAvailability
from wirelessfl.radio import GivenPositions, Recorded
from wirelessfl.scenario.base import LARGEST_SINGLE, LEAST_NORM
from wirelessfl.trace import FORMAT, GAIN_AXES, JAMMER_AXIS, JAMMER_NODE, Status, opened_values

_KEY_GAINS, _KEY_POSITIONS, _KEY_PRESENCE, _KEY_NORMS = (
    "channel.fading.file",
    "channel.placement.file",
    "faults.availability.file",
    "uplink.power_control.expected_norms",
)


def load_gains(file: str, rounds: int, clients: int) -> tuple[Recorded, Recorded | None]:
    """Small-scale gains of the clients, and of the jammer where the file has them.

    A trace gives h/√β of what it recorded; an HDF5 file holds ``gain_re`` and ``gain_im`` (round, client), and
    ``jammer_gain_re`` and ``jammer_gain_im`` (round) if it likes; CSV has the columns round, client, re and im.

    Args:
        file: path of the file.
        rounds: M, how many rounds are needed.
        clients: K, how many clients are needed.

    Raises:
        DataError: the file is missing or damaged, or holds fewer rounds or clients.
    """
    path = existing(file, _KEY_GAINS)
    gains, jammer = _gains_of_hdf5(path) if h5py.is_hdf5(path) else _gains_of_csv(path)
    found = (gains.shape[0] - 1, gains.shape[1])
    precondition(
        found[0] >= rounds and found[1] >= clients,
        f"{_KEY_GAINS}: {file} holds {found[0]} rounds of {found[1]} clients; "
        f"allowed here: at least {rounds} rounds of {clients} clients",
        DataError,
    )
    return Recorded(gains), None if np.all(np.isnan(jammer)) else Recorded(jammer[:, None])


def recorded_fading(file: str | None, rounds: int, clients: int, jammer: bool) -> Recorded:
    """The recorded gains of the clients, or of the jammer.

    Raises:
        DataError: the file is missing or damaged, holds too little, or lacks the jammer.
    """
    assert file is not None, "the scenario was checked"
    gains = load_gains(file, rounds, clients)[int(jammer)]
    if gains is None:
        raise DataError(f"{_KEY_GAINS}: {file} holds no gains of the jammer, which the scenario has")
    return gains


def given_positions(points_m: tuple[tuple[float, float], ...] | None, file: str | None, clients: int) -> GivenPositions:
    """The positions that a scenario lists, or its file.

    Raises:
        DataError: the file is missing or damaged, or holds fewer clients.
    """
    assert points_m is not None or file is not None, "the scenario was checked"
    return GivenPositions(points_m or load_positions(str(file), clients))


def recorded_availability(file: str | None, rounds: int, clients: int) -> RecordedAvailability:
    """The recorded presence.

    Raises:
        DataError: the file is missing or damaged, or holds fewer rounds.
    """
    assert file is not None, "the scenario was checked"
    return RecordedAvailability(load_presence(file, rounds, clients))


def load_positions(file: str, clients: int) -> tuple[tuple[float, float], ...]:
    """Positions (x, y) in metres from the columns x and y of a CSV file.

    Raises:
        DataError: the file is missing or damaged, or holds fewer clients.
    """
    table = read_csv(existing(file, _KEY_POSITIONS), ("x", "y"), _KEY_POSITIONS).rows
    too_few = f"{_KEY_POSITIONS}: {file} holds {len(table)} positions; allowed here: at least {clients}"
    precondition(len(table) >= clients, too_few, DataError)
    return tuple((float(x), float(y)) for x, y in table)


def load_norms(file: str, rounds: int) -> tuple[float, ...]:
    """Expected norms, one a round, from the columns round and norm of a CSV file.

    Raises:
        DataError: the file is missing or damaged, lacks a round or holds one twice, or a norm that is out of range.
    """
    found = read_csv(existing(file, _KEY_NORMS), ("round", "norm"), _KEY_NORMS)
    found.whole("round", 1)
    found.once("round")
    table = found.rows
    norm_of = dict(table.tolist())
    missing = next((index for index in range(1, rounds + 1) if index not in norm_of), None)
    if missing is not None:
        raise DataError(
            f"{_KEY_NORMS}: {file} holds no norm for round {missing}; allowed here: {rounds} rounds, from 1"
        )
    allowed = f"from {LEAST_NORM:g} to {LARGEST_SINGLE:g}"
    for norm in (table[:, 1].min(), table[:, 1].max()):
        within = LEAST_NORM <= norm <= LARGEST_SINGLE
        precondition(within, f"{_KEY_NORMS}: {file} holds a norm of {norm:g}; allowed: {allowed}", DataError)
    return tuple(norm_of[index] for index in range(1, rounds + 1))


def load_presence(file: str, rounds: int, clients: int) -> NDArray[np.bool_]:
    """Presence of the clients, (rounds + 1, clients) with an empty row for round 0.

    CSV with the columns round, client and available (0 or 1), or a trace; whoever is not named in a round is there.

    Raises:
        DataError: the file is missing or damaged, holds fewer rounds, or a client twice in a round.
    """
    path = existing(file, _KEY_PRESENCE)
    if h5py.is_hdf5(path):
        round_index, client, present = _presence_of_trace(path)
    else:
        table = read_csv(path, ("round", "client", "available"), _KEY_PRESENCE)
        round_index, client = _rounds_and_clients(table)
        table.whole("available", 0, most=1)
        present = table.rows[:, 2]
    held = int(round_index.max(initial=0))
    too_few = f"{_KEY_PRESENCE}: {file} holds {held} rounds; allowed here: at least {rounds}"
    precondition(held >= rounds, too_few, DataError)
    presence = np.ones((rounds + 1, clients), dtype=np.bool_)
    known = (client < clients) & (round_index <= rounds)
    presence[round_index[known], client[known]] = present[known] > 0
    return presence


@contextmanager
def _opened(path: Path, key: str, kind: str) -> Iterator[h5py.File]:
    # A file that is there, open for reading. Raises DataError: it cannot be read as what it should be, or refers to
    # what lies outside of it.
    try:
        with opened_values(path) as file:
            yield file
    except TraceError as error:
        raise DataError(f"{key}: cannot be read as {kind}: {error}") from error


def _gains_of_hdf5(path: Path) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    with _opened(path, _KEY_GAINS, "a trace or a file of gains") as file:
        if file.attrs.get("format") == FORMAT:
            return _gains_of_trace(file)
        gains = np.asarray(file["gain_re"]) + 1j * np.asarray(file["gain_im"])
        jammer = np.full(len(gains), np.nan, dtype=np.complex128)
        if "jammer_gain_re" in file:
            jammer = np.asarray(file["jammer_gain_re"]) + 1j * np.asarray(file["jammer_gain_im"])
    shapes = f"{_KEY_GAINS}: {path}: gain_re and gain_im must be (round, client), jammer gains (round)"
    precondition(gains.ndim == 2 and jammer.shape == gains.shape[:1], shapes, DataError)
    return _from_round_one(gains), _from_round_one(jammer)


def _gains_of_trace(file: h5py.File) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    # h/√β, also of the jammer. Raises DataError: its slots have several pieces, say, where a recording has one block of
    # fading a round.
    pieces = math.prod(len(file[axis]) for axis in GAIN_AXES if axis in file)
    allowed = "allowed: a trace with one gain a round and client"
    precondition(pieces <= 1, f"{_KEY_GAINS}: {file.filename} has slots of {pieces} pieces; {allowed}", DataError)
    jammer_antennas = len(file[JAMMER_AXIS]) if JAMMER_AXIS in file else 1
    several = f"{_KEY_GAINS}: {file.filename} has a jammer with {jammer_antennas} antennas"
    precondition(jammer_antennas == 1, f"{several}; {allowed}, and of a jammer with one antenna", DataError)
    rounds = np.asarray(file["round"])
    ids = np.asarray(file["client_id"])[: len(rounds)]
    channel = np.asarray(file["channel_re"]) + 1j * np.asarray(file["channel_im"])
    small_scale = (channel / np.sqrt(np.asarray(file["path_gain"])))[: len(rounds)]
    gains = _no_gains(rounds, ids)
    row, slot = np.nonzero(ids >= 0)
    gains[rounds[row], ids[row, slot]] = small_scale[row, slot]
    jammer = np.full(len(gains), np.nan, dtype=np.complex128)
    recorded = np.asarray(file["jammer_channel_re"]) + 1j * np.asarray(file["jammer_channel_im"])
    jammer[rounds] = (recorded / np.sqrt(np.asarray(file["jammer_path_gain"])))[: len(rounds)]
    return gains, jammer


def _no_gains(rounds: NDArray[np.int64], clients: NDArray[np.int64]) -> NDArray[np.complex128]:
    # NaN for all rounds and clients up to the largest. Raises DataError: they are more than a file of so many gains
    # would name.
    shape = (int(rounds.max(initial=0)) + 1, int(clients.max(initial=-1)) + 1)
    precondition(
        math.prod(shape) <= _MOST_GAINS,
        f"{_KEY_GAINS}: found gains up to round {shape[0] - 1} and client {shape[1] - 1}; "
        f"allowed: at most {_MOST_GAINS:,} rounds times clients",
        DataError,
    )
    return np.full(shape, np.nan, dtype=np.complex128)


# 1.6 GB
_MOST_GAINS = 10**8


def _gains_of_csv(path: Path) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    table = read_csv(path, ("round", "client", "re", "im"), _KEY_GAINS)
    round_index, client = _rounds_and_clients(table, JAMMER_NODE)
    value = table.rows[:, 2] + 1j * table.rows[:, 3]
    gains = _no_gains(round_index, client)
    jammer = np.full(len(gains), np.nan, dtype=np.complex128)
    of_jammer = client == JAMMER_NODE
    gains[round_index[~of_jammer], client[~of_jammer]] = value[~of_jammer]
    jammer[round_index[of_jammer]] = value[of_jammer]
    return gains, jammer


def _presence_of_trace(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    with _opened(path, _KEY_PRESENCE, "a trace") as file:
        no_trace = f"{_KEY_PRESENCE}: {path} is no trace; allowed: a trace or a CSV file"
        precondition(file.attrs.get("format") == FORMAT, no_trace, DataError)
        rounds = np.asarray(file["round"])
        ids, status = (np.asarray(file[name])[: len(rounds)] for name in ("client_id", "status"))
    row, slot = np.nonzero(ids >= 0)
    present = (status[row, slot] != Status.UNAVAILABLE).astype(np.float64)
    return rounds[row], ids[row, slot], present


def _from_round_one(gains: NDArray[np.complex128]) -> NDArray[np.complex128]:
    # An empty row for round 0 in front.
    nothing = np.full((1, *gains.shape[1:]), np.nan, dtype=np.complex128)
    return np.concatenate([nothing, gains.astype(np.complex128)])


def _rounds_and_clients(table: CsvTable, also: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # The rounds and clients of a table, each pair once. Raises DataError: one is no whole number, out of range, or the
    # pair stands there twice.
    found = table.whole("round", 1), table.whole("client", 0, also=also)
    table.once("round", "client")
    return found
