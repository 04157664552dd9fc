"""Channels of a scenario: placement, path loss, fading in time, estimation. Its variants turn dB into numbers.

Clients and jammer have channels of the same laws and streams of their own.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.path_loss import build_path_loss, largest_doppler_hz
from wirelessfl.assembly.recordings import load_gains, load_positions
from wirelessfl.assembly.slot import build_numerology, build_pilots
from wirelessfl.errors import DataError, ModelWarning
from wirelessfl.radio import (
    FadingModel,
    GivenPositions,
    PlacementLaw,
    RandomWaypoint,
    Rayleigh,
    Rician,
    hexagonal_sites,
    path_gain,
)
from wirelessfl.scenario import Scenario, config
from wirelessfl.scenario.base import CoreVariant
from wirelessfl.simulation.cellular import CellularNetwork
from wirelessfl.simulation.network import ChannelSource, Network, Receiver, Registry
from wirelessfl.simulation.propagation import (
    BlockFading,
    ClarkeFading,
    DirectRay,
    DistanceGain,
    Doppler,
    Draws,
    Fading,
    GaussMarkovFading,
    GivenDoppler,
    LargeScale,
    MotionDoppler,
    Placement,
    Standing,
    UnitGain,
    Walking,
)
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class FadingLaws:
    """The law of small-scale fading of the links of clients and jammer.

    Attributes:
        clients: of the clients.
        jammer: of an external jammer.
    """

    clients: FadingModel
    jammer: FadingModel


def build_network(scenario: Scenario, registry: Registry, streams: Streams, dimension: int) -> Network:
    """The network; ``dimension`` is d.

    Raises:
        DataError: a file of gains or positions is missing, damaged or too small.
        ScenarioError: a law of the user's own cannot be used.
    """
    laws = _laws(scenario)
    _warn_of_another_waveform(scenario.channel.sync, scenario.timing)

    def source(
        law: FadingModel, draws: Draws, placement: Placement, site: tuple[float, float] = (0.0, 0.0)
    ) -> ChannelSource:
        return ChannelSource(
            large_scale=_large_scale(scenario, placement, draws, site),
            fading=_fading_in_time(scenario, law, draws, build_doppler(scenario.channel, placement, draws, site)),
            receiver=_receiver(scenario, dimension),
            draws=draws,
        )

    clients, jammer = Draws(streams), Draws(streams, "jammer_")
    places = build_placement(scenario, clients)
    network = Network(
        registry=registry,
        clients=source(laws.clients, clients, places),
        jammer=source(laws.jammer, jammer, _jammer_placement(scenario, jammer)),
        streams=streams,
    )
    topology = scenario.topology
    if isinstance(topology, config.SingleCell):
        return network
    sites = hexagonal_sites(topology.rings, topology.inter_site_distance_m)
    further = [
        source(laws.clients, Draws(streams, site=f"site{number}_"), places, (float(x), float(y)))
        for number, (x, y) in enumerate(sites.tolist()[1:], start=1)
    ]
    return CellularNetwork(network.registry, network.clients, network.jammer, streams, tuple(further), sites)


def build_fading(fading: CoreVariant | config.ExternalFading) -> FadingModel:
    """A law of small-scale fading, shipped or the user's own."""
    law: FadingModel = make_object("channel.fading.model", fading)
    return law


def _laws(scenario: Scenario) -> FadingLaws:
    """The laws of small-scale fading.

    Raises:
        DataError: a recording is missing, damaged or too small, or lacks the jammer that the scenario has.
        ScenarioError: a law of the user's own cannot be used.
    """
    fading = scenario.channel.fading
    if not isinstance(fading, config.RecordedFading):
        law = build_fading(fading)
        return FadingLaws(law, law)
    assert fading.file is not None, "the scenario was checked"
    clients, jammer = load_gains(fading.file, scenario.rounds, scenario.clients.count)
    if jammer is None and _external_jammer(scenario) is not None:
        raise DataError(f"channel.fading.file: {fading.file} holds no gains of the jammer, which the scenario has")
    # Nobody asks for the gains of a jammer that is not there, so that any law may stand for it.
    return FadingLaws(clients, Rayleigh() if jammer is None else jammer)


def build_placement(scenario: Scenario, draws: Draws) -> Placement:
    """Where the nodes of some streams are."""
    placement = scenario.channel.placement
    match placement:
        case config.RandomWaypointPlacement():
            walk: RandomWaypoint = make_object("channel.placement.scheme", placement)
            return Walking(walk, draws)
        case config.UniformDiscPlacement() | config.HexagonalPlacement():
            law: PlacementLaw = make_object("channel.placement.scheme", placement)
            return Standing(law, draws)
        case config.GivenPlacement():
            points = placement.points_m
            if points is None:
                assert placement.file is not None, "the scenario was checked"
                points = load_positions(placement.file, scenario.clients.count)
            return Standing(GivenPositions(points), draws)
        case _:
            assert_never(placement)


