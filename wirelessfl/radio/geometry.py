"""Where nodes stand: placement in a disc or in hexagonal cells, and distances to base stations. Metres, (n, 2)."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream


def uniform_disc(radius: float, stream: NodeStream, min_radius: float = 0.0) -> NDArray[np.float64]:
    """Positions (n, 2) uniform over the area between two circles around the origin.

    Raises:
        ValueError: unless 0 <= min_radius < radius.
    """
    if not 0 <= min_radius < radius < np.inf:
        raise ValueError(f"0 <= min_radius < radius must hold, not {min_radius} and {radius}")
    return disc_points(stream.uniform(2), radius, min_radius)


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
    if rings < 0 or not 0 < inter_site_distance < np.inf:
        raise ValueError(f"no grid of {rings} rings at {inter_site_distance} m")
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


def nearest_site(positions: NDArray[np.float64], sites: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index (n,) of the closest site; of two equally close ones the first."""
    return np.asarray(site_distances(positions, sites).argmin(axis=1))
