"""Topology at the beginning of the first round, as a graph."""

import networkx as nx
import numpy as np

from wirelessfl.memory import forgotten
from wirelessfl.radio.network import CellularNetwork, Network
from wirelessfl.radio.propagation import DistanceGain, Moment
from wirelessfl.simulation.run import Deployment
from wirelessfl.simulation.uplinks import OverTheAir

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
    network = deployment.network
    graph = nx.Graph(clients=network.registry.count, places=_has_places(network), spacing=_spacing(network))
    with forgotten(deployment.memories):
        _add_stations(graph, deployment)
        _add_clients(graph, network)
        uplink = deployment.uplink
        if isinstance(uplink, OverTheAir) and uplink.jams and not uplink.rotating_jammer:
            _add_jammer(graph, network)
    return graph


def _has_places(network: Network) -> bool:
    return isinstance(network.clients.large_scale, DistanceGain)


def _spacing(network: Network) -> float:
    if not isinstance(network, CellularNetwork) or len(network.sites) < 2:
        return float("nan")
    return float(np.linalg.norm(network.sites[1] - network.sites[0]))


def _add_stations(graph: nx.Graph, deployment: Deployment) -> None:
    network, uplink = deployment.network, deployment.uplink
    if not isinstance(network, CellularNetwork):
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
    for client, (x, y) in enumerate(large_scale.placement.positions(clients, _START).tolist()):
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
        ((x, y),) = large_scale.placement.positions(np.zeros(1, dtype=np.int64), _START).tolist()
        graph.add_node("jammer", x=x, y=y)
