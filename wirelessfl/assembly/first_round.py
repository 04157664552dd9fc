"""The first round before it is run: topology, and length of digital messages."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wirelessfl.assembly.coverage import band_of_a_client, warn_of_duration, warn_of_floor
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.memory import forgotten
from wirelessfl.radio import (
    DigitalLinks,
    DistanceGain,
    FixedRate,
    ImportedFading,
    Moment,
    Network,
    RecordedLinks,
    coherence_time,
    pieces_needed,
)
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.run import Deployment
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, OverTheAir, Uplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink

if TYPE_CHECKING:
    import networkx as nx

MOST_CLIENTS = 1000
"""Clients in the graph; further ones are left out."""
_START = Moment(1, 0.0)


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
    sharing = uploads.sharing if isinstance(uploads, DigitalUplink) else None
    seconds = uploads.payload_bits / links.mean_rate(array_gain * float(np.median(path_gain)), share)
    seconds += links.pilot_s(share) * (1 if sharing is None else min(sharing.streams, scenario.clients.most))
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
