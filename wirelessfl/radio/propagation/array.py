"""Antenna arrays of a receiver: steering vectors, spatial correlation, and the gains of links at every antenna.

The scattered part of a link is correlated over the antennas, R^{1/2} g with independent g, and its direct ray is a
plane wave: the steering vector of the direction from which it comes.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.propagation.large_scale import DistanceGain, LargeScale
from wirelessfl.radio.propagation.placement import Draws, Moment

SECTOR_RAD = np.pi / 3
"""Half of the sector in which nodes without places lie, 60° to either side of broadside."""

# Nodes of each panel of the quadrature over the ring, in which the phase turns by at most as many radians
_RING_NODES = 64
# Antennas above which roots are not kept: with so many, each takes 1 MiB
_MOST_KEPT = 256


@dataclass(frozen=True)
class ArrayGeometry:
    """A uniform array in the plane across its broadside: linear where it has one row, else planar.

    Attributes:
        rows: elements above each other.
        columns: elements beside each other.
        spacing: wavelengths between neighbours.
    """

    rows: int
    columns: int
    spacing: float

    def __post_init__(self) -> None:
        precondition(self.rows >= 1 and self.columns >= 1, "an array has one row and one column at least")
        precondition(0 < self.spacing < np.inf, f"spacing must be positive and finite, not {self.spacing}")

    @property
    def antennas(self) -> int:
        """A."""
        return self.rows * self.columns

    @property
    def positions(self) -> NDArray[np.float64]:
        """(A, 2) places of the elements across broadside, beside and above the first, in wavelengths; row by row."""
        above, beside = np.divmod(np.arange(self.antennas), self.columns)
        return self.spacing * np.stack([beside, above], axis=1).astype(np.float64)

    def steering(
        self, azimuth: NDArray[np.float64], elevation: NDArray[np.float64] | float = 0.0
    ) -> NDArray[np.complex128]:
        """The steering vectors (n, A) of plane waves, e^{j2π(y sin φ cos θ + z sin θ)}; 1 at the first element.

        Args:
            azimuth: φ (n,) from broadside, in radians.
            elevation: θ (n,) or one number, in radians.
        """
        sines = np.stack(np.broadcast_arrays(np.sin(azimuth) * np.cos(elevation), np.sin(elevation)), axis=-1)
        return np.asarray(np.exp(2j * np.pi * (sines @ self.positions.T)))

    def pattern(self, weights: NDArray[np.complex128], azimuth: NDArray[np.float64]) -> NDArray[np.float64]:
        """Array gain (n,) of a combiner for plane waves at the height of the array, |fᴴa(φ)|²/‖f‖²; at most A.

        Args:
            weights: f (A,).
            azimuth: φ (n,) from broadside, in radians.
        """
        behind = np.abs(self.steering(azimuth) @ weights.conj()) ** 2
        return np.asarray(behind / np.sum(np.abs(weights) ** 2))


class SpatialCorrelation(Protocol):
    """Correlation of the scattered part of a link between the antennas of an array."""

    def root(self, geometry: ArrayGeometry, azimuth: NDArray[np.float64]) -> NDArray[np.complex128] | None:
        """The roots R^{1/2} (n, A, A), or (1, A, A) for all links alike; None where antennas fade independently."""


@dataclass(frozen=True)
class IndependentAntennas:
    """R = I: scattering so rich that neighbours fade independently."""

    def root(self, geometry: ArrayGeometry, azimuth: NDArray[np.float64]) -> None:
        """None."""


@dataclass(frozen=True)
class ExponentialCorrelation:
    """R_ab = ρ^{|a−b|} along rows and along columns (Loyka 2001; the Kronecker product for a planar array).

    Attributes:
        coefficient: ρ in [0, 1) of neighbours.
    """

    coefficient: float

    def root(self, geometry: ArrayGeometry, azimuth: NDArray[np.float64]) -> NDArray[np.complex128]:
        """One root (1, A, A) for all links."""
        return _exponential_root(geometry, self.coefficient)


@dataclass(frozen=True)
class OneRing:
    """Scatterers on a ring around the node, seen under φ ± Δ: R = (1/2Δ) ∫ a(φ + x) a(φ + x)ᴴ dx over [−Δ, Δ].

    After Shiu, Foschini, Gans, Kahn (2000); a the steering vector in the plane of the horizon.

    Attributes:
        spread_deg: Δ in degrees, above 0 and at most 180.
    """

    spread_deg: float

    def root(self, geometry: ArrayGeometry, azimuth: NDArray[np.float64]) -> NDArray[np.complex128]:
        """A root (n, A, A) for each link."""
        root, antennas = _ring_root if geometry.antennas > _MOST_KEPT else _kept_ring_root, geometry.antennas
        found = [root(geometry, self.spread_deg, angle) for angle in azimuth.tolist()]
        return np.array(found, dtype=np.complex128).reshape(-1, antennas, antennas)  # in some rounds there are no links


def exponential_correlation(geometry: ArrayGeometry, coefficient: float) -> NDArray[np.float64]:
    """R (A, A) of `ExponentialCorrelation`."""
    across, up = (
        coefficient ** np.abs(np.subtract.outer(np.arange(n), np.arange(n))) for n in (geometry.columns, geometry.rows)
    )
    return np.asarray(np.kron(up, across), dtype=np.float64)


def one_ring_correlation(geometry: ArrayGeometry, spread_deg: float, azimuth: float) -> NDArray[np.complex128]:
    """R (A, A) of `OneRing` around a direction in radians, by Gauss's quadrature.

    All rows of a planar array see the same, and R depends on the distance of columns alone.
    """
    spread, columns = np.deg2rad(spread_deg), np.arange(geometry.columns)
    wavelengths = geometry.spacing * (geometry.columns - 1)
    panels = max(1, int(np.ceil(4 * np.pi * wavelengths * spread / _RING_NODES)))
    nodes, weights = np.polynomial.legendre.leggauss(_RING_NODES)
    centre = (2 * np.arange(panels) + 1) / panels - 1
    sines = np.sin(azimuth + spread * (centre[:, None] + nodes / panels))
    weight, first = np.broadcast_to(weights / (2 * panels), sines.shape), np.zeros(len(columns), dtype=np.complex128)
    for panel in range(panels):
        first += np.exp(2j * np.pi * geometry.spacing * np.outer(columns, sines[panel])) @ weight[panel]
    apart = np.subtract.outer(columns, columns)
    across = np.where(apart >= 0, first[np.abs(apart)], first[np.abs(apart)].conj())
    return np.asarray(np.kron(np.ones((geometry.rows, geometry.rows)), across))


def _root(correlation: NDArray[np.complex128]) -> NDArray[np.complex128]:
    # The Hermitian root; rounding makes the least eigenvalues of a narrow ring negative
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.conj().T, dtype=np.complex128)


@lru_cache(maxsize=16)
def _exponential_root(geometry: ArrayGeometry, coefficient: float) -> NDArray[np.complex128]:
    return _root(exponential_correlation(geometry, coefficient).astype(np.complex128))[None]


def _ring_root(geometry: ArrayGeometry, spread_deg: float, azimuth: float) -> NDArray[np.complex128]:
    return _root(one_ring_correlation(geometry, spread_deg, azimuth))


_kept_ring_root = lru_cache(maxsize=1024)(_ring_root)


@dataclass(frozen=True)
class AntennaArray:
    """The antennas of a receiver, and the directions in which it sees the nodes.

    Attributes:
        geometry: where its elements are.
        correlation: of the scattered part.
        large_scale: of the links, by whose places directions are known.
        draws: streams of the links.
    """

    geometry: ArrayGeometry
    correlation: SpatialCorrelation
    large_scale: LargeScale
    draws: Draws

    def directions(
        self, nodes: NDArray[np.int64], moment: Moment
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
        """Azimuth (n,) from broadside, which is the x axis, and elevation (n,) in radians.

        By the places of the nodes, which are below the array by what makes a ray longer than its way on the ground;
        without places the azimuth is drawn once a node, uniform in the sector, and the elevation is 0.
        """
        if not isinstance(self.large_scale, DistanceGain):
            uniform = self.draws.nodes("azimuth", 0, nodes).uniform()[:, 0]
            return SECTOR_RAD * (2 * uniform - 1), 0.0
        apart = self.large_scale.placement.motion(nodes, moment).position - np.asarray(self.large_scale.site)
        ground = np.hypot(apart[:, 0], apart[:, 1])
        along = self.large_scale.model.ray_length(ground)
        return np.arctan2(apart[:, 1], apart[:, 0]), -np.arccos(np.minimum(ground / along, 1.0))

    def received(
        self,
        scattered: NDArray[np.complex128],
        ray: NDArray[np.complex128],
        nodes: NDArray[np.int64],
        moment: Moment,
    ) -> NDArray[np.complex128]:
        """The gains (n, T, F, A) at all antennas.

        Args:
            scattered: (n, T, F, A) scattered parts, independent between antennas.
            ray: (n, T, F) direct rays at the first antenna.
            nodes: whose links they are.
            moment: when.
        """
        direct = bool(ray.any())
        if not direct and isinstance(self.correlation, IndependentAntennas):
            return scattered
        azimuth, elevation = self.directions(nodes, moment)
        root = self.correlation.root(self.geometry, azimuth)
        if root is not None:
            scattered = scattered @ root.swapaxes(-1, -2)[:, None]
        if not direct:
            return scattered
        return np.asarray(scattered + ray[..., None] * self.geometry.steering(azimuth, elevation)[:, None, None])
