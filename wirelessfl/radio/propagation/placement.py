"""Instants, the random streams of links, and positions of nodes over time."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import returned
from wirelessfl.errors import InfeasibleError
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.placement import Journey, PlacementLaw, RandomWaypoint
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
        """The stream of the nodes themselves, the same for all receivers, drawn once."""
        return self.streams.nodes(f"{self.kind}{purpose}", 0, nodes)


_NOWHERE = np.full(2, np.nan)
MOST_WAYPOINTS = 200_000
"""Largest number of waypoints between two uses of a client; they take about twenty seconds to compute."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Positions and velocities of n nodes at a moment.

    Attributes:
        position: (n, 2) metres.
        travelled: (n,) metres of their way since the start of the simulation.
        velocity: (n, 2) m/s.
    """

    position: NDArray[np.float64]
    travelled: NDArray[np.float64]
    velocity: NDArray[np.float64]

    @property
    def speed(self) -> NDArray[np.float64]:
        """(n,) m/s."""
        return np.hypot(self.velocity[:, 0], self.velocity[:, 1])


class Placement(Protocol):
    """Positions of nodes over time."""

    @property
    def moves(self) -> bool:
        """Whether any node moves."""

    def motion(self, nodes: NDArray[np.int64], moment: Moment) -> Motion:
        """The motion at a moment that is no earlier than the last one asked for."""

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres where nodes were when last asked for; NaN where that was never."""


@dataclass(frozen=True)
class Standing:
    """Nodes that stay where a law has put them.

    Attributes:
        law: where they stand.
        draws: their streams.
    """

    law: PlacementLaw
    draws: Draws
    moves: bool = False

    def motion(self, nodes: NDArray[np.int64], moment: Moment) -> Motion:
        """Rest."""
        return Motion(self.last_positions(nodes), np.zeros(len(nodes)), np.zeros((len(nodes), 2)))

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres."""
        places = self.law.place(self.draws.nodes("position", 0, nodes))
        return returned("placement", self.law, "place", places, (len(nodes), 2))


@dataclass
class Walking(RemembersNodes):
    """Nodes on random waypoints; each one's journey is remembered as of the moment it was last asked for.

    Attributes:
        walk: the law of their movement.
        draws: their streams.
        nodes: where each was when last asked for, and where to it was going.
    """

    walk: RandomWaypoint
    draws: Draws
    moves: bool = True
    nodes: NodeMemory = field(
        default_factory=lambda: NodeMemory(
            position=_NOWHERE, target=_NOWHERE, speed=np.nan, pause=np.nan, travelled=np.nan, legs=0, time=0.0
        )
    )

    def motion(self, nodes: NDArray[np.int64], moment: Moment) -> Motion:
        """The motion; a node of which nothing is stored started at time 0.

        A node's way does not depend on when it is asked for: its waypoints are counted, not timed.

        Raises:
            InfeasibleError: since its last motion it has passed more waypoints than can be played.
        """
        known, last = self.nodes.recall(nodes)
        since = moment.time_s - last.pop("time")
        left = Journey(**last)
        if not known.all():
            start = vars(self.walk.start(self.draws.nodes("position", 0, nodes)))
            left = Journey(**{name: _choose(known, values, start[name]) for name, values in last.items()})
        elif not np.any(since):
            return Motion(left.position, left.travelled, left.velocity)
        waypoints = float(since.max(initial=0)) * self.walk.max_speed / self.walk.radius
        if waypoints > MOST_WAYPOINTS:
            raise InfeasibleError(
                f"channel.placement.max_speed: found {self.walk.max_speed:g} m/s, at which a client moves "
                f"{waypoints:.3g} "
                f"radii between two rounds in which it takes part; allowed: at most {MOST_WAYPOINTS:,} radii"
            )
        now = self.walk.advance(left, since, self.draws.nodes("waypoints", 0, nodes))
        self.nodes.write(nodes, **vars(now), time=np.broadcast_to(moment.time_s, (len(nodes),)))
        return Motion(now.position, now.travelled, now.velocity)

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres."""
        _, last = self.nodes.recall(nodes)
        return last["position"]


def _choose(which: NDArray[np.bool_], known: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
    # Rows (n, ...) of the first where ``which`` (n,) holds
    return np.where(which.reshape(-1, *(1,) * (known.ndim - 1)), known, otherwise)
