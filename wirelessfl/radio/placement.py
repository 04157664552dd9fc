"""Positions (n, 2) of nodes in metres: base stations, laws of placement, and random-waypoint mobility.

The base station stands in the origin. Random waypoint: Johnson, Maltz 1996, here at any time step and with its state
made explicit.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.streams import NodeStream


def disc_points(uniform: NDArray[np.float64], radius: float, min_radius: float = 0.0) -> NDArray[np.float64]:
    """Numbers (n, 2) from the unit square, laid evenly over the area between two circles."""
    distance = np.sqrt(min_radius**2 + uniform[:, 0] * (radius**2 - min_radius**2))
    angle = 2.0 * np.pi * uniform[:, 1]
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)


def hexagonal_sites(rings: int, inter_site_distance: float) -> NDArray[np.float64]:
    """Base stations (1 + 3 r (r + 1), 2) of a hexagonal grid: the middle one first, then ring by ring.

    Raises:
        ValueError: if ``rings`` is negative or the distance not positive.
    """
    precondition(
        rings >= 0 and 0 < inter_site_distance < np.inf, f"no grid of {rings} rings at {inter_site_distance} m"
    )
    axial = [(q, r) for q in range(-rings, rings + 1) for r in range(-rings, rings + 1) if -rings <= q + r <= rings]
    axial.sort(key=lambda cell: (max(abs(cell[0]), abs(cell[1]), abs(cell[0] + cell[1])), cell))
    grid = np.array(axial, dtype=np.float64)
    basis = inter_site_distance * np.array([[1.0, 0.0], [0.5, np.sqrt(3.0) / 2.0]])
    return np.asarray(grid @ basis)


def uniform_hexagon(site: NDArray[np.float64], inter_site_distance: float, stream: NodeStream) -> NDArray[np.float64]:
    """Positions (n, 2) uniform over the hexagonal cell around each node's ``site`` (n, 2) or (2,)."""
    uniform = stream.uniform(3)
    corner_angles = np.pi / 6.0 + np.pi / 3.0 * np.arange(6)
    corners = inter_site_distance / np.sqrt(3.0) * np.stack([np.cos(corner_angles), np.sin(corner_angles)], axis=1)
    # Three rhombi make up the hexagon, each spanned by two corners that are 120 degrees apart.
    rhombus = (3.0 * uniform[:, 0]).astype(np.int64)
    first, second = corners[2 * rhombus], corners[(2 * rhombus + 2) % 6]
    return np.asarray(site + uniform[:, 1:2] * first + uniform[:, 2:3] * second)


def site_distances(positions: NDArray[np.float64], sites: NDArray[np.float64]) -> NDArray[np.float64]:
    """Horizontal distances (n, c) from n positions to c sites."""
    return np.asarray(np.linalg.norm(positions[:, None, :] - sites[None, :, :], axis=2))


@runtime_checkable
class PlacementLaw(Protocol):
    """Law of the places of nodes that do not move."""

    def place(self, stream: NodeStream) -> NDArray[np.float64]:
        """Positions (n, 2) of the stream's nodes; a node's own does not depend on the others."""


@dataclass(frozen=True)
class UniformDisc:
    """Uniform over the area between two circles.

    Attributes:
        radius: metres.
        min_radius: metres, how close nobody comes to the base station.
    """

    radius: float
    min_radius: float = 0.0

    def place(self, stream: NodeStream) -> NDArray[np.float64]:
        """Positions (n, 2).

        Raises:
            ValueError: unless 0 <= min_radius < radius.
        """
        radii = f"0 <= min_radius < radius must hold, not {self.min_radius} and {self.radius}"
        precondition(0 <= self.min_radius < self.radius < np.inf, radii)
        return disc_points(stream.uniform(2), self.radius, self.min_radius)


@dataclass(frozen=True)
class UniformHexagons:
    """Uniform over the hexagonal cells of a grid, node i in cell i mod C, so that cells hold equally many.

    Attributes:
        inter_site_distance: metres between neighbouring base stations.
        rings: rings of cells around the middle one; 0 is a single cell.
    """

    inter_site_distance: float
    rings: int = 0

    def place(self, stream: NodeStream) -> NDArray[np.float64]:
        """Positions (n, 2)."""
        sites = hexagonal_sites(self.rings, self.inter_site_distance)
        return uniform_hexagon(sites[stream.nodes % len(sites)], self.inter_site_distance, stream)


@dataclass(frozen=True)
class GivenPositions:
    """Positions known beforehand.

    Attributes:
        points: (x, y) of node 0, 1, ..., metres.
    """

    points: tuple[tuple[float, float], ...]

    def place(self, stream: NodeStream) -> NDArray[np.float64]:
        """Positions (n, 2).

        Raises:
            ValueError: if a node has none.
        """
        if np.any(stream.nodes >= len(self.points)):
            raise ValueError(f"there are {len(self.points)} positions, and node {int(stream.nodes.max())} needs one")
        return np.asarray(self.points, dtype=np.float64)[stream.nodes]


# A waypoint and a speed are three uniform numbers
_BLOCKS_OF_A_LEG = 2


@dataclass(frozen=True, eq=False)
class Journey:
    """Positions and targets of n moving nodes; all that has to be remembered.

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
    def velocity(self) -> NDArray[np.float64]:
        """(n, 2) m/s at this instant: 0 while a node waits."""
        way = self.target - self.position
        length = np.hypot(way[:, 0], way[:, 1])[:, None]
        direction = np.divide(way, length, out=np.zeros_like(way), where=length > 0)
        return np.asarray(direction * np.where(self.pause > 0, 0.0, self.speed)[:, None])


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
        precondition(0 < self.radius < np.inf, f"radius must be positive and finite, not {self.radius}")
        precondition(
            0 < self.min_speed <= self.max_speed < np.inf,
            f"0 < min_speed <= max_speed must hold, not {self.min_speed} and {self.max_speed}",
        )
        precondition(0 <= self.pause_s < np.inf, f"pause_s must be finite and at least 0, not {self.pause_s}")

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
        precondition(
            np.all(elapsed >= 0) and np.all(np.isfinite(elapsed)), "elapsed times must be finite and at least 0"
        )
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
