"""Contradictions of modulations over the air with power control, antennas, training and topology."""

from wirelessfl.scenario.algorithm import FedAvg, FedProx, Upcycled
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.geography import SingleCell
from wirelessfl.scenario.modulation import WaveformModulation
from wirelessfl.scenario.power_control import NoCsi
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir


def modulation_rules(scenario: Sections) -> list[Rule]:
    """Rules of the modulation, and of transmission without channel knowledge."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir):
        return []
    return [*_waveform(scenario, uplink), *_no_csi(scenario, uplink)]


def _waveform(scenario: Sections, uplink: OverTheAir) -> list[Rule]:
    scheme, control, receiver = uplink.modulation, uplink.power_control, uplink.receiver
    if not isinstance(scheme, WaveformModulation):
        return []
    name, algorithm, topology = scheme.scheme, scenario.training.algorithm, scenario.topology
    beside = f"with the modulation {name}"
    combiners = " | ".join(scheme.combiners)
    return [
        (
            control.policy not in scheme.policies,
            "uplink.power_control.policy",
            f"{control.policy} {beside}",
            " | ".join(scheme.policies),
        ),
        (
            uplink.iq_packing and not scheme.packs,
            "uplink.iq_packing",
            f"true {beside}, whose symbols are tones",
            "false",
        ),
        (
            receiver.combiner not in scheme.combiners,
            "uplink.receiver.combiner",
            f"{receiver.combiner} {beside}",
            combiners,
        ),
        (uplink.jammer is not None, "uplink.jammer", f"a jammer {beside}", "null, or the modulation analog"),
        (
            not isinstance(topology, SingleCell),
            "topology.kind",
            f"{topology.kind} {beside}, whose step is that of one receiver",
            "single_cell",
        ),
        (
            not isinstance(algorithm, FedAvg | FedProx | Upcycled),
            "training.algorithm.name",
            f"{algorithm.name} {beside}, whose step is no sum of what clients send",
            "fedavg | fedprox | upcycled",
        ),
    ]


def _no_csi(scenario: Sections, uplink: OverTheAir) -> list[Rule]:
    if not isinstance(uplink.power_control, NoCsi):
        return []
    csi, threshold, scheme = scenario.channel.csi, scenario.faults.fade_threshold, uplink.modulation.scheme
    linear, known = not isinstance(uplink.modulation, WaveformModulation), "with the power control no_csi"
    return [
        (
            linear,
            "uplink.power_control.policy",
            f"no_csi with the modulation {scheme}, which needs phases that agree",
            "another policy, or a modulation that works without them: fsk_vote | blind",
        ),
        (threshold > 0, "faults.fade_threshold", f"{threshold:g} {known}, under which nobody knows a channel", "0"),
        (csi.error_std > 0, "channel.csi.error_std", f"{csi.error_std:g} {known}, whose clients have no estimate", "0"),
        (
            csi.pilot_symbols is not None,
            "channel.csi.pilot_symbols",
            f"{csi.pilot_symbols} {known}, whose clients have no estimate",
            "null",
        ),
    ]
