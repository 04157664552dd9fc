"""Contradictions around an external observer."""

import math

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import ImportedFading, RecordedFading
from wirelessfl.scenario.geography import NoPathLoss, Tr38901PathLoss
from wirelessfl.scenario.modulation import WaveformModulation
from wirelessfl.scenario.observer import Observer
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir, jammer_of

_KEY = "privacy.observer"
_LIMIT_M = 1.0e5
_TR38901_LIMIT_M = 5.0e3  # of Table 7.4.1-1


def observer_rules(scenario: Sections) -> list[Rule]:
    """Rules of an observer with a place of its own."""
    observer = scenario.privacy.observer
    if observer is None:
        return []
    return [*_place(scenario, observer), *_beside(scenario)]


def farthest_m(scenario: Sections) -> float:
    """How far from the base station an observer may stand [m]."""
    return _TR38901_LIMIT_M if isinstance(scenario.channel.pathloss, Tr38901PathLoss) else _LIMIT_M


def _place(scenario: Sections, observer: Observer) -> list[Rule]:
    # What its gains follow from
    channel, pathloss, uplink = scenario.channel, scenario.channel.pathloss, scenario.uplink
    limit_m = farthest_m(scenario)
    distance_m = math.hypot(*observer.position_m)
    return [
        (
            not isinstance(uplink, OverTheAir),
            _KEY,
            f"a place with uplink.kind: {uplink.kind}, whose messages are encrypted or not on the air",
            "null with adversary: observer, who sees the released models; or over_the_air",
        ),
        (
            isinstance(pathloss, NoPathLoss),
            _KEY,
            "a place with channel.pathloss.model: none",
            "null, or a path loss, from which its gains follow",
        ),
        (
            distance_m > limit_m,
            f"{_KEY}.position_m",
            f"{list(observer.position_m)}, {distance_m:g} m from the base station",
            f"up to {limit_m:g} m, as far as the path loss {pathloss.model} goes",
        ),
        (
            isinstance(channel.fading, RecordedFading | ImportedFading),
            _KEY,
            f"a place with {channel.fading.model} fading, whose file has no gains to it",
            "null, or fading that is drawn",
        ),
    ]


def _beside(scenario: Sections) -> list[Rule]:
    # What is not modelled beside it
    uplink, channel, jammer = scenario.uplink, scenario.channel, jammer_of(scenario.uplink)
    modulation, control = getattr(uplink, "modulation", None), getattr(uplink, "power_control", None)
    exact = jammer is not None and jammer.calibration == "exact"
    return [
        (
            channel.sync.max_offset > 0,
            _KEY,
            f"a place with channel.sync.max_offset: {channel.sync.max_offset:g}",
            "null, or 0: how late clients arrive elsewhere is not modelled",
        ),
        (
            jammer is not None and jammer.noise == "real",
            "uplink.jammer.noise",
            "real with privacy.observer, to whom its phase is not known",
            "complex",
        ),
        (
            exact or getattr(control, "calibration", None) == "exact",
            "uplink.jammer.calibration" if exact else "uplink.power_control.calibration",
            "exact with privacy.observer: who sets power does not know where the observer stands",
            "theorem",
        ),
        (
            isinstance(modulation, WaveformModulation),
            _KEY,
            f"a place with uplink.modulation.scheme: {getattr(modulation, 'scheme', None)}",
            "null, or analog",
        ),
    ]
