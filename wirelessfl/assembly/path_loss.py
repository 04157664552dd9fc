"""The large-scale law of a scenario, and the Doppler shift that its links have at most."""

from wirelessfl.assembly.objects import make_object
from wirelessfl.radio import PathLossModel
from wirelessfl.scenario.base import CoreVariant, External
from wirelessfl.scenario.channel import DOPPLER_WITHOUT_CARRIER_HZ, Channel, IndependentFading
from wirelessfl.scenario.geography import NoPathLoss, RandomWaypointPlacement


def build_path_loss(pathloss: CoreVariant | External) -> PathLossModel:
    """The large-scale law."""
    model: PathLossModel = make_object("channel.pathloss.model", pathloss)
    return model


def largest_doppler_hz(channel: Channel) -> float:
    """The largest Doppler shift of any link, by which slots are divided; 0 where fading is independent.

    Where it is not given it is that of the fastest client, or a default where no carrier is known.
    """
    correlation, pathloss, placement = channel.correlation, channel.pathloss, channel.placement
    if isinstance(correlation, IndependentFading):
        return 0.0
    if correlation.doppler_hz is not None:
        return correlation.doppler_hz
    if isinstance(pathloss, NoPathLoss):
        return DOPPLER_WITHOUT_CARRIER_HZ
    fastest = placement.max_speed if isinstance(placement, RandomWaypointPlacement) else 0.0
    return fastest / build_path_loss(pathloss).wavelength
