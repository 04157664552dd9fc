"""What the server asks of an uplink; one file beside this one for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.privacy import AirRelease
from wirelessfl.simulation.network import Network
from wirelessfl.simulation.round import Round


@dataclass(frozen=True)
class SlotPlan:
    """What happens in the uplink slot, settled before anyone trains for real.

    Attributes:
        senders: (k,) positions of the clients that will be heard, ascending.
        silent: (r,) over those who reported: True in a deep fade.
        airtime: seconds of the slot.
        jammer_gain: α_CJ, 0 without jamming.
    """

    senders: NDArray[np.int64]
    silent: NDArray[np.bool_]
    airtime: float
    jammer_gain: float = 0.0


@dataclass(frozen=True)
class Reception:
    """What the server gets out of a slot.

    Attributes:
        aggregate: (d,) float64, the weighted mean update as received.
        release: the record for the privacy ledger, or None where nothing private was released under a guarantee.
    """

    aggregate: NDArray[np.float64]
    release: AirRelease | None


class Uplink(Protocol):
    """A way to bring the updates of many clients to the server."""

    def plan(self, this: Round, ready: NDArray[np.int64], jammer: int | None) -> SlotPlan:
        """Settle the slot for the clients at the positions ``ready``; ``jammer`` is the position of one who jams."""
        ...

    def receive(self, this: Round, plan: SlotPlan, blocks: Iterator[CohortBlock]) -> Reception:
        """Hear the updates, block by block, and write the radio's columns of the round."""
        ...
