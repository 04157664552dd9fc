"""The large-scale law of a scenario, and the Doppler shift that its moving clients have at most."""

from __future__ import annotations

from wirelessfl.radio import PathLossModel
from wirelessfl.scenario import config
from wirelessfl.simulation.build.objects import make_object


def build_path_loss(
    pathloss: config.FreeSpacePathLoss | config.LogDistancePathLoss | config.Tr38901PathLoss,
) -> PathLossModel:
    """The large-scale law."""
    model: PathLossModel = make_object(
        "channel.pathloss.model", pathloss.reference, pathloss.arguments(), PathLossModel
    )
    return model


def largest_doppler_hz(channel: config.Channel) -> float:
    """The largest Doppler shift of any link, by which slots are divided; 0 where fading is independent."""
    correlation, pathloss, placement = channel.correlation, channel.pathloss, channel.placement
    if isinstance(correlation, config.IndependentFading):
        return 0.0
    if correlation.doppler_hz is not None:
        return correlation.doppler_hz
    assert not isinstance(pathloss, config.NoPathLoss), "the scenario was checked"
    fastest = placement.max_speed if isinstance(placement, config.RandomWaypointPlacement) else 0.0
    return fastest / build_path_loss(pathloss).wavelength
