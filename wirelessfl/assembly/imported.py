"""Imported channels of a scenario: its file, held against clients, antennas, band and uplink."""

import math
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.assembly.reception import build_antennas
from wirelessfl.channels import ChannelRecord, read_channels
from wirelessfl.channels.file import Format
from wirelessfl.channels.statistics import without_walks
from wirelessfl.errors import DataError, ModelWarning, precondition
from wirelessfl.radio import ImportedChannels
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import ImportedFading
from wirelessfl.scenario.imported_consistency import subcarriers_of
from wirelessfl.scenario.uplink import DigitalLink, Ideal, OverTheAir

_FILE, _GROUPS = "channel.fading.file", "channel.fading.groups"
COHERENT = 0.9
"""Correlation of gains of a group of subcarriers below which one gain does not stand for all."""
# Difference of bandwidths that counts as rounding
_SAME_BAND = 0.01
_SHOWN = 5


def open_channels(
    file: str | None, format: Format, start: int, loop: bool, groups: int | None, clients: int, jammer: bool
) -> ImportedChannels:
    """The channels of the clients, or of the jammer as the only node.

    Raises:
        DataError: the file is missing, damaged or no channel file, or does not fit the clients or the groups.
    """
    assert file is not None, "the scenario was checked"
    record, name = _read(file, format), Path(file).name
    snapshots, held, _, subcarriers = record.gains.shape
    precondition(
        held == clients,
        f"{_FILE}: {name}: found the gains of {held} clients; allowed: {clients} (clients.count), one for each; "
        "`channels import --clients` takes some of a file",
        DataError,
    )
    precondition(
        start < snapshots,
        f"channel.fading.start: found {start}, and {snapshots} snapshots in {name}; allowed: 0 to {snapshots - 1}",
        DataError,
    )
    count = groups or subcarriers
    precondition(
        subcarriers % count == 0,
        f"{_GROUPS}: found {count} with {subcarriers} subcarriers in {name}; allowed: a divisor of them",
        DataError,
    )
    gains = record.gains
    if jammer:
        precondition(
            record.jammer is not None,
            f"{_FILE}: {name}: found no gains of the jammer (jammer), which the scenario has; allowed: a file with "
            "them, uplink.jammer.role: rotating, or no jammer",
            DataError,
        )
        assert record.jammer is not None
        gains = record.jammer[:, None]
    width = subcarriers // count
    taken = gains if width == 1 else gains[..., width // 2 :: width]
    distance = None if jammer else record.distance_m
    return ImportedChannels(taken, np.asarray(record.time_s, dtype=np.float64), start, loop, name, distance)


def imported_channels(scenario: Scenario, jammer: bool = False) -> ImportedChannels | None:
    """The channels of a scenario's file; None where its channels are drawn.

    Raises:
        DataError: as `open_channels`; or there are other antennas, or another band.
    """
    fading = scenario.channel.fading
    if not isinstance(fading, ImportedFading):
        return None
    located = found(scenario, "channel.fading", fading)
    channels: ImportedChannels = make_object("channel.fading.model", located, context=RunFacts.of(scenario, jammer))
    assert located.file is not None
    record = _read(located.file, located.format)
    if not isinstance(scenario.uplink, Ideal):
        _check_antennas(scenario, channels)
        _check_band(scenario, channels, record)
    if jammer:
        _check_jammer(channels)
    return channels


def check_imported(scenario: Scenario, channels: ImportedChannels) -> None:
    """Refusal of gains of 0 that nothing deals with, and warnings of gains that are hard to believe.

    Raises:
        DataError: a client is never reached; or is not at some time, and no threshold silences it then; or the file
            ends within the first slot.
    """
    fading = scenario.channel.fading
    assert isinstance(fading, ImportedFading), "the channels are those of its file"
    located = found(scenario, "channel.fading", fading)
    assert located.file is not None
    record, name = _read(located.file, located.format), channels.name
    if record.doubt is not None:
        warnings.warn(f"{_FILE}: {name}: {record.doubt}", ModelWarning, stacklevel=2)
    never = np.flatnonzero(channels.path_gain == 0)
    if len(never):
        raise DataError(
            f"{_FILE}: {name}: found gains of 0 in all snapshots for {_listed(never)}; allowed: clients that some path "
            "reaches; `channels import --clients` leaves others out"
        )
    _check_zeros(scenario, channels)
    _warn_of_wide_groups(channels, record)


def _check_zeros(scenario: Scenario, channels: ImportedChannels) -> None:
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir) or uplink.power_control.silences or scenario.faults.fade_threshold > 0:
        return
    silent = np.argwhere(np.all(channels.gains == 0, axis=2))
    if len(silent):
        snapshot, client, _ = silent[0].tolist()
        raise DataError(
            f"{_FILE}: {channels.name}: found a gain of 0 for client {client} in snapshot {snapshot} (and "
            f"{len(silent) - 1} more); allowed over the air: with faults.fade_threshold above 0, below which a client "
            "is silent"
        )


