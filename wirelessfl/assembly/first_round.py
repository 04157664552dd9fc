"""The first round before it is run: topology, power of the jammer, and length of digital messages."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirelessfl.assembly.coverage import band_of_a_client, warn_of_duration, warn_of_floor
from wirelessfl.conformance import given, returned
from wirelessfl.errors import InfeasibleError, ModelWarning, ScenarioError
from wirelessfl.memory import forgotten
from wirelessfl.radio import (
    AntennaGains,
    BlockFading,
    ChannelSource,
    DigitalLinks,
    DistanceGain,
    ExactCalibration,
    ExactStepCalibration,
    FadingModel,
    FixedRate,
    ImportedFading,
    ImportedGains,
    Instants,
    JammerLink,
    Jamming,
    Moment,
    Network,
    Rayleigh,
    Recorded,
    RecordedLinks,
    TransmitPlan,
    coherence_time,
    jammer_energy,
    jammer_gain_for_noise,
    linear_to_db,
    pieces_needed,
    shortfall_probability,
)
from wirelessfl.radio.propagation.fading import AT_START
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.jammer import Jammer
from wirelessfl.simulation.run import Deployment
from wirelessfl.simulation.selection import ClientSelection
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, OverTheAir, Uplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink
from wirelessfl.streams import NodeStream, Streams

if TYPE_CHECKING:
    import networkx as nx

MOST_CLIENTS = 1000
"""Clients in the graph; further ones are left out."""
_START = Moment(1, 0.0)
_REHEARSED = 50
"""Rounds that are planned ahead where a jammer has to hide clients from several antennas."""


def topology_graph(deployment: Deployment) -> nx.Graph:
    """Clients, base stations, what is behind them, and an external jammer.

    Nodes carry ``kind`` (client | station | server | cloud | jammer) and, where there are places, ``x`` and ``y`` in
    metres; clients also ``cell`` (their base station), and ``line_of_sight`` where the path loss tells. Edges carry
    ``kind`` (radio | wire). A single base station is the server itself. The graph's own attributes are ``clients``
    (registered), ``places`` (whether there are any) and ``spacing`` (metres between base stations; NaN for one).
    """
    import networkx as nx  # no part of a run

    network = deployment.network
    sites = np.zeros((1, 2)) if network.sites is None else network.sites[:2]
    spacing = float(np.linalg.norm(sites[1] - sites[0])) if len(sites) == 2 else math.nan
    places = isinstance(network.clients.large_scale, DistanceGain)
    graph = nx.Graph(clients=network.registry.count, places=places, spacing=spacing)
    with forgotten(deployment.memories):
        _add_stations(graph, deployment)
        _add_clients(graph, network)
        uplink = deployment.uplink
        if isinstance(uplink, OverTheAir) and uplink.jams and not uplink.rotating_jammer:
            _add_jammer(graph, network)
    return graph


def _add_stations(graph: nx.Graph, deployment: Deployment) -> None:
    network, uplink = deployment.network, deployment.uplink
    if network.sites is None:
        graph.add_node("station 0", kind="server", x=0.0, y=0.0)
        return
    behind = "cloud" if isinstance(uplink, OverTheAir) and uplink.edges is not None else "server"
    graph.add_node(behind, kind=behind)
    for number, (x, y) in enumerate(network.sites.tolist()):
        graph.add_node(f"station {number}", kind="station", x=x, y=y)
        graph.add_edge(f"station {number}", behind, kind="wire")


def _add_clients(graph: nx.Graph, network: Network) -> None:
    clients = np.arange(min(network.registry.count, MOST_CLIENTS), dtype=np.int64)
    sources, serving = network.sources, network.cell_links(clients, _START).serving
    for client, cell in zip(clients.tolist(), serving.tolist(), strict=True):
        graph.add_node(client, kind="client", cell=cell)
        graph.add_edge(client, f"station {cell}", kind="radio")
    large_scale = network.clients.large_scale
    if not isinstance(large_scale, DistanceGain):
        return
    for client, (x, y) in enumerate(large_scale.placement.motion(clients, _START).position.tolist()):
        graph.add_node(client, x=x, y=y)
    if large_scale.model.rician_k is not None:
        seen = np.stack([source.large_scale.gains(clients, _START).line_of_sight for source in sources], axis=1)
        for client, cell in zip(clients.tolist(), serving.tolist(), strict=True):
            graph.add_node(client, line_of_sight=bool(seen[client, cell]))


def _add_jammer(graph: nx.Graph, network: Network) -> None:
    graph.add_node("jammer", kind="jammer")
    graph.add_edge("jammer", "station 0", kind="radio")
    large_scale = network.jammer.large_scale
    if isinstance(large_scale, DistanceGain):
        ((x, y),) = large_scale.placement.motion(np.zeros(1, dtype=np.int64), _START).position.tolist()
        graph.add_node("jammer", x=x, y=y)


# Channel draws for a law without a closed form: the share is known to ±0.4 % at worst, at 99 %
_DRAWS = 100_000
# Slots drawn where a channel is estimated several times in each: the share is known to ±3 % at worst, at 99 %
_SLOTS = 2000
# Clients whose path gains stand for all of those that may jam
_ROTATING = 1000


def jammer_shortfall(uplink: Uplink, selection: ClientSelection) -> tuple[float, float]:
    """Probability that the jammer lacks the power needed in a round, and the energy E₁ needed at |h_CJ| = 1.

    A Rayleigh link has the closed form Pr(short) = 1 − exp(−E₁/(P_CJ β_CJ)), β_CJ its path gain; other laws are drawn,
    and so are slots with an estimate for each piece, in which the weakest of them counts.
    With the exact calibration, a power control whose α_u changes or a jammer that moves, round 1 stands for all rounds.

    Returns:
        The probability, and E₁ in units of the normalised noise; both 0 where no jamming is needed.
    """
    if not isinstance(uplink, OverTheAir) or uplink.jamming is None:
        return 0.0, 0.0
    network, jamming = uplink.network, uplink.jamming
    with forgotten(network.memories()):
        if uplink.receiver.antennas > 1:
            rehearsed = _against_all_antennas(uplink, jamming, selection)
            if rehearsed is not None:
                return rehearsed
        clients = selection.select(_START)
        instants = uplink.schedule.instants(len(clients) + int(not uplink.rotating_jammer))
        gain = _gain_needed(uplink, jamming, clients, instants)
        energy = jammer_energy(gain, uplink.num_symbols, jamming.noise)
        budget = jammer_energy(jamming.gain_limit, uplink.num_symbols, jamming.noise)
        if gain == 0.0 or np.isinf(budget):
            return 0.0, energy
        rotating = (network.clients, clients[:_ROTATING])
        source, nodes = rotating if uplink.rotating_jammer else (network.jammer, np.zeros(1, np.int64))
        return _probability_short(source, nodes, energy / budget, network.streams, instants.estimates), energy


def _against_all_antennas(
    uplink: OverTheAir, jamming: Jamming, selection: ClientSelection
) -> tuple[float, float] | None:
    # The share of rehearsed rounds in which the jammer cannot hide the clients from all antennas, and the energy of
    # the middle one of them, infinite where no power is enough; None for a calibration that does not look at them.
    network, calibration, needed = uplink.network, jamming.calibration, []
    if not isinstance(calibration, ExactCalibration | ExactStepCalibration):
        return None
    fading = network.clients.fading
    # Drawn gains differ between rounds, those of a file between its snapshots
    step_s = fading.channels.spacing_s(_REHEARSED) if isinstance(fading, ImportedFading) else 0.0
    for round_index in range(1, _REHEARSED + 1):
        moment = Moment(round_index, step_s * (round_index - 1))
        clients = selection.select(moment)
        instants = uplink.schedule.instants(len(clients) + int(not uplink.rotating_jammer))
        if len(clients) == 0:
            continue
        if uplink.rotating_jammer:
            jams, clients = np.split(np.roll(clients, -round_index), [1])
            link = network.slot_links(jams, moment, instants)
            jammer = JammerLink.of([link])
        else:
            jammer = network.jammer_link(moment, instants)
        # A policy may know nothing of rounds beyond the run
        planned = (round_index - 1) % calibration.rounds + 1
        slot = uplink.announce(np.sort(clients), moment, instants, planned)
        for station, plan in slot.transmit.items():
            loudness = jamming.loudness(uplink.policies[station], plan, slot.rows)
            if loudness is None:
                return None
            needed.append(slot.each_antenna(jammer).hiding_gain(loudness, uplink.air.channel_noise_std))
    if not needed:
        return 0.0, 0.0
    share = float(np.mean(np.isinf(needed) | (np.array(needed) > jamming.gain_limit * (1 + 1e-12))))
    return share, jammer_energy(float(np.median(needed)), uplink.num_symbols, jamming.noise)


def _gain_needed(uplink: OverTheAir, jamming: Jamming, clients: NDArray[np.int64], instants: Instants) -> float:
    # α_CJ of the first round at |h_CJ| = 1.
    found = uplink.network.slot_links(clients, _START, instants)
    weights = uplink.receiver.combine(found, 1, uplink.air)
    links, (policy,) = found.combined(weights[None]).rows(), uplink.policies
    plan = given("power_control", policy, "plan", policy.plan(links, 1, uplink.air_of_all_rows), TransmitPlan)
    needed = jamming.calibration.required_noise_std(policy, plan, links.take(~plan.silent))
    return jammer_gain_for_noise(needed, plan.server_gain, uplink.air.channel_noise_std)


def _probability_short(
    source: ChannelSource,
    nodes: NDArray[np.int64],
    needed: float,
    streams: Streams,
    estimates: NDArray[np.float64],
) -> float:
    # Pr(|h|² below `needed` at one of the (R,) times of estimates), the mean over the nodes that may jam.
    large = source.large_scale.gains(nodes, _START)
    probability = np.empty(len(nodes))
    for in_sight in (False, True):
        these = large.line_of_sight == in_sight
        power = needed / large.path_gain[these]
        antenna, times = source.antennas[0], AT_START if len(estimates) == 1 else estimates
        if isinstance(antenna, ImportedGains):  # its gains are all there are, whatever the time
            probability[these] = _share_of(antenna.least_powers(), power)
        elif antenna.groups == 1 and (times is AT_START or isinstance(source.fading, BlockFading)):
            probability[these] = _share_below(antenna.law_of(in_sight), power, streams)
        elif these.any():
            probability[these] = _share_of(_least_powers(antenna, in_sight, times), power)
    return float(probability.mean())


def _share_of(powers: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.float64]:
    # (n,) the share of powers below each limit
    return np.searchsorted(np.sort(powers), limit) / len(powers)


def _least_powers(antenna: AntennaGains, in_sight: bool, estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    # (n,) the least |gain|² over a slot and the band of links: by the weakest estimate the jammer sets its gain.
    links = np.arange(_SLOTS, dtype=np.int64)
    gains = antenna.over(links, np.full(_SLOTS, in_sight), _START, estimates)
    return np.asarray((np.abs(gains) ** 2).min(axis=(1, 2)))


def _share_below(law: FadingModel, power: NDArray[np.float64], streams: Streams) -> NDArray[np.float64]:
    # (n,) Pr(|gain|² < power) under a law of mean power 1.
    if isinstance(law, Rayleigh):
        return np.array([shortfall_probability(value, 1.0) for value in power.tolist()])
    draws = streams.nodes("shortfall", 1, np.arange(_DRAWS, dtype=np.int64))
    gains = law.gains[np.isfinite(law.gains)] if isinstance(law, Recorded) else _drawn(law, draws)
    return np.searchsorted(np.sort(np.abs(gains) ** 2), power) / len(gains)


def _drawn(law: FadingModel, draws: NodeStream) -> NDArray[np.complex128]:
    return returned("fading", law, "draw", law.draw(draws), draws.nodes.shape, kind=np.number, finite=True)


def check_jammer_power(jammer: Jammer, uplink: OverTheAir, selection: ClientSelection) -> None:
    """Refusal of a jammer that is too weak too often.

    Raises:
        InfeasibleError: above ``max_shortfall``.
    """
    probability, energy = jammer_shortfall(uplink, selection)
    if probability > jammer.max_shortfall and math.isinf(energy):
        raise InfeasibleError(
            f"uplink.jammer.epsilon: found {jammer.epsilon:g} with {uplink.receiver.antennas} antennas, whose receiver "
            f"nulls the jammer: in {probability:.1%} of {_REHEARSED} rounds what it hears of a client beside the "
            "jamming is louder than this target allows, however strong the jamming; allowed is "
            f"{jammer.max_shortfall:.1%} (uplink.jammer.max_shortfall). Raise epsilon, lower "
            "uplink.power_control.server_gain or uplink.receiver.antennas"
        )
    if probability > jammer.max_shortfall:
        needed_db = linear_to_db(energy / uplink.air.dimension)
        raise InfeasibleError(
            f"uplink.jammer.power_db: found {jammer.power_db} dB, too little for ε = "
            f"{jammer.epsilon:g} in {probability:.1%} of the rounds; allowed: at most {jammer.max_shortfall:.1%} "
            f"(uplink.jammer.max_shortfall). At |h| = 1 the jammer needs {needed_db:.1f} dB, in a fade more; "
            "raise power_db or epsilon, or lower the server gain"
        )


@dataclass(frozen=True)
class UploadSpan:
    """The length of an update's message on a link of median path gain that does not fade.

    Attributes:
        seconds: at the rate of that link; NaN without digital links.
        pieces: in which the fastest channel counts as constant.
        coherence_times: 0.423/f_D each.
    """

    seconds: float = math.nan
    pieces: int = 1
    coherence_times: float = 0.0


def upload_span(scenario: Scenario, uplink: Uplink) -> UploadSpan:
    """Duration of a message."""
    uploads = uplink.uploads if isinstance(uplink, Asynchronous) else uplink
    if not isinstance(uploads, DigitalUplink | SecureUplink):
        return UploadSpan()
    links = uploads.links
    if isinstance(links, RecordedLinks):
        return UploadSpan(uploads.payload_bits / links.log.mean_rate())
    with forgotten(links.network.memories()):
        everyone = np.arange(links.network.registry.count)
        path_gain = links.network.clients.large_scale.gains(everyone, _START).path_gain
    share, array_gain = band_of_a_client(scenario)
    seconds = uploads.payload_bits / links.mean_rate(array_gain * float(np.median(path_gain)), share)
    doppler_hz = links.division.doppler_hz
    return UploadSpan(seconds, pieces_needed(seconds, doppler_hz), seconds / coherence_time(doppler_hz))


def check_uploads(scenario: Scenario, uplink: Uplink) -> None:
    """Refusal of messages of a known length in too many pieces, and warning of those that outlast a channel's estimate.

    Raises:
        ScenarioError: at a fixed rate every message would be given up.
    """
    uploads = uplink.uploads if isinstance(uplink, Asynchronous) else uplink
    links = uploads.links if isinstance(uploads, DigitalUplink | SecureUplink) else None
    if links is not None:
        warn_of_duration(upload_span(scenario, uplink).seconds, scenario)
    if not isinstance(links, DigitalLinks):
        return
    warn_of_floor(scenario, links)
    if not isinstance(uplink, DigitalUplink | SecureUplink) or not links.ages:
        return
    span, division, doppler_hz = upload_span(scenario, uplink), links.division, links.division.doppler_hz
    length = (
        f"a message of {uplink.payload_bits:,} bits lasts {span.seconds:.3g} s, {span.coherence_times:.3g} coherence "
        f"times of {coherence_time(doppler_hz):.3g} s, in {span.pieces} pieces (Doppler shift up to "
        f"{doppler_hz:.3g} Hz)"
    )
    fading = links.network.clients.fading
    if isinstance(fading, ImportedFading):
        every = f"{fading.channels.interval_s:.3g} s, as snapshots in {fading.channels.name}"
        length = (
            f"a message of {uplink.payload_bits:,} bits lasts {span.seconds:.3g} s, in {span.pieces} pieces of {every}"
        )
    if isinstance(links.rate, FixedRate) and span.pieces > division.max_pieces:
        raise ScenarioError(
            f"channel.max_pieces: found {division.max_pieces}, but {length}; allowed: at least {span.pieces}. A larger "
            "uplink.rate.rate_bps shortens it"
        )
    if span.pieces > division.max_pieces:
        advice = f"a message that is not complete after channel.max_pieces: {division.max_pieces} is given up"
    elif span.pieces > 1 and division.refresh == "slot" and not isinstance(links.rate, FixedRate):
        advice = (
            "its rate is chosen for the channel at its beginning, so that most are lost; with channel.csi.refresh: "
            "piece the rate follows the channel"
        )
    else:
        return
    warnings.warn(f"at the median path gain {length}; {advice}", ModelWarning, stacklevel=2)
