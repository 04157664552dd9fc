"""The uplink slot of a round as planned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.slot_schedule import PilotCharge


@dataclass(frozen=True)
class SlotPlan:
    """Plan of the uplink slot, made before any training is computed.

    Attributes:
        senders: (k,) positions of the clients that will be heard, ascending.
        silent: (s,) positions of those who reported and stay silent in a deep fade.
        airtime: seconds of the slot.
        jammer_gain: α_CJ, 0 without jamming.
        jammer_failed: whether jamming was agreed on and does not come.
        pilots: what pilots take; None where they cost nothing.
    """

    senders: NDArray[np.int64]
    silent: NDArray[np.int64]
    airtime: float
    jammer_gain: float = 0.0
    jammer_failed: bool = False
    pilots: PilotCharge | None = None
