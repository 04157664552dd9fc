"""Channels of a scenario: placement, path loss, fading in time, estimation. Its variants turn dB into numbers.

Clients and jammer have channels of the same laws and streams of their own.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.antennas import Law, antenna_gains, further_antennas
from wirelessfl.assembly.downlink import build_downlink
from wirelessfl.assembly.imported import COHERENT, check_imported, imported_channels
from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.assembly.plan import check_gains
from wirelessfl.assembly.power_control import CHANNEL_NOISE_STD
from wirelessfl.assembly.reception import build_antennas, build_array, independent_array
from wirelessfl.assembly.slot import build_numerology, build_path_loss, build_pilots
from wirelessfl.conformance import returned
from wirelessfl.errors import ModelWarning
from wirelessfl.privacy import OBSERVED_FROM
from wirelessfl.radio import (
    AntennaArray,
    ChannelSource,
    DistanceGain,
    Draws,
    FadingModel,
    GivenPositions,
    ImportedChannels,
    ImportedFading,
    ImportedGain,
    ImportedGains,
    LargeScale,
    LinkImpairments,
    Network,
    Observer,
    Placement,
    RandomWaypoint,
    Registry,
    Standing,
    TappedDelayLine,
    UnitGain,
    Walking,
    db_to_linear,
    group_frequencies,
    hexagonal_sites,
    path_gain,
)
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import Sync, TdlFading
from wirelessfl.scenario.geography import NoPathLoss, SingleCell
from wirelessfl.scenario.jammer import Jammer
from wirelessfl.scenario.observer import Observer as ObserverPlace
from wirelessfl.scenario.timing import Timing
from wirelessfl.scenario.uplink import DigitalLink, OverTheAir, jammer_of, transmits_in_watts
from wirelessfl.streams import Streams


def build_network(scenario: Scenario, registry: Registry, streams: Streams, dimension: int) -> Network:
    """The network; ``dimension`` is d.

    Raises:
        DataError: a file of gains or positions is missing, damaged or too small.
        InfeasibleError: the gains of a round do not fit into the memory.
        ScenarioError: a law of the user's own cannot be used.
    """
    law = build_fading(scenario)
    if isinstance(law, ImportedChannels):
        check_imported(scenario, law)
    jammer_law = law if _external_jammer(scenario) is None else build_fading(scenario, jammer=True)
    _warn_of_another_waveform(scenario.channel.sync, scenario.timing)
    antennas, frequency_hz, topology = build_antennas(scenario), _frequencies(scenario), scenario.topology
    receivers = 1 if isinstance(topology, SingleCell) else len(hexagonal_sites(topology.rings, 1.0))
    check_gains(scenario.clients.most, receivers, len(frequency_hz), antennas)

    at = partial(_source, scenario, dimension, frequency_hz)
    source = partial(at, antennas, partial(build_array, scenario, antennas))
    clients, jammer = Draws(streams), Draws(streams, "jammer_")
    places, jammer_place = build_placement(scenario, clients), build_jammer_placement(scenario, jammer)
    section, observer = scenario.privacy.observer, None
    if section is not None:
        observer = build_observer(scenario, section, streams, dimension, places, jammer_place)
    jamming = source(jammer_law, jammer, jammer_place)
    network = Network(
        registry=registry,
        clients=source(law, clients, places),
        jammer=jamming,
        streams=streams,
        observer=observer,
        further_jammer_antennas=_further_of_jammer(scenario, jamming, jammer_law, jammer_place),
    )
    if isinstance(topology, SingleCell):
        own_fading = partial(at, 1, partial(independent_array, 1), law, replace(clients, site="downlink_"), places)
        return replace(network, downlink=build_downlink(scenario, network, own_fading))
    sites = hexagonal_sites(topology.rings, topology.inter_site_distance_m)
    others = [
        source(law, Draws(streams, site=f"site{number}_"), places, (float(x), float(y)))
        for number, (x, y) in enumerate(sites.tolist()[1:], start=1)
    ]
    return replace(network, others=tuple(others), sites=sites)


def build_observer(
    scenario: Scenario,
    section: ObserverPlace,
    streams: Streams,
    dimension: int,
    places: Placement,
    jammer_place: Placement,
) -> Observer:
    """An observer, whose gains at one place are the same whoever else listens.

    Args:
        scenario: with fading that is drawn.
        section: where it stands, and with what.
        streams: of the run.
        dimension: d.
        places: of the clients.
        jammer_place: of an external jammer.
    """
    frequency_hz, array = _frequencies(scenario), partial(independent_array, section.antennas)

    def source(law: Law, draws: Draws, placement: Placement) -> ChannelSource:
        given = (scenario, dimension, frequency_hz, section.antennas, array)
        return _source(*given, law, draws, placement, section.position_m)

    clients = source(build_fading(scenario), Draws(streams, site="observer_"), places)
    jammer: tuple[ChannelSource, ...] = ()
    if _external_jammer(scenario) is not None:
        law = build_fading(scenario, jammer=True)
        first = source(law, Draws(streams, "jammer_", site="observer_"), jammer_place)
        jammer = (first, *_further_of_jammer(scenario, first, law, jammer_place, section.position_m))
    quieter = db_to_linear(section.noise_figure_db - scenario.channel.noise_figure_db)
    return Observer(clients, jammer, CHANNEL_NOISE_STD * math.sqrt(quieter))


def _further_of_jammer(
    scenario: Scenario, first: ChannelSource, law: Law, placement: Placement, site: tuple[float, float] = (0.0, 0.0)
) -> tuple[ChannelSource, ...]:
    # (N − 1,) channels of the further antennas of an external jammer to a receiver at a site
    section = _external_jammer(scenario)
    if section is None or section.antennas == 1 or isinstance(law, ImportedChannels):
        return ()
    where = (scenario.channel, placement, site, _frequencies(scenario))
    return further_antennas(first, section.antennas - 1, law, *where)


def _source(
    scenario: Scenario,
    dimension: int,
    frequency_hz: NDArray[np.float64],
    antennas: int,
    array: Callable[[LargeScale, Draws], AntennaArray | None],
    law: Law,
    draws: Draws,
    placement: Placement,
    site: tuple[float, float] = (0.0, 0.0),
) -> ChannelSource:
    # Channels of the nodes of some streams to a receiver at a site
    if isinstance(law, ImportedChannels):
        imported = tuple(ImportedGains(ImportedFading(law), antenna) for antenna in range(antennas))
        return ChannelSource(ImportedGain(law), imported, _impairments(scenario, dimension), draws)
    large_scale = _large_scale(scenario, placement, draws, site)
    each = (draws, *(replace(draws, site=f"{draws.site}antenna{a}_") for a in range(1, antennas)))
    return ChannelSource(
        large_scale=large_scale,
        antennas=tuple(antenna_gains(law, own, scenario.channel, placement, site, frequency_hz) for own in each),
        impairments=_impairments(scenario, dimension),
        draws=draws,
        array=array(large_scale, draws),
    )


def _frequencies(scenario: Scenario) -> NDArray[np.float64]:
    # (F,) centres of the groups of subcarriers; one, in the middle, where the channel is flat. Warns where a group is
    # so wide that its subcarriers have no one gain.
    fading, grid = scenario.channel.fading, build_numerology(scenario.timing)
    if not isinstance(fading, TdlFading):
        return group_frequencies(1, 0.0)
    bandwidth = scenario.timing.bandwidth_hz if grid is None else grid.bandwidth_hz
    line: TappedDelayLine = make_object("channel.fading.model", fading)
    found = float(np.abs(line.frequency_correlation(bandwidth / fading.groups)))
    if found < COHERENT:
        warnings.warn(
            f"channel.fading.groups: found {fading.groups} groups of {bandwidth / fading.groups:.4g} Hz, between whose "
            f"gains the correlation is {found:.2f}; with one gain each they are too wide, and a frequency-selective "
            f"channel is understated. More groups have {COHERENT} or more",
            ModelWarning,
            stacklevel=2,
        )
    return group_frequencies(fading.groups, bandwidth)


def build_fading(scenario: Scenario, jammer: bool = False) -> Law:
    """The law of a single gain of the clients' links, or of the jammer's; or their profile, or their gains themselves.

    Raises:
        DataError: a recording is missing, damaged or too small, or lacks the jammer.
        ScenarioError: a law of the user's own cannot be used.
    """
    imported = imported_channels(scenario, jammer)
    if imported is not None:
        return imported
    fading = found(scenario, "channel.fading", scenario.channel.fading)
    law: FadingModel | TappedDelayLine = make_object(
        "channel.fading.model", fading, context=RunFacts.of(scenario, jammer)
    )
    return law


def build_placement(scenario: Scenario, draws: Draws) -> Placement:
    """Placement of the nodes of some streams."""
    placement = found(scenario, "channel.placement", scenario.channel.placement)
    law = make_object("channel.placement.scheme", placement, context=RunFacts.of(scenario))
    return Walking(law, draws) if isinstance(law, RandomWaypoint) else Standing(law, draws)


def build_jammer_placement(scenario: Scenario, draws: Draws) -> Placement:
    """Placement of the jammer: its own place where it has one, else that of a node of some streams."""
    jammer = _external_jammer(scenario)
    place = None if jammer is None else jammer.position_m
    return build_placement(scenario, draws) if place is None else Standing(GivenPositions((place,)), draws)


def _external_jammer(scenario: Scenario) -> Jammer | None:
    jammer = jammer_of(scenario.uplink)
    return jammer if jammer is not None and jammer.role == "external" else None


def _large_scale(
    scenario: Scenario, placement: Placement, draws: Draws, site: tuple[float, float] = (0.0, 0.0)
) -> LargeScale:
    pathloss = scenario.channel.pathloss
    if isinstance(pathloss, NoPathLoss):
        return UnitGain()
    model = build_path_loss(pathloss)
    reference_gain = 1.0
    if not transmits_in_watts(scenario.uplink):
        distance = np.array([pathloss.reference_distance_m])
        loss = returned("path_loss", model, "loss_db", model.loss_db(distance, np.ones(1, dtype=np.bool_)), (1,))
        reference_gain = float(path_gain(loss)[0])
    return DistanceGain(placement, model, reference_gain, draws, site)


def _impairments(scenario: Scenario, dimension: int) -> LinkImpairments:
    csi, sync, uplink = scenario.channel.csi, scenario.channel.sync, scenario.uplink
    grid = build_numerology(scenario.timing) if sync.waveform == "ofdm" else None
    subcarriers = None if grid is None else grid.subcarriers
    pilots = build_pilots(scenario, uplink, dimension) if isinstance(uplink, OverTheAir | DigitalLink) else None
    estimation = (csi.error_std, csi.estimator, pilots)
    return LinkImpairments(*estimation, sync.phase_std, sync.max_offset, subcarriers, sync.cfo_hz)


def _warn_of_another_waveform(sync: Sync, timing: Timing) -> None:
    if sync.max_offset > 0 and sync.waveform == "single_carrier" and timing.ofdm is not None:
        warnings.warn(
            "channel.sync.waveform: found single_carrier with timing.ofdm; late arrivals are simulated as on a single "
            "carrier, where a part of each symbol falls into the next. With ofdm they turn the subcarriers",
            ModelWarning,
            stacklevel=2,
        )


def observer_remark(place: ObserverPlace) -> str:
    """What the accounted ε counts against an observer, in a sentence."""
    antennas = "1 antenna" if place.antennas == 1 else f"{place.antennas} antennas"
    x, y = place.position_m
    return (
        f"{OBSERVED_FROM} [{x:g}, {y:g}] m with {antennas}, which knows all channels. The accounted "
        "figure counts the released models and what its antennas hear together; a client near it is protected least."
    )
