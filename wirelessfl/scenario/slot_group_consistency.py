"""Contradictions of groups of clients that send over the air in slots of their own."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import ImportedFading, IndependentFading
from wirelessfl.scenario.geography import SingleCell
from wirelessfl.scenario.modulation import WaveformModulation
from wirelessfl.scenario.power_control import LowerGain, PrivacyForFree
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir

KEY = "uplink.slot_groups"


def slot_group_rules(scenario: Sections) -> list[Rule]:
    """Rules of ``uplink.slot_groups``."""
    uplink, most = scenario.uplink, scenario.clients.most
    if not isinstance(uplink, OverTheAir) or uplink.slot_groups == 1:
        return []
    groups, fading = uplink.slot_groups, scenario.channel.fading
    moves = not isinstance(scenario.channel.correlation, IndependentFading) or isinstance(fading, ImportedFading)
    control, beside = uplink.power_control, f"with uplink.slot_groups: {groups}, while the theorem is of one sum of all"
    return [
        (
            isinstance(control, PrivacyForFree),
            "uplink.power_control.policy",
            f"{control.policy} {beside}",
            "another policy, or uplink.slot_groups: 1",
        ),
        (
            isinstance(control, LowerGain) and control.calibration == "theorem",
            "uplink.power_control.calibration",
            f"theorem {beside}",
            "exact, or uplink.slot_groups: 1",
        ),
        (groups > most, KEY, f"{groups} groups of the {most} clients of a round", f"at most {most}"),
        (
            not isinstance(scenario.topology, SingleCell),
            KEY,
            f"{groups} groups with topology.kind: {scenario.topology.kind}, whose receivers all read one slot",
            "1, or topology.kind: single_cell",
        ),
        (
            isinstance(uplink.modulation, WaveformModulation),
            KEY,
            f"{groups} groups with a modulation whose receiver takes votes or sparse sums, and no sum of updates",
            "1, or uplink.modulation.scheme: analog",
        ),
        (
            scenario.privacy.observer is not None,
            KEY,
            f"{groups} groups with privacy.observer, for whom no joint view of several slots is derived",
            "1, or privacy.observer: null",
        ),
        (
            uplink.jammer is not None and uplink.jammer.role == "rotating",
            KEY,
            f"{groups} groups with a jammer that is one of the clients, and would be in one group alone",
            "1, or uplink.jammer.role: external",
        ),
        (
            uplink.jammer is not None and uplink.jammer.calibration == "theorem",
            KEY,
            f"{groups} groups with uplink.jammer.calibration: theorem; it is of one sum of all clients",
            "1, or uplink.jammer.calibration: exact",
        ),
        (
            uplink.jammer is not None and moves,
            KEY,
            f"{groups} groups with a jammer over channels that change within a round, of which a trace has one slot",
            "1, or channel.correlation.model: independent",
        ),
    ]
