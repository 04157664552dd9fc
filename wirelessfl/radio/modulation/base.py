"""The protocol of a modulation over the air."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.power_control import TransmitPlan

Array = Any
"""A NumPy array or a torch tensor."""


@runtime_checkable
class Modulation(Protocol):
    """Modulation of an update to d real symbols that are scaled and sent, and demodulation of their sum.

    The channel adds the signals of all clients while they are formed, block by block.
    `wirelessfl.radio.modulation.conformance` checks a modulation of your own.
    """

    def encode(self, updates: Array, norms: NDArray[np.float64], clip: float) -> tuple[Array, NDArray[np.float64]]:
        """The symbols (k, d) of a block of clients, in the kind of the updates, and their norms (k,), at most τ.

        Args:
            updates: Δ (k, d), NumPy or torch.
            norms: ‖Δ_i‖ (k,).
            clip: τ.
        """

    def decode(self, received: NDArray[np.float64], plan: TransmitPlan) -> NDArray[np.float64]:
        """The estimate of Σ p_i Δ_i (d,) from the received signal (d,).

        Args:
            received: y, with noise; may be changed in place.
            plan: what the server announced; ``receive_scale`` undoes the gains of linear amplitudes.
        """
