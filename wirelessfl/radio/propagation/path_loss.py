"""Path-loss models: loss by distance, laws of line of sight and shadowing, and their correlation along a way.

Arrays (n,) over links, distances horizontal and in metres, losses in dB; `path_gain` turns them into the linear β of
the links. The random parts (line of sight, shadowing) are drawn by whoever holds the links; a model only says with what
law.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.tr38901 import (
    LARGE_SCALE,
    Scenario,
    tr38901_los_probability,
    tr38901_path_loss_db,
)
from wirelessfl.radio.units import SPEED_OF_LIGHT, db_to_linear


def free_space_path_loss_db(distance: NDArray[np.float64], carrier_hz: float) -> NDArray[np.float64]:
    """Friis: 20 log10(4π d f/c) dB between isotropic antennas, in the far field.

    Args:
        distance: metres, positive.
        carrier_hz: carrier frequency.

    Raises:
        ValueError: if a distance or the carrier is not positive.
    """
    precondition(np.all(distance > 0) and carrier_hz > 0, "distances and carrier_hz must be positive")
    return np.asarray(20.0 * np.log10(4.0 * np.pi * distance * carrier_hz / SPEED_OF_LIGHT))


def log_distance_path_loss_db(
    distance: NDArray[np.float64], exponent: float, reference_distance: float, carrier_hz: float
) -> NDArray[np.float64]:
    """Free space up to ``reference_distance``, then 10 n log10(d/d0) dB more (Rappaport, Wireless Communications, 4.9).

    Args:
        distance: metres, positive.
        exponent: path-loss exponent n; 2 is free space.
        reference_distance: d0 in metres.
        carrier_hz: carrier frequency.

    Raises:
        ValueError: if an argument is not positive.
    """
    precondition(
        reference_distance > 0 and exponent > 0,
        f"exponent and reference_distance must be positive, not {exponent}, {reference_distance}",
    )
    near = free_space_path_loss_db(np.minimum(distance, reference_distance), carrier_hz)
    return np.asarray(near + 10.0 * exponent * np.log10(np.maximum(distance / reference_distance, 1.0)))


def path_gain(path_loss_db: NDArray[np.float64]) -> NDArray[np.float64]:
    """The linear gain β of a loss in dB."""
    return db_to_linear(-path_loss_db)


NEAREST = 1.0
"""Metres; formulas of distance alone hold in the far field, and nearer links count as this far away."""


@runtime_checkable
class PathLossModel(Protocol):
    """The large-scale law of a link."""

    @property
    def rician_k(self) -> float | None:
        """Linear Rician factor of a link with line of sight; None where the model says nothing of the fading."""

    def line_of_sight_probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability (n,) of a line of sight."""

    def loss_db(self, distance: NDArray[np.float64], line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Path loss (n,) in dB without shadowing."""

    def shadowing_std_db(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Standard deviation (n,) of the shadowing in dB."""

    def decorrelation_distance(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """d_cor (n,) of the shadowing in metres: its autocorrelation is e^{−Δd/d_cor} along a node's way."""

    @property
    def sight_decorrelation(self) -> float:
        """d_cor in metres of the field that decides on the line of sight."""

    @property
    def wavelength(self) -> float:
        """c/f in metres."""

    def ray_length(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Metres (n,) between the antennas."""

    def in_range(self, distance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Validity (n,) of the model at these distances."""


@dataclass(frozen=True)
class LogDistance:
    """Free space up to a reference distance, then a power of the distance, with log-normal shadowing.

    With exponent 2 it is free space everywhere.

    Attributes:
        carrier_hz: carrier frequency.
        exponent: path-loss exponent beyond the reference distance.
        reference_distance: metres.
        shadowing: standard deviation of the shadowing in dB.
        decorrelation: d_cor of the shadowing in metres.
    """

    carrier_hz: float
    exponent: float
    reference_distance: float
    shadowing: float = 0.0
    decorrelation: float = 50.0
    rician_k: float | None = None

    def line_of_sight_probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Always: the model does not tell the two apart."""
        return np.ones_like(distance)

    def loss_db(self, distance: NDArray[np.float64], line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """`log_distance_path_loss_db`, d at least `NEAREST`."""
        far = np.maximum(distance, NEAREST)
        return log_distance_path_loss_db(far, self.exponent, self.reference_distance, self.carrier_hz)

    def shadowing_std_db(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for every link."""
        return np.full(len(line_of_sight), self.shadowing)

    def decorrelation_distance(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for every link."""
        return np.full(len(line_of_sight), self.decorrelation)

    @property
    def sight_decorrelation(self) -> float:
        """Decorrelation distance of the shadowing; no link is without a line of sight."""
        return self.decorrelation

    @property
    def wavelength(self) -> float:
        """c/f in metres."""
        return SPEED_OF_LIGHT / self.carrier_hz

    def ray_length(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance: the model knows no heights."""
        return distance

    def in_range(self, distance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Everywhere."""
        return np.ones(len(distance), dtype=np.bool_)


@dataclass(frozen=True)
class Tr38901:
    """3GPP TR 38.901: line of sight by chance, and with it loss, shadowing and fading.

    Attributes:
        scenario: "uma", "umi" or "inh".
        carrier_hz: carrier frequency.
        h_bs: height of the base station in metres.
        h_ut: height of the terminals in metres.
        shadowing: standard deviation of the shadowing in dB for all links; None for that of the standard.
    """

    scenario: Scenario
    carrier_hz: float
    h_bs: float
    h_ut: float
    shadowing: float | None = None

    @property
    def rician_k(self) -> float:
        """The mean K factor of Table 7.5-6, linear."""
        return db_to_linear(LARGE_SCALE[self.scenario].rician_k_db)

    def line_of_sight_probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Table 7.4.2-1."""
        return tr38901_los_probability(self.scenario, distance, self.h_ut)

    def loss_db(self, distance: NDArray[np.float64], line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Table 7.4.1-1."""
        return tr38901_path_loss_db(self.scenario, distance, line_of_sight, self.carrier_hz, self.h_bs, self.h_ut)

    def shadowing_std_db(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """σ_SF with and without line of sight."""
        if self.shadowing is not None:
            return np.full(len(line_of_sight), self.shadowing)
        return np.where(line_of_sight, *LARGE_SCALE[self.scenario].shadowing_std_db)

    def decorrelation_distance(self, line_of_sight: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Table 7.5-6, with and without line of sight."""
        return np.where(line_of_sight, *LARGE_SCALE[self.scenario].decorrelation_distance)

    @property
    def sight_decorrelation(self) -> float:
        """Table 7.6.3.1-2: 50 m outdoors, 10 m indoors."""
        return LARGE_SCALE[self.scenario].sight_decorrelation

    @property
    def wavelength(self) -> float:
        """c/f in metres."""
        return SPEED_OF_LIGHT / self.carrier_hz

    def ray_length(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """d_3D, by the heights of the antennas."""
        return np.hypot(distance, self.h_bs - self.h_ut)

    def in_range(self, distance: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Table 7.4.1-1: d_2D from 10 m to 5 km outdoors, d_3D from 1 m to 150 m indoors."""
        low, high = LARGE_SCALE[self.scenario].valid
        length = self.ray_length(distance) if self.scenario == "inh" else distance
        return (length >= low) & (length <= high)
