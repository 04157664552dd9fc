"""Contradictions of arrays: correlations and beams that take too much, power controls that know one reading."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import RayleighFading, TdlFading
from wirelessfl.scenario.geography import ExternalPathLoss, SingleCell, Tr38901PathLoss
from wirelessfl.scenario.power_control import LowerGain, TruncatedInversion
from wirelessfl.scenario.reception import (
    ArrayReceiver,
    MaxMinCombiner,
    NoCorrelation,
    OneRing,
    RandomCombiner,
    SumCombiner,
)
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir

_MOST_BYTES = 2 << 30
"""Of the spatial correlations of all clients of a round."""
_MOST_HOLD = 256
"""Clients that may hold a max-min beam back: at most all of a slot, and as many as the beam has real numbers."""
_SCATTERED_PROFILES = ("A", "B", "C", "exponential")


def array_power_rules(scenario: Sections) -> list[Rule]:
    """Rules of arrays, and of power control with several antennas or base stations."""
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir):
        return []
    receiver, control, topology = uplink.receiver, uplink.power_control, scenario.topology
    antennas = receiver.antennas if isinstance(receiver, ArrayReceiver) else 1
    # Such a policy knows what the server reads behind its combiner; the accounted ε counts all that is received
    clients = scenario.clients.most
    held = min(clients, 2 * antennas) if isinstance(receiver, MaxMinCombiner) else 0
    exact = isinstance(control, LowerGain) and control.calibration == "exact"
    average = isinstance(control, TruncatedInversion) and control.power_limit == "average"
    key, allowed = "uplink.power_control.calibration", "theorem, or a single base station with one antenna"
    return [
        *(ring_memory(receiver, clients) if isinstance(receiver, ArrayReceiver) else []),
        (
            held > _MOST_HOLD,
            "uplink.receiver.antennas",
            f"{antennas} with combiner: max_min and {clients} clients in a round, of whom up to {held} hold a beam "
            "back: it takes minutes to find",
            f"at most {_MOST_HOLD // 2} antennas, {_MOST_HOLD} clients in a round, or another combiner",
        ),
        (
            exact and antennas > 1,
            key,
            f"exact with {antennas} antennas, at all of which an adversary learns more than the server reads",
            f"{allowed}; the calibration of a jammer counts all antennas",
        ),
        (
            exact and not isinstance(topology, SingleCell),
            key,
            f"exact with topology.kind: {topology.kind}, whose base stations together learn more than each of them",
            allowed,
        ),
        (
            average and antennas > 1 and not _is_rayleigh_behind(scenario, receiver),
            "uplink.power_control.power_limit",
            f"average with {antennas} antennas, behind whose combiner the distribution of power is not known",
            "peak, one antenna, or the combiner sum | random on antennas that fade independently, without line of "
            "sight (rayleigh, or tdl with a profile A | B | C | exponential)",
        ),
    ]


def ring_memory(receiver: ArrayReceiver, clients: int) -> list[Rule]:
    """Rules of correlations of which each client has its own, for clients whose channels are drawn together."""
    ring, antennas = isinstance(receiver.correlation, OneRing), receiver.antennas
    needed = 16 * antennas**2 * clients
    return [
        (
            ring and antennas > 1 and needed > _MOST_BYTES,
            "uplink.receiver.correlation.model",
            f"one_ring with {antennas} antennas and {clients} clients in a round, whose correlations take "
            f"{needed / 2**30:.1f} GiB",
            f"at most {_MOST_BYTES >> 30} GiB, 16 bytes times antennas² times clients, or exponential, alike for all",
        )
    ]


def _is_rayleigh_behind(scenario: Sections, receiver: object) -> bool:
    # Where f does not depend on h, which is white and without line of sight, fᴴh is circular of power ‖f‖²β
    fading, located = scenario.channel.fading, isinstance(scenario.channel.pathloss, Tr38901PathLoss | ExternalPathLoss)
    white = isinstance(receiver, SumCombiner | RandomCombiner) and isinstance(receiver.correlation, NoCorrelation)
    if isinstance(fading, TdlFading):
        return white and fading.profile in _SCATTERED_PROFILES
    return white and isinstance(fading, RayleighFading) and not located
