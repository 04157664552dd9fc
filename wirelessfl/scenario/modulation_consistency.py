"""Contradictions of modulations over the air with power control, antennas, training and topology."""

from wirelessfl.scenario.algorithm import Ditto, FedAvg, FedProx, FineTune, Upcycled
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import IndependentFading, StaticFading
from wirelessfl.scenario.geography import NoPathLoss, SingleCell
from wirelessfl.scenario.modulation import AnalogModulation, DDsgd, WaveformModulation
from wirelessfl.scenario.power_control import NoCsi, RisFl
from wirelessfl.scenario.reception import ArrayReceiver
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir


def modulation_rules(scenario: Sections) -> list[Rule]:
    """Rules of the modulation, and of transmission without channel knowledge."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir):
        return []
    parts = (_waveform, _gaussian_channel, _no_csi, _centred)
    return [rule for rules_of in parts for rule in rules_of(scenario, uplink)]


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
            not isinstance(algorithm, FedAvg | FedProx | Upcycled | Ditto | FineTune),
            "training.algorithm.name",
            f"{algorithm.name} {beside}, whose step is no sum of what clients send",
            "fedavg | fedprox | upcycled | ditto | fine_tune",
        ),
    ]


def _gaussian_channel(scenario: Sections, uplink: OverTheAir) -> list[Rule]:
    # The capacity of D-DSGD is that of equal clients on a Gaussian channel
    if not isinstance(uplink.modulation, DDsgd):
        return []
    channel, csi, sync = scenario.channel, scenario.channel.csi, scenario.channel.sync
    beside = "with the modulation d_dsgd, whose capacity is that of a Gaussian channel"
    antennas = uplink.receiver.antennas if isinstance(uplink.receiver, ArrayReceiver) else 1
    zeros = {
        "faults.fade_threshold": scenario.faults.fade_threshold,
        "channel.csi.error_std": csi.error_std,
        "channel.sync.phase_std": sync.phase_std,
        "channel.sync.max_offset": sync.max_offset,
        "channel.sync.cfo_hz": sync.cfo_hz,
    }
    return [
        *((value > 0, name, f"{value:g} {beside}", "0") for name, value in zeros.items()),
        (
            not isinstance(channel.fading, StaticFading),
            "channel.fading.model",
            f"{channel.fading.model} {beside}",
            "static",
        ),
        (
            not isinstance(channel.correlation, IndependentFading),
            "channel.correlation.model",
            f"fading in time {beside}",
            "independent",
        ),
        (
            not isinstance(channel.pathloss, NoPathLoss),
            "channel.pathloss.model",
            f"a path loss {beside} with clients of equal power",
            "none",
        ),
        (csi.pilot_symbols is not None, "channel.csi.pilot_symbols", f"{csi.pilot_symbols} {beside}", "null"),
        (uplink.peak_power_db is not None, "uplink.peak_power_db", f"{uplink.peak_power_db} {beside}", "null"),
        (antennas > 1, "uplink.receiver.antennas", f"{antennas} {beside} to one antenna", "1"),
        *(
            (
                role.role == "power_cheat",
                f"clients.roles.{index}.role",
                "power_cheat with the modulation d_dsgd, which decodes bits whatever their power",
                "another role, or another modulation",
            )
            for index, role in enumerate(scenario.clients.roles)
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


def _centred(scenario: Sections, uplink: OverTheAir) -> list[Rule]:
    # The scale follows from the variances of all senders, and is known only when all of them have trained
    if not isinstance(uplink.power_control, RisFl):
        return []
    scheme, topology = uplink.modulation.scheme, scenario.topology
    beside = "with the power control ris_fl, whose scale follows from the updates"
    return [
        (
            not isinstance(uplink.modulation, AnalogModulation | WaveformModulation),  # which names its policies itself
            "uplink.power_control.policy",
            f"ris_fl with the modulation {scheme}, to whose sum no means can be added",
            "another policy, or the modulation analog",
        ),
        (
            not isinstance(topology, SingleCell),
            "topology.kind",
            f"{topology.kind} {beside} of one receiver's clients",
            "single_cell",
        ),
        (
            uplink.jammer is not None,
            "uplink.jammer",
            f"a jammer {beside}: no noise gives a guarantee, as means and variances are told without any",
            "null, or another policy",
        ),
        (
            uplink.peak_power_db is not None,
            "uplink.peak_power_db",
            f"{uplink.peak_power_db or 0:g} {beside}: what an amplifier clips depends on it",
            "null, or another policy",
        ),
        *(
            (
                role.strength != 1.0,
                f"clients.roles.{index}.role",
                f"{role.role} by {role.strength:g} {beside}: how loud a client can send is known last",
                "factor: 1, another role, or another policy",
            )
            for index, role in enumerate(scenario.clients.roles)
        ),
    ]
