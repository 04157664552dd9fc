"""Laws by which nodes are placed, as objects; positions (n, 2) in metres, the base station in the origin."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.geometry import hexagonal_sites, uniform_disc, uniform_hexagon
from wirelessfl.streams import NodeStream


@runtime_checkable
class PlacementLaw(Protocol):
    """Where nodes stand that do not move."""

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
        """Positions (n, 2)."""
        return uniform_disc(self.radius, stream, self.min_radius)


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
            raise ValueError(f"there are {len(self.points)} positions, and node {int(stream.nodes.max())} asks for one")
        return np.asarray(self.points, dtype=np.float64)[stream.nodes]
