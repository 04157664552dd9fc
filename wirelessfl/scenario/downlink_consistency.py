"""Contradictions of the downlink and the rest of a scenario."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import ImportedFading, RayleighFading, RecordedFading
from wirelessfl.scenario.downlink import ErrorFreeDownlink, FixedDownlink
from wirelessfl.scenario.geography import ExternalPathLoss, SingleCell, Tr38901PathLoss
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import DigitalLink, RecordedRate, transmits_in_watts


def downlink_rules(scenario: Sections) -> list[Rule]:
    """Rules of broadcasts that fade."""
    downlink, uplink, fading = scenario.downlink, scenario.uplink, scenario.channel.fading
    if isinstance(downlink, ErrorFreeDownlink):
        return []
    in_watts, one_gain = transmits_in_watts(uplink), isinstance(fading, RecordedFading | ImportedFading)
    logged = isinstance(uplink, DigitalLink) and isinstance(uplink.rate, RecordedRate)
    rules: list[Rule] = [
        (
            in_watts and downlink.tx_power_dbm is None,
            "downlink.snr_db",
            f"{downlink.snr_db} with uplink.tx_power_dbm",
            "null, and downlink.tx_power_dbm: path gains are absolute",
        ),
        (
            not in_watts and downlink.tx_power_dbm is not None,
            "downlink.tx_power_dbm",
            f"{downlink.tx_power_dbm} without uplink.tx_power_dbm",
            "null, and downlink.snr_db: path gains are relative to a reference distance",
        ),
        (
            not in_watts and isinstance(fading, ImportedFading),
            "downlink.snr_db",
            f"{downlink.snr_db} with imported channels, whose gains are absolute",
            "tx_power_dbm, of the uplink too",
        ),
        (
            not isinstance(scenario.topology, SingleCell),
            "downlink.model",
            f"{downlink.model} with topology.kind: {scenario.topology.kind}",
            "error_free, or single_cell: who hears which of several base stations is not modelled",
        ),
        (
            downlink.duplex == "fdd" and one_gain,
            "downlink.duplex",
            f"fdd with {fading.model} fading, which has one gain for each client and instant",
            "tdd, or fading that is drawn",
        ),
        (
            downlink.duplex == "tdd" and logged,
            "downlink.duplex",
            "tdd with uplink.rate.model: recorded, which knows no channel",
            "fdd",
        ),
    ]
    return [*rules, *(_fixed(scenario, downlink) if isinstance(downlink, FixedDownlink) else [])]


def _fixed(scenario: Sections, downlink: FixedDownlink) -> list[Rule]:
    fading, pathloss, key = scenario.channel.fading, scenario.channel.pathloss, "downlink.outage"
    if downlink.outage is None:
        return []
    sighted = isinstance(pathloss, Tr38901PathLoss | ExternalPathLoss)
    return [
        (
            downlink.rate_bps is not None,
            key,
            f"{downlink.outage:g} with rate_bps: {downlink.rate_bps}",
            "only one of them: each sets the rate",
        ),
        (
            not isinstance(fading, RayleighFading) or sighted,
            key,
            f"{downlink.outage:g} with {fading.model} fading and channel.pathloss.model: {pathloss.model}",
            "null with rate_bps, or rayleigh fading without lines of sight, whose outage has a closed form",
        ),
    ]