def check_first_slot(channels: ImportedChannels, airtime_s: float) -> None:
    """Refusal of a file that ends before the first slot does.

    Raises:
        DataError: it does.
    """
    if airtime_s > channels.left_s:
        snapshots = len(channels.time_s)
        needed = math.ceil(airtime_s / channels.interval_s)
        raise DataError(
            f"{_FILE}: {channels.name}: found {snapshots - channels.start} snapshots from channel.fading.start "
            f"{channels.start} on, {channels.left_s:.6g} s, with a slot of {airtime_s:.6g} s; allowed: about {needed}, "
            "or channel.fading.loop: true"
        )


def _check_antennas(scenario: Scenario, channels: ImportedChannels) -> None:
    held, antennas, kind = channels.gains.shape[2], build_antennas(scenario), scenario.uplink.kind
    key, here, allowed = "uplink.receiver.antennas", str(antennas), str(held)
    if getattr(scenario.uplink, "receiver", None) is None:
        key, here, allowed = "uplink.kind", kind, "over_the_air, uplink.receiver, or gains of one antenna"
    found_here = f"{key}: found {here}, and gains of {held} antennas in {channels.name}"
    precondition(held == antennas, f"{found_here}; allowed: {allowed}", DataError)


def _check_band(scenario: Scenario, channels: ImportedChannels, record: ChannelRecord) -> None:
    groups, subcarriers, timing = channels.gains.shape[3], record.gains.shape[3], scenario.timing
    if isinstance(scenario.uplink, DigitalLink) and groups > 1:
        raise DataError(
            f"{_GROUPS}: found {groups}, one for each subcarrier in {channels.name}, with uplink.kind: "
            f"{scenario.uplink.kind}; allowed: 1, or over_the_air"
        )
    width, key = timing.bandwidth_hz, "timing.bandwidth_hz"
    if timing.ofdm is not None:
        grid = subcarriers_of(scenario)
        width, key = grid * timing.ofdm.subcarrier_spacing_hz, "timing.ofdm"
        if grid % groups:
            raise DataError(f"{_GROUPS}: found {groups} with {grid} subcarriers (timing.ofdm); allowed: a divisor")
    held = record.bandwidth_hz
    if held is None or subcarriers == 1:
        return
    apart = abs(width / held - 1) > _SAME_BAND
    if (width > held if groups == 1 else True) and apart:
        allowed = f"at most {held:.6g}" if groups == 1 else f"{held:.6g}, or channel.fading.groups: 1 for a part of it"
        raise DataError(
            f"{key}: found {width:.6g} Hz, and gains over {held:.6g} Hz in {channels.name}; allowed: {allowed}"
        )


def _check_jammer(channels: ImportedChannels) -> None:
    silent = np.argwhere(np.all(channels.gains == 0, axis=2))
    if len(silent):
        raise DataError(
            f"{_FILE}: {channels.name}: jammer: found a gain of 0 in snapshot {silent[0, 0]} (and {len(silent) - 1} "
            "more), with which nothing of the jammer is received; allowed: other gains"
        )


def _warn_of_wide_groups(channels: ImportedChannels, record: ChannelRecord) -> None:
    groups, subcarriers = channels.gains.shape[3], record.gains.shape[3]
    apart = min(subcarriers // groups, subcarriers - 1)
    if subcarriers == groups:
        return
    products = []
    for client in range(record.gains.shape[1]):  # one after the other, for their memory
        gains = without_walks(record.gains[:, [client]], record, np.array([client]))
        products.append((gains[..., apart:] * gains[..., :-apart].conj()).mean())
    correlation = float(np.mean(np.abs(products) / channels.path_gain))
    if correlation < COHERENT:
        warnings.warn(
            f"{_GROUPS}: found {groups} groups of {subcarriers // groups} subcarriers in {channels.name}, {apart} "
            f"of which apart gains have the correlation {correlation:.2f}; with one gain each the groups are too wide, "
            f"and a frequency-selective channel is understated. More groups have {COHERENT} or more",
            ModelWarning,
            stacklevel=3,
        )


def _listed(clients: NDArray[np.int64]) -> str:
    more = f" and {len(clients) - _SHOWN} more" if len(clients) > _SHOWN else ""
    return f"client{'s' if len(clients) > 1 else ''} {', '.join(map(str, clients[:_SHOWN].tolist()))}{more}"


def _read(file: str, form: Format) -> ChannelRecord:
    try:
        about = Path(file).stat()
    except OSError:
        return read_channels(file, form, _FILE)  # which says why not
    return _remembered(file, form, about.st_mtime_ns, about.st_size, about.st_ino)


@lru_cache(maxsize=1)
def _remembered(file: str, form: Format, *about: int) -> ChannelRecord:
    return read_channels(file, form, _FILE)
