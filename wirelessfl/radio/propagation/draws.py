"""Instants of a simulation, and the random streams of links."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream, Streams


@dataclass(frozen=True)
class Moment:
    """An instant of the simulation.

    Attributes:
        round_index: the round, from 1.
        time_s: simulated seconds, when a transmission begins: one number, or (n,) with one for each node.
        transmission: how many transmissions with channels of their own a node has begun before in the round.
    """

    round_index: int
    time_s: float | NDArray[np.float64]
    transmission: int = 0


@dataclass(frozen=True)
class Draws:
    """The streams of one kind of links; clients and jammer have streams of their own.

    Attributes:
        streams: randomness of the run.
        kind: of nodes, prefix of every purpose; empty for the clients.
        site: the base station at the other end, the further prefix; empty for the first.
    """

    streams: Streams
    kind: str = ""
    site: str = ""

    def nodes(self, purpose: str, round_index: int, nodes: NDArray[np.int64]) -> NodeStream:
        """The stream of a purpose in a round; round 0 for what is drawn once."""
        return self.streams.nodes(f"{self.kind}{self.site}{purpose}", round_index, nodes)

    def of_nodes(self, purpose: str, nodes: NDArray[np.int64]) -> NodeStream:
        """What belongs to the nodes themselves, whoever listens, drawn once."""
        return self.streams.nodes(f"{self.kind}{purpose}", 0, nodes)
