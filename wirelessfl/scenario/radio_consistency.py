"""Contradictions of the radio: channel, placement, faults and topology that do not go together."""

import math

from wirelessfl.scenario.algorithm import FedAvg, FedProx
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import (
    ClarkeFading,
    GaussMarkovFading,
    ImportedFading,
    IndependentFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    TdlFading,
)
from wirelessfl.scenario.clients import RecordedAvailability
from wirelessfl.scenario.geography import (
    GivenPlacement,
    Hierarchical,
    NoPathLoss,
    SingleCell,
)
from wirelessfl.scenario.imported_consistency import imported_rules, subcarriers_of
from wirelessfl.scenario.observer_consistency import observer_rules
from wirelessfl.scenario.reception import ArrayReceiver, NoCorrelation
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.server_optimizer import ServerSgd
from wirelessfl.scenario.uplink import AdaptiveRate, DigitalLink, FixedRate, Ideal, OverTheAir, jammer_of


def radio_rules(scenario: Sections) -> list[Rule]:
    """Rules of the channel and around it."""
    parts = (
        _fading,
        imported_rules,
        _arrays,
        _subcarriers,
        _waveform,
        _estimates,
        _placement,
        _faults,
        _topology,
        observer_rules,
    )
    return [rule for rules_of in parts for rule in rules_of(scenario)]


def _fading(scenario: Sections) -> list[Rule]:
    fading, correlation = scenario.channel.fading, scenario.channel.correlation
    scattered = isinstance(fading, RayleighFading | RicianFading | TdlFading)
    return [
        (
            isinstance(fading, RecordedFading) and fading.file is None,
            "channel.fading.file",
            "null with the model recorded",
            "the file that holds the gains",
        ),
        (
            isinstance(correlation, GaussMarkovFading | ClarkeFading) and not scattered,
            "channel.correlation.model",
            f"{correlation.model} with {fading.model} fading",
            "independent, or rayleigh | rician | tdl fading, whose scattered part can be correlated",
        ),
    ]


def _arrays(scenario: Sections) -> list[Rule]:
    receiver, fading = getattr(scenario.uplink, "receiver", None), scenario.channel.fading
    if not isinstance(receiver, ArrayReceiver) or receiver.antennas == 1:
        return []
    correlated, scattered = receiver.correlation, isinstance(fading, RayleighFading | RicianFading | TdlFading)
    return [
        (
            isinstance(fading, RecordedFading),
            "uplink.receiver.antennas",
            f"{receiver.antennas} with recorded fading, which has one gain a client",
            "1, or fading that is drawn",
        ),
        (
            not isinstance(correlated, NoCorrelation) and not scattered and not isinstance(fading, ImportedFading),
            "uplink.receiver.correlation.model",
            f"{correlated.model} with {fading.model} fading",
            "none, or rayleigh | rician | tdl fading, whose scattered part can be correlated",
        ),
    ]


def _digital_groups(scenario: Sections, uplink: DigitalLink) -> list[Rule]:
    # A message over groups of subcarriers takes their mean rate, which is known perfectly and does not change
    rate, channel, beside = uplink.rate, scenario.channel, "with tdl fading, by whose groups a message is divided"
    packets = isinstance(rate, AdaptiveRate) and rate.packets is not None
    return [
        (
            not isinstance(rate, AdaptiveRate | FixedRate) or packets,
            "uplink.rate.packets" if packets else "uplink.rate.model",
            f"{'packets' if packets else rate.model} {beside}",
            "null" if packets else "adaptive | fixed",
        ),
        (uplink.harq is not None, "uplink.harq", f"retransmissions {beside}", "null"),
        (channel.csi.error_std > 0, "channel.csi.error_std", f"{channel.csi.error_std:g} {beside}", "0"),
        (
            channel.csi.pilot_symbols is not None,
            "channel.csi.pilot_symbols",
            f"{channel.csi.pilot_symbols} {beside} at a rate that is known perfectly",
            "null",
        ),
        (
            not isinstance(channel.correlation, IndependentFading),
            "channel.correlation.model",
            f"{channel.correlation.model} {beside}",
            "independent",
        ),
    ]


def _subcarriers(scenario: Sections) -> list[Rule]:
    fading, sync, uplink = scenario.channel.fading, scenario.channel.sync, scenario.uplink
    if not isinstance(fading, TdlFading):
        return []
    grid = subcarriers_of(scenario)
    return [
        *(_digital_groups(scenario, uplink) if isinstance(uplink, DigitalLink) and fading.groups > 1 else []),
        (
            grid % fading.groups != 0,
            "channel.fading.groups",
            f"{fading.groups} with {grid} subcarriers (timing.ofdm)",
            "a divisor of them",
        ),
        (
            sync.max_offset > 0 and fading.groups > 1,
            "channel.sync.max_offset",
            f"{sync.max_offset:g} with {fading.groups} groups of subcarriers, of which no late arrival is modelled",
            "0, or channel.fading.groups: 1",
        ),
    ]


def _waveform(scenario: Sections) -> list[Rule]:
    sync, ofdm, uplink = scenario.channel.sync, scenario.timing.ofdm, scenario.uplink
    if sync.waveform != "ofdm":
        return []
    prefix = math.inf if ofdm is None else ofdm.cyclic_prefix_s * ofdm.subcarrier_spacing_hz
    key, over_the_air = "channel.sync.waveform", isinstance(uplink, OverTheAir)
    return [
        (not over_the_air, key, f"ofdm with uplink.kind: {uplink.kind}", "single_carrier, or over_the_air"),
        (ofdm is None, key, "ofdm without timing.ofdm", "single_carrier, or the grid in timing.ofdm"),
        (
            sync.max_offset > prefix,
            "channel.sync.max_offset",
            f"{sync.max_offset:g} symbols with the waveform ofdm",
            f"at most the cyclic prefix, cyclic_prefix_s · subcarrier_spacing_hz = {prefix:.4g}",
        ),
    ]


