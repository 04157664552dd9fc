"""Random waypoint mobility in a disc (Johnson, Maltz 1996), at any time step, with its state made explicit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.geometry import disc_points
from wirelessfl.streams import NodeStream

# A waypoint and a speed are three uniform numbers
_BLOCKS_OF_A_LEG = 2


@dataclass(frozen=True, eq=False)
class Journey:
    """Where n nodes are and where they are going; all that has to be remembered.

    Attributes:
        position: (n, 2) metres.
        target: (n, 2) the next waypoint.
        speed: (n,) m/s on this leg.
        pause: (n,) seconds still to wait before setting out.
        travelled: (n,) metres of the way so far.
        legs: (n,) waypoints reached so far.
    """

    position: NDArray[np.float64]
    target: NDArray[np.float64]
    speed: NDArray[np.float64]
    pause: NDArray[np.float64]
    travelled: NDArray[np.float64]
    legs: NDArray[np.int64]

    @property
    def current_speed(self) -> NDArray[np.float64]:
        """(n,) m/s at this instant: 0 while a node waits."""
        return np.where(self.pause > 0, 0.0, self.speed)

    @property
    def velocity(self) -> NDArray[np.float64]:
        """(n, 2) m/s at this instant: 0 while a node waits."""
        way = self.target - self.position
        length = np.hypot(way[:, 0], way[:, 1])[:, None]
        direction = np.divide(way, length, out=np.zeros_like(way), where=length > 0)
        return np.asarray(direction * self.current_speed[:, None])


@dataclass(frozen=True)
class RandomWaypoint:
    """Straight to a uniform point of the disc at a uniform speed, wait, and on to the next.

    Nodes start uniform over the disc; in the long run they crowd towards its middle. Speeds must stay away from 0: a
    smallest speed of 0 would let all nodes slow down for ever (Yoon, Liu, Noble 2003).

    Attributes:
        radius: of the disc, metres.
        min_speed: m/s, positive.
        max_speed: m/s.
        pause_s: seconds at each waypoint.
    """

    radius: float
    min_speed: float
    max_speed: float
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.radius < np.inf:
            raise ValueError(f"radius must be positive and finite, not {self.radius}")
        if not 0 < self.min_speed <= self.max_speed < np.inf:
            raise ValueError(f"0 < min_speed <= max_speed must hold, not {self.min_speed} and {self.max_speed}")
        if not 0 <= self.pause_s < np.inf:
            raise ValueError(f"pause_s must be finite and at least 0, not {self.pause_s}")

    def start(self, stream: NodeStream) -> Journey:
        """All nodes of the stream setting out from uniform positions."""
        uniform = stream.uniform(5)
        position, target = (disc_points(uniform[:, k : k + 2], self.radius) for k in (0, 2))
        rest, none = np.zeros(len(position)), np.zeros(len(position), dtype=np.int64)
        return Journey(position, target, self._speed(uniform[:, 4]), rest, rest.copy(), none)

    def advance(self, journey: Journey, elapsed: NDArray[np.float64], stream: NodeStream) -> Journey:
        """The journey ``elapsed`` (n,) seconds later.

        A node's way is a function of its row of the stream alone, however often and for whatever times it is asked.

        Args:
            journey: of the n nodes of ``stream``.
            elapsed: seconds, at least 0 and finite; may differ from node to node.
            stream: waypoints and speeds, leg by leg; the same one for every call.

        Raises:
            ValueError: if a time is negative or not finite.
        """
        if not (np.all(elapsed >= 0) and np.all(np.isfinite(elapsed))):
            raise ValueError("elapsed times must be finite and at least 0")
        position, target, speed = journey.position.copy(), journey.target.copy(), journey.speed.copy()
        pause, travelled, legs = journey.pause.copy(), journey.travelled.copy(), journey.legs.copy()
        left = np.array(elapsed, dtype=np.float64)
        moving = np.arange(len(left))
        while len(moving):
            wait = np.minimum(pause[moving], left[moving])
            pause[moving] -= wait
            left[moving] -= wait
            way = target[moving] - position[moving]
            distance = np.linalg.norm(way, axis=1)
            reach = speed[moving] * left[moving]
            # Who waits still has not set out, even where his waypoint lies under his feet.
            arrives = (reach >= distance) & (pause[moving] == 0)
            part = np.divide(reach, distance, out=np.ones_like(reach), where=reach < distance)
            position[moving] += part[:, None] * way
            travelled[moving] += np.minimum(reach, distance)
            left[moving] = np.where(arrives, np.maximum(left[moving] - distance / speed[moving], 0.0), 0.0)
            # Who did not arrive has used up its time; who did goes on to a new waypoint.
            moving = moving[arrives]
            drawn = stream.at_block(moving, _BLOCKS_OF_A_LEG * legs[moving]).uniform(3)
            target[moving], speed[moving] = disc_points(drawn[:, :2], self.radius), self._speed(drawn[:, 2])
            pause[moving] = self.pause_s
            legs[moving] += 1
        return Journey(position, target, speed, pause, travelled, legs)

    def _speed(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.min_speed + uniform * (self.max_speed - self.min_speed))