def _jammer_placement(scenario: Scenario, draws: Draws) -> Placement:
    jammer = _external_jammer(scenario)
    if jammer is not None and jammer.position_m is not None:
        return Standing(GivenPositions((jammer.position_m,)), draws)
    return build_placement(scenario, draws)


def _external_jammer(scenario: Scenario) -> config.Jammer | None:
    jammer = scenario.uplink.jammer if isinstance(scenario.uplink, config.OverTheAir) else None
    return jammer if jammer is not None and jammer.role == "external" else None


def _large_scale(
    scenario: Scenario, placement: Placement, draws: Draws, site: tuple[float, float] = (0.0, 0.0)
) -> LargeScale:
    pathloss = scenario.channel.pathloss
    if isinstance(pathloss, config.NoPathLoss):
        return UnitGain()
    model = build_path_loss(pathloss)
    reference_gain = 1.0
    if getattr(scenario.uplink, "tx_power_dbm", None) is None:
        distance = np.array([pathloss.reference_distance_m])
        reference_gain = float(path_gain(model.loss_db(distance, np.ones(1, dtype=np.bool_)))[0])
    return DistanceGain(placement, model, reference_gain, draws, site)


def build_doppler(
    channel: config.Channel, placement: Placement, draws: Draws, site: tuple[float, float]
) -> Doppler | None:
    """The Doppler shifts of links to a site; None where fading is independent from round to round."""
    correlation, pathloss = channel.correlation, channel.pathloss
    if isinstance(correlation, config.IndependentFading):
        return None
    if isinstance(pathloss, config.NoPathLoss):
        return GivenDoppler(largest_doppler_hz(channel), False, draws)
    if correlation.doppler_hz is not None:
        return GivenDoppler(correlation.doppler_hz, not placement.moves, draws)
    return MotionDoppler(placement, build_path_loss(pathloss), site)


def _fading_in_time(scenario: Scenario, law: FadingModel, draws: Draws, doppler: Doppler | None) -> Fading:
    in_sight = _law_in_sight(scenario.channel, law)
    correlation = scenario.channel.correlation
    if isinstance(correlation, config.IndependentFading):
        return BlockFading(Rayleigh() if in_sight is not None else law, in_sight, draws)
    assert isinstance(law, Rayleigh | Rician), "the scenario was checked"
    assert doppler is not None, "built for the same correlation"
    scattered = Rician(0.0) if in_sight is not None or isinstance(law, Rayleigh) else law
    ray = DirectRay(scattered, in_sight, doppler, draws)
    match correlation:
        case config.GaussMarkovFading():
            return GaussMarkovFading(ray, correlation.interval_s, doppler, draws)
        case config.ClarkeFading():
            return ClarkeFading(ray, doppler, draws)
        case _:
            assert_never(correlation)


def _law_in_sight(channel: config.Channel, law: FadingModel) -> Rician | None:
    """The law of links with line of sight, where the path loss knows them apart and the fading does not say otherwise.

    With Rician fading its K counts where there is a line of sight, with Rayleigh fading that of the standard; without
    one the link is Rayleigh. Any other law holds for all links.
    """
    if isinstance(channel.pathloss, config.NoPathLoss):
        return None
    rician_k = build_path_loss(channel.pathloss).rician_k
    if rician_k is None or not isinstance(law, Rayleigh | Rician):
        return None
    return law if isinstance(law, Rician) else Rician(rician_k)


def _receiver(scenario: Scenario, dimension: int) -> Receiver:
    csi, sync, uplink = scenario.channel.csi, scenario.channel.sync, scenario.uplink
    subcarriers = None
    if sync.waveform == "ofdm":
        grid = build_numerology(scenario.timing)
        assert grid is not None, "the scenario was checked"
        subcarriers = grid.subcarriers
    pilots = build_pilots(scenario, uplink, dimension) if isinstance(uplink, config.OverTheAir) else None
    return Receiver(csi.error_std, csi.estimator, pilots, sync.phase_std, sync.max_offset, subcarriers, sync.cfo_hz)


def _warn_of_another_waveform(sync: config.Sync, timing: config.Timing) -> None:
    if sync.max_offset == 0 or sync.waveform == "ofdm" or timing.ofdm is None:
        return
    warnings.warn(
        "channel.sync.waveform: found single_carrier with timing.ofdm; late arrivals are simulated as on a single "
        "carrier, where a part of each symbol falls into the next. With ofdm they turn the subcarriers",
        ModelWarning,
        stacklevel=2,
    )
