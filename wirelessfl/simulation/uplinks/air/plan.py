"""The plan of a slot over the air."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import AirInterface, CellLinks, PowerControl, TransmitPlan
from wirelessfl.radio.network import JammerLink
from wirelessfl.radio.reception import Receiver
from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.simulation.uplinks.air.policy import announced


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

    def heard_weight(self, station: int) -> NDArray[np.float64]:
        """(R, F) Σ p_i of a receiver's own clients that send in each block and group of subcarriers."""
        mine, shape = self.links.serving == station, self.sends.shape[1:]
        weight, sends = self.links.own.weight[mine], self.sends[mine].reshape(-1, math.prod(shape))
        return np.array([weight[there].sum() for there in sends.T]).reshape(shape)


def combiners(
    receiver: Receiver, links: CellLinks, count: int, round_index: int, air: AirInterface
) -> NDArray[np.complex128]:
    """(C, R, F, A) the combiners of so many receivers; ones at those that serve nobody."""
    weights = np.ones((count, *links.own.estimate.shape[1:]), dtype=np.complex128)
    for station in np.unique(links.serving).tolist():
        weights[station] = receiver.combine(links.own.take(links.serving == station), round_index, air)
    return weights


def announcements(
    policies: Sequence[PowerControl], links: CellLinks, sends: NDArray[np.bool_], round_index: int, air: AirInterface
) -> dict[int, TransmitPlan]:
    """What receivers announce to clients that would send (n, R, F); those told to be silent are taken out of it."""
    transmit: dict[int, TransmitPlan] = {}
    for station in np.unique(links.serving[sends.any(axis=(1, 2))]).tolist():
        mine = np.flatnonzero(links.serving == station)
        heard = sends[mine]
        plan = announced(policies[station], links.own.take(mine).rows().take(heard.ravel()), round_index, air)
        heard[heard] = ~plan.silent
        sends[mine] = heard
        if heard.any():
            transmit[station] = plan
    return transmit
