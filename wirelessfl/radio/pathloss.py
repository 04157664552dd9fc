"""Large-scale propagation: path loss of distance alone, shadowing, and line of sight.

Losses are in dB, as the standards write them; `path_gain` turns them into the linear β of the links. The random parts
are drawn once per link; along the way of a node that moves they follow `spatial`.
"""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.units import SPEED_OF_LIGHT, db_to_linear
from wirelessfl.streams import NodeStream


def free_space_path_loss_db(distance: NDArray[np.float64], carrier_hz: float) -> NDArray[np.float64]:
    """Friis: 20 log10(4π d f/c) dB between isotropic antennas, in the far field.

    Args:
        distance: metres, positive.
        carrier_hz: carrier frequency.

    Raises:
        ValueError: if a distance or the carrier is not positive.
    """
    if not (np.all(distance > 0) and carrier_hz > 0):
        raise ValueError("distances and carrier_hz must be positive")
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
    if not (reference_distance > 0 and exponent > 0):
        raise ValueError(f"exponent and reference_distance must be positive, not {exponent}, {reference_distance}")
    near = free_space_path_loss_db(np.minimum(distance, reference_distance), carrier_hz)
    return np.asarray(near + 10.0 * exponent * np.log10(np.maximum(distance / reference_distance, 1.0)))


def path_gain(path_loss_db: NDArray[np.float64]) -> NDArray[np.float64]:
    """The linear gain β of a loss in dB."""
    return db_to_linear(-path_loss_db)


def shadowing_db(std_db: NDArray[np.float64] | float, stream: NodeStream) -> NDArray[np.float64]:
    """Log-normal shadowing (n,): a Gaussian loss in dB, to be added to the path loss of each link."""
    if not np.all(np.asarray(std_db) >= 0):
        raise ValueError(f"std_db must be at least 0, not {std_db}")
    return np.asarray(std_db * stream.normal()[:, 0])


def line_of_sight(probability: NDArray[np.float64], stream: NodeStream) -> NDArray[np.bool_]:
    """Which links (n,) see their base station, each with its own probability."""
    return np.asarray(stream.uniform()[:, 0] < probability)