def _estimates(scenario: Sections) -> list[Rule]:
    csi, sync, uplink = scenario.channel.csi, scenario.channel.sync, scenario.uplink
    pilots, power, over_the_air = csi.pilot_symbols, csi.pilot_power_dbm, isinstance(uplink, OverTheAir)
    offsets = {"cfo_hz": sync.cfo_hz, "phase_std": sync.phase_std, "max_offset": sync.max_offset}
    symbols_key, power_key, kind = "channel.csi.pilot_symbols", "channel.csi.pilot_power_dbm", uplink.kind
    return [
        (
            pilots is not None and csi.error_std > 0,
            symbols_key,
            f"{pilots} with error_std: {csi.error_std}",
            "only one of them: pilots determine the size of the error",
        ),
        (
            pilots is not None and not isinstance(uplink, OverTheAir | DigitalLink),
            symbols_key,
            f"{pilots} with uplink.kind: {kind}, which has no channels",
            "null, or uplink.kind: over_the_air | digital | secure_aggregation",
        ),
        (
            power is not None and pilots is None,
            power_key,
            f"{power} without pilot_symbols",
            "null, or pilot_symbols set as well",
        ),
        (
            power is not None and pilots is not None and not isinstance(uplink, Ideal) and uplink.tx_power_dbm is None,
            power_key,
            f"{power} with uplink.snr_db",
            "null, or uplink.tx_power_dbm",
        ),
        (
            csi.refresh == "piece" and not isinstance(uplink, OverTheAir | DigitalLink),
            "channel.csi.refresh",
            f"piece with uplink.kind: {kind}",
            "slot, or uplink.kind: over_the_air | digital | secure_aggregation",
        ),
        *(
            (
                value > 0 and not over_the_air,
                f"channel.sync.{name}",
                f"{value} with uplink.kind: {kind}, whose receiver synchronises to each client by itself",
                "0, or uplink.kind: over_the_air",
            )
            for name, value in offsets.items()
        ),
    ]


def _placement(scenario: Sections) -> list[Rule]:
    placement, count, jammer = scenario.channel.placement, scenario.clients.count, jammer_of(scenario.uplink)
    if not isinstance(placement, GivenPlacement):
        return []
    points, located = placement.points_m, not isinstance(scenario.channel.pathloss, NoPathLoss)
    wrong, key = (points is None) == (placement.file is None), "channel.placement.points_m"
    found = "neither points_m nor file" if points is None else "both points_m and file"
    placed = 0 if points is None else len(points)
    return [
        (wrong, key, found, "exactly one of points_m and file"),
        (
            not wrong and points is not None and placed < count,
            key,
            f"{placed} positions for {count} clients",
            f"at least {count}, one for each client",
        ),
        (
            jammer is not None and jammer.role == "external" and jammer.position_m is None and located,
            "uplink.jammer.position_m",
            "null with channel.placement.scheme: positions",
            "the jammer's own [x, y]",
        ),
    ]


def _faults(scenario: Sections) -> list[Rule]:
    availability, failure = scenario.faults.availability, scenario.faults.jammer_failure
    return [
        (
            isinstance(availability, RecordedAvailability) and availability.file is None,
            "faults.availability.file",
            "null with the model recorded",
            "the file of the clients' presence",
        ),
        (
            failure > 0 and jammer_of(scenario.uplink) is None,
            "faults.jammer_failure",
            f"{failure} without a jammer",
            "0, or uplink.jammer set as well",
        ),
    ]


def _topology(scenario: Sections) -> list[Rule]:
    topology, uplink, channel = scenario.topology, scenario.uplink, scenario.channel
    if isinstance(topology, SingleCell):
        return []
    cells, edges, training = (
        f"with topology.kind: {topology.kind}",
        isinstance(topology, Hierarchical),
        scenario.training,
    )
    algorithm, optimizer = training.algorithm, training.server_optimizer
    return [
        (
            not isinstance(uplink, OverTheAir),
            "uplink.kind",
            f"{uplink.kind} {cells}",
            "over_the_air, or the topology single_cell",
        ),
        (
            jammer_of(uplink) is not None,
            "uplink.jammer",
            f"a jammer {cells}",
            "null: interference and jamming are not combined",
        ),
        (
            isinstance(channel.pathloss, NoPathLoss) and not isinstance(channel.fading, ImportedFading),
            "channel.pathloss.model",
            f"none {cells}",
            "a path loss, from which the serving cell follows",
        ),
        (
            isinstance(channel.fading, RecordedFading | ImportedFading),
            "channel.fading.model",
            f"{channel.fading.model} {cells}",
            "another model: a file holds the gains to one base station only",
        ),
        (
            edges and not isinstance(algorithm, FedAvg | FedProx),
            "training.algorithm.name",
            f"{algorithm.name} {cells}",
            "fedavg | fedprox",
        ),
        (
            edges and optimizer != ServerSgd(),
            "training.server_optimizer",
            f"{optimizer.name} with its own keys {cells}",
            "sgd with lr 1 and momentum 0: the cloud averages models",
        ),
    ]
