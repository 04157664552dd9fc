"""Contradictions of imported channels: what else of the radio a channel file takes the place of."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import ExternalCorrelation, ImportedFading
from wirelessfl.scenario.geography import NoPathLoss
from wirelessfl.scenario.reception import ArrayReceiver, LinearArray, NoCorrelation, SumCombiner
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import DigitalLink, Ideal


def imported_rules(scenario: Sections) -> list[Rule]:
    """Rules around a channel file: its gains are absolute, and known for every antenna and subcarrier."""
    channel, uplink, model = scenario.channel, scenario.uplink, "channel.fading.model: imported"
    fading = channel.fading
    if not isinstance(fading, ImportedFading):
        return []
    groups, receiver = fading.groups or 1, getattr(uplink, "receiver", None)
    receiver = receiver if isinstance(receiver, ArrayReceiver) else SumCombiner()
    known = f"with {model}, which has every antenna's gain"
    grid, absolute = subcarriers_of(scenario), f"with {model}, whose gains are absolute"
    relative = not isinstance(uplink, Ideal) and uplink.tx_power_dbm is None
    return [
        (
            isinstance(channel.correlation, ExternalCorrelation),
            "channel.correlation.model",
            f"{channel.correlation.model} with {model}, whose gains have their times",
            "independent",
        ),
        (fading.file is None, "channel.fading.file", f"null with {model}", "the channel file"),
        (
            not isinstance(channel.pathloss, NoPathLoss),
            "channel.pathloss.model",
            f"{channel.pathloss.model} {absolute}",
            "none: the file's gains have the path loss",
        ),
        (
            relative,
            "uplink.snr_db",
            f"{getattr(uplink, 'snr_db', None)} {absolute}",
            "uplink.tx_power_dbm: the SNR follows from power, gains and noise",
        ),
        (
            isinstance(uplink, DigitalLink) and groups > 1,
            "channel.fading.groups",
            f"{groups} with uplink.kind: {uplink.kind}",
            "1, or over_the_air",
        ),
        (
            grid % groups != 0,
            "channel.fading.groups",
            f"{groups} with {grid} subcarriers (timing.ofdm)",
            "a divisor of them",
        ),
        (
            channel.sync.max_offset > 0 and fading.groups != 1,
            "channel.sync.max_offset",
            f"{channel.sync.max_offset:g} with {model} in groups of subcarriers, of which no late arrival is modelled",
            "0, or channel.fading.groups: 1",
        ),
        (
            not isinstance(receiver.correlation, NoCorrelation),
            "uplink.receiver.correlation.model",
            f"{receiver.correlation.model} {known}",
            "none",
        ),
        (receiver.array != LinearArray(), "uplink.receiver.array", f"an array of its own {known}", "its defaults"),
    ]


def subcarriers_of(scenario: Sections) -> int:
    """Subcarriers of the OFDM grid; 0 without one."""
    ofdm = scenario.timing.ofdm
    return 0 if ofdm is None else ofdm.subcarriers or int(scenario.timing.bandwidth_hz / ofdm.subcarrier_spacing_hz)
