"""What the server asks of an uplink; one file beside this one for each kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import Release
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.simulation.round import Round


@dataclass(frozen=True)
class SlotPlan:
    """What happens in the uplink slot, settled before anyone's training is computed.

    Attributes:
        senders: (k,) positions of the clients that will be heard, ascending.
        silent: (s,) positions of those who reported and stay silent in a deep fade.
        airtime: seconds of the slot.
        jammer_gain: α_CJ, 0 without jamming.
    """

    senders: NDArray[np.int64]
    silent: NDArray[np.int64]
    airtime: float
    jammer_gain: float = 0.0


@dataclass(frozen=True)
class Reception:
    """What the server gets out of a slot.

    Attributes:
        aggregate: (d,) float64, the weighted mean update as received.
        releases: the records for the privacy ledger, one for each way in which the updates are protected.
        secure_sum: the secure aggregation that hid the uploads, or None.
        battery_drain_j: (k,) joules that leave each sender's battery. Nominal, from public bounds: a battery that
            drained with the realised energy would make participation depend on private data (PRIVACY.md).
    """

    aggregate: NDArray[np.float64]
    releases: tuple[Release, ...]
    battery_drain_j: NDArray[np.float64]
    secure_sum: SecureSum | None = None


class Uplink(Protocol):
    """A way to bring the updates of many clients to the server."""

    @property
    def rotating_jammer(self) -> bool:
        """Whether one of the selected clients jams instead of training."""
        ...

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Settle the slot for the clients at the positions ``ready``, ``jammer`` being the position of one who jams."""
        ...

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterable[CohortBlock]) -> Reception:
        """Hear the updates block by block, and write the uplink's columns of the round."""
        ...
