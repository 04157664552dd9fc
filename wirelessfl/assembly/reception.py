"""Receivers, and their antenna arrays."""

from dataclasses import dataclass

from wirelessfl.assembly.objects import make_object
from wirelessfl.radio import AntennaArray, ArrayGeometry, Draws, IndependentAntennas, LargeScale, Receiver
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.reception import ArrayReceiver
from wirelessfl.scenario.uplink import DigitalLink, OverTheAir
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class ReceiverFacts:
    """Facts of a run before anything of it is made, for receivers.

    Attributes:
        rounds: M.
        clients: K, the registered clients.
        streams: randomness of the run.
        threshold: g, below which a client is silent.
    """

    rounds: int
    clients: int
    streams: Streams
    threshold: float


def linear_array(antennas: int, spacing: float) -> ArrayGeometry:
    """One row of antennas."""
    return ArrayGeometry(1, antennas, spacing)


def planar_array(antennas: int, rows: int, spacing: float) -> ArrayGeometry:
    """Rows of antennas above each other."""
    return ArrayGeometry(rows, antennas // rows, spacing)


def build_receiver(scenario: Scenario, uplink: OverTheAir) -> Receiver:
    """The combiner of each receiver.

    Raises:
        ScenarioError: code from outside cannot be used.
    """
    control = uplink.power_control
    threshold = getattr(control, "threshold", 0.0) if control.silences else scenario.faults.fade_threshold
    facts = ReceiverFacts(scenario.rounds, scenario.clients.count, Streams(scenario.seed), threshold)
    receiver: Receiver = make_object("uplink.receiver.combiner", uplink.receiver, context=facts)
    return receiver


def build_antennas(scenario: Scenario) -> int:
    """A, antennas of each receiver; 1 with uplinks that have none of their own."""
    uplink = scenario.uplink
    if isinstance(uplink, DigitalLink):
        return 1 if uplink.receiver is None else uplink.receiver.antennas
    if not isinstance(uplink, OverTheAir):
        return 1
    if isinstance(uplink.receiver, ArrayReceiver):
        return uplink.receiver.antennas
    return build_receiver(scenario, uplink).antennas


def build_array(scenario: Scenario, antennas: int, large_scale: LargeScale, draws: Draws) -> AntennaArray | None:
    """The array of so many antennas at the end of some links; None for a single one."""
    if antennas == 1:
        return None
    receiver = scenario.uplink.receiver if isinstance(scenario.uplink, OverTheAir | DigitalLink) else None
    if not isinstance(receiver, ArrayReceiver):  # that of code from outside
        return independent_array(antennas, large_scale, draws)
    geometry: ArrayGeometry = make_object("uplink.receiver.array.geometry", receiver.array, antennas)
    correlation = make_object("uplink.receiver.correlation.model", receiver.correlation)
    return AntennaArray(geometry, correlation, large_scale, draws)


def independent_array(antennas: int, large_scale: LargeScale, draws: Draws) -> AntennaArray | None:
    """A linear array in rich scattering; None for a single antenna."""
    if antennas == 1:
        return None
    return AntennaArray(linear_array(antennas, 0.5), IndependentAntennas(), large_scale, draws)
