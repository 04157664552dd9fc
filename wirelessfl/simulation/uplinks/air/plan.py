"""The plan of a slot over the air."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import CellLinks, TransmitPlan
from wirelessfl.radio.network import JammerLink
from wirelessfl.simulation.slot_plan import SlotPlan


@dataclass(frozen=True, kw_only=True)
class AirPlan(SlotPlan):
    """A slot over the air with C receivers.

    Attributes:
        links: the k senders' links behind the combiners.
        sends: (k, R, F) where each of them sends.
        transmit: what each receiver with senders announces, by its number.
        noise_std: (C, R, F) receiver noise behind the combiners.
        jammer: the jammer's link to the only receiver, or None without one.
    """

    links: CellLinks
    sends: NDArray[np.bool_]
    transmit: dict[int, TransmitPlan]
    noise_std: NDArray[np.float64]
    jammer: JammerLink | None

    @property
    def loudest(self) -> TransmitPlan:
        """The plan with the largest α_u, in whose units receivers are compared."""
        return max(self.transmit.values(), key=lambda plan: plan.server_gain)

    @property
    def gains(self) -> NDArray[np.float64]:
        """α_u of each receiver with senders."""
        return np.array([plan.server_gain for plan in self.transmit.values()])

    def heard_weight(self, station: int) -> NDArray[np.float64]:
        """(R, F) Σ p_i of a receiver's own clients that send in each block and group of subcarriers."""
        mine, shape = self.links.serving == station, self.sends.shape[1:]
        weight, sends = self.links.own.weight[mine], self.sends[mine].reshape(-1, math.prod(shape))
        return np.array([weight[there].sum() for there in sends.T]).reshape(shape)
