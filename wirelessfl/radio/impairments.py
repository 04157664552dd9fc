"""What clocks and oscillators do to a link beyond fading: residual phase and late arrival."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream


def phase_errors(std_rad: float, stream: NodeStream) -> NDArray[np.complex128]:
    """Rotations e^{jφ} (n,), φ ~ N(0, std²): multiply the true channel by them, not the estimate.

    The real part then loses E cos φ = e^{−std²/2} of every update.
    """
    if not 0 <= std_rad < np.inf:
        raise ValueError(f"std_rad must be finite and at least 0, not {std_rad}")
    return np.asarray(np.exp(1j * std_rad * stream.normal()[:, 0]))


def timing_offsets(max_offset: float, stream: NodeStream) -> NDArray[np.float64]:
    """How many symbols (n,) each client arrives late, uniform from 0 to ``max_offset`` (below 1 symbol)."""
    if not 0 <= max_offset < 1:
        raise ValueError(f"max_offset must lie in [0, 1) symbols, not {max_offset}")
    return np.asarray(max_offset * stream.uniform()[:, 0])


def carrier_offsets(std_hz: float, stream: NodeStream) -> NDArray[np.float64]:
    """Carrier frequency offsets f_i ~ N(0, std²) (n,) in hertz, each the same for the whole run."""
    return np.asarray(std_hz * stream.normal()[:, 0])


def carrier_rotation(offsets_hz: NDArray[np.float64], times_s: NDArray[np.float64]) -> NDArray[np.complex128]:
    """e^{j2π f_i t} (n, T): by how much a channel has turned t seconds after it was estimated first."""
    return np.asarray(np.exp(2j * np.pi * offsets_hz[:, None] * times_s))
