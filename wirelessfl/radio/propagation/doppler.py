"""Doppler shifts of links: given as a number, or those of nodes that move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.placement import site_distances
from wirelessfl.radio.propagation.path_loss import PathLossModel
from wirelessfl.radio.propagation.placement import Draws, Moment, Placement


class Doppler(Protocol):
    """Doppler shifts over time."""

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) f_D, the largest shift of the scattered part at a moment."""

    def cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) ∫ f_D dt up to a moment: scattered gains Δ cycles apart have the correlation J0(2πΔ)."""

    def mean_shift_hz(
        self, cycles: NDArray[np.float64], elapsed: NDArray[np.float64], since: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n,) mean f_D over ``elapsed`` seconds that ended at ``cycles`` and began at ``since``."""

    def ray_cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) turns of the direct ray's phase at a moment."""

    def ray_shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) Doppler shift of the direct ray at a moment, negative for a node that moves away."""

    def drawn_from(self, draws: Draws) -> Doppler:
        """The same shifts with other streams."""


@dataclass(frozen=True)
class GivenDoppler:
    """One shift for all links, whether their nodes move or not.

    Attributes:
        doppler_hz: f_D.
        resting: whether the nodes have places that they keep, so that only their surroundings move: the direct ray
            then keeps its phase. Otherwise it comes from one direction a link, uniform around the node, and has the
            shift f_D cos θ.
        draws: streams of the links.
    """

    doppler_hz: float
    resting: bool
    draws: Draws

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """f_D for all."""
        return np.full(len(nodes), self.doppler_hz)

    def cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """f_D t."""
        return self.doppler_hz * np.broadcast_to(moment.time_s, (len(nodes),))

    def mean_shift_hz(
        self, cycles: NDArray[np.float64], elapsed: NDArray[np.float64], since: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """f_D for all."""
        return np.full(len(cycles), self.doppler_hz)

    def ray_cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """f_D t cos θ; 0 for nodes that rest."""
        if self.resting:
            return np.zeros(len(nodes))
        return self._cosine(nodes) * self.cycles(nodes, moment)

    def ray_shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """f_D cos θ; 0 for nodes that rest."""
        return np.zeros(len(nodes)) if self.resting else self.doppler_hz * self._cosine(nodes)

    def drawn_from(self, draws: Draws) -> GivenDoppler:
        """The same shift, with directions from other streams."""
        return replace(self, draws=draws)

    def _cosine(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        # (n,) cos θ of the direction from which the direct ray comes
        return np.cos(2 * np.pi * self.draws.nodes("direct_ray", 0, nodes).uniform(2)[:, 1])


@dataclass(frozen=True)
class MotionDoppler:
    """The shift v/λ of each node's own speed: the channel of a node at rest does not change.

    Attributes:
        placement: where the nodes are, and how they move.
        model: path-loss model, which knows the wavelength.
        site: (x, y) of the base station in metres.
    """

    placement: Placement
    model: PathLossModel
    site: tuple[float, float]

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """v/λ."""
        return self.placement.motion(nodes, moment).speed / self.model.wavelength

    def cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """Wavelengths travelled."""
        return self.placement.motion(nodes, moment).travelled / self.model.wavelength

    def mean_shift_hz(
        self, cycles: NDArray[np.float64], elapsed: NDArray[np.float64], since: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Wavelengths travelled over the time it took."""
        return np.divide(cycles - since, elapsed, out=np.zeros_like(cycles), where=elapsed > 0)

    def ray_cycles(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """Wavelengths between the antennas, which the phase lags behind."""
        distance = site_distances(self.placement.motion(nodes, moment).position, np.array([self.site]))[:, 0]
        return -self.model.ray_length(distance) / self.model.wavelength

    def ray_shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """Wavelengths by which the antennas approach each other in a second."""
        motion = self.placement.motion(nodes, moment)
        way = motion.position - np.asarray(self.site)
        distance = site_distances(motion.position, np.array([self.site]))[:, 0]
        length = self.model.ray_length(distance)
        # Where antennas meet they neither approach nor recede.
        receding = np.divide((motion.velocity * way).sum(axis=1), length, out=np.zeros(len(nodes)), where=length > 0)
        return np.asarray(-receding / self.model.wavelength)

    def drawn_from(self, draws: Draws) -> MotionDoppler:
        """The same: shifts follow from the motion."""
        return self
