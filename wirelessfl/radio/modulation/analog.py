"""Linear analogue amplitude modulation: coordinates are amplitudes, and the channel forms their sum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.power_control import TransmitPlan


@dataclass(frozen=True)
class Analog:
    """x_i = α_i Δ_i: every coordinate is an amplitude, linear from end to end."""

    def encode(self, updates: Array, norms: NDArray[np.float64], clip: float) -> tuple[Array, NDArray[np.float64]]:
        """The updates themselves."""
        return updates, norms

    def decode(self, received: NDArray[np.float64], plan: TransmitPlan) -> NDArray[np.float64]:
        """The received signal without the server's scale."""
        received /= plan.receive_scale
        return received
