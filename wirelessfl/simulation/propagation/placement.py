"""Where nodes are at a moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Journey, PlacementLaw, RandomWaypoint
from wirelessfl.simulation.propagation.draws import Draws, Moment
from wirelessfl.simulation.propagation.memory import NodeMemory


class Placement(Protocol):
    """Positions of nodes over time."""

    @property
    def moves(self) -> bool:
        """Whether anybody ever leaves his place."""
        ...

    def positions(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n, 2) metres at a moment that is no earlier than the last one asked for."""
        ...

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres where nodes were when last asked for; NaN where that was never."""
        ...


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

    def positions(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n, 2) metres, the same at all times."""
        return self.last_positions(nodes)

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres."""
        return self.law.place(self.draws.nodes("position", 0, nodes))


def _no_journeys() -> NodeMemory:
    nowhere = np.full(2, np.nan)
    return NodeMemory(position=nowhere, target=nowhere, speed=np.nan, pause=np.nan, time=0.0)


@dataclass
class Walking:
    """Nodes on random waypoints; each one's journey is remembered as of the moment it was last asked for.

    Attributes:
        walk: the law of their movement.
        draws: their streams.
        journeys: where each was when last asked for, and where to it was going.
    """

    walk: RandomWaypoint
    draws: Draws
    moves: bool = True
    journeys: NodeMemory = field(default_factory=_no_journeys)

    def positions(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n, 2) metres; who is asked for the first time set out at time 0."""
        known, last = self.journeys.recall(nodes)
        start = self.walk.start(self.draws.nodes("position", 0, nodes))
        left = Journey(
            position=np.where(known[:, None], last["position"], start.position),
            target=np.where(known[:, None], last["target"], start.target),
            speed=np.where(known, last["speed"], start.speed),
            pause=np.where(known, last["pause"], start.pause),
        )
        waypoints = self.draws.nodes("waypoints", moment.round_index, nodes)
        now = self.walk.advance(left, moment.time_s - last["time"], waypoints)
        time = np.full(len(nodes), moment.time_s)
        self.journeys.write(
            nodes, position=now.position, target=now.target, speed=now.speed, pause=now.pause, time=time
        )
        return now.position

    def last_positions(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, 2) metres."""
        _, last = self.journeys.recall(nodes)
        return last["position"]

    def state(self) -> dict[str, Any]:
        """The journeys."""
        return self.journeys.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.journeys.restore(state)
