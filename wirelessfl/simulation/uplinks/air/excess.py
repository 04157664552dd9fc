"""Senders over the air who exceed the gains that they were told: by their power, or by what they let it carry."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import SlotTransmission
from wirelessfl.simulation.roles import Roles
from wirelessfl.trace import Role


@dataclass(frozen=True, eq=False)
class Excess:
    """Factors on the amplitudes of k senders.

    Attributes:
        factor: (k,) by which each wants to send louder; 1 for those who follow the protocol.
        limited: (k,) whose transmitter stays within its power budget all the same.
        budget: (k,) P_i.
        clip: τ.
    """

    factor: NDArray[np.float64]
    limited: NDArray[np.bool_]
    budget: NDArray[np.float64]
    clip: float

    @classmethod
    def of(
        cls, roles: Roles | None, clients: NDArray[np.int64], budget: NDArray[np.float64], clip: float
    ) -> Self | None:
        """The excess of k senders; None where nobody exceeds anything."""
        factors = np.ones(len(clients)) if roles is None else roles.amplitudes(clients)
        if roles is None or np.all(factors == 1.0):
            return None
        return cls(factors, ~roles.have(clients, Role.POWER_CHEAT), budget, clip)

    def louder(
        self, positions: NDArray[np.int64], sent: SlotTransmission, amplitude: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n,) factors with which some of the senders send louder.

        Who stays within its budget reaches no higher than √P_i, or than an update at the clip where the power control
        lets that exceed P_i (limits on the average).

        Args:
            positions: (n,) of the k senders.
            sent: their gains as they were told.
            amplitude: (n,) ‖x_i‖ with these gains.
        """
        told = np.abs(sent.tx_gain).max(axis=(1, 2)) * self.clip
        most = np.maximum(np.sqrt(self.budget[positions]), told)
        wanted, limited = self.factor[positions], self.limited[positions]
        with np.errstate(divide="ignore", invalid="ignore"):
            reached = np.where(amplitude > 0, most / amplitude, np.inf)
        return np.where(limited & (wanted != 1.0), np.minimum(wanted, reached), wanted)


def amplified(sent: SlotTransmission, factors: NDArray[np.float64]) -> SlotTransmission:
    """Transmissions of n clients with gains times factors (n,); the back-off stays what they were told."""
    return replace(sent, tx_gain=sent.tx_gain * factors[:, None, None])
