"""Cells: receivers, the way behind them, and edges with models of their own."""

from dataclasses import dataclass

from wirelessfl.learning import AlgorithmFacts
from wirelessfl.learning.aggregation import EdgeModels
from wirelessfl.learning.timing import BITS_PER_PARAMETER
from wirelessfl.radio.network import Network
from wirelessfl.scenario.geography import MultiCell, SingleCell, Topology


@dataclass(frozen=True)
class Cells:
    """What stands on the server's side of the radio.

    Attributes:
        receivers: C.
        backhaul_s: seconds between receivers and server, there and back.
        edges: models of the edges, or None.
    """

    receivers: int = 1
    backhaul_s: float = 0.0
    edges: EdgeModels | None = None


def build_cells(topology: Topology, network: Network, facts: AlgorithmFacts, dimension: int) -> Cells:
    """The cells of a topology, for uploads of P·d numbers of an algorithm."""
    if isinstance(topology, SingleCell):
        return Cells()
    numbers = dimension + dimension // facts.payload * facts.broadcast
    receivers, both_ways = len(network.sources), BITS_PER_PARAMETER * numbers / topology.backhaul_bps
    if isinstance(topology, MultiCell):
        return Cells(receivers, both_ways)
    return Cells(receivers, both_ways, EdgeModels(receivers, topology.edge_rounds))
