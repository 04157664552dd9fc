"""The noise of a slot over the air, as theorems have it and as the ledger counts it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Jamming, SlotLinks, TransmitPlan, accounted_noise_std, effective_noise_std
from wirelessfl.radio.late_arrival import LateArrival
from wirelessfl.radio.network import JammerLink
from wirelessfl.simulation.slot_plan import SlotPlan


@dataclass(frozen=True, kw_only=True)
class AirPlan(SlotPlan):
    """A slot over the air.

    Attributes:
        links: the k senders' links.
        sends: (k, R, F) where each of them sends.
        transmit: what the server announces.
        jammer: the jammer's link, or None without one.
    """

    links: SlotLinks
    sends: NDArray[np.bool_]
    transmit: TransmitPlan
    jammer: JammerLink | None

    @property
    def heard_weight(self) -> NDArray[np.float64]:
        """(R, F) Σ p_i of those who send in each block and group of subcarriers."""
        shape = self.sends.shape
        each = self.sends.reshape(shape[0], -1).T
        return np.array([self.links.weight[there].sum() for there in each]).reshape(shape[1:])

    def take(self, positions: NDArray[np.int64]) -> tuple[SlotLinks, NDArray[np.bool_]]:
        """Links, and pieces in which they send, of some senders."""
        return self.links.take(positions), self.sends[positions]


@dataclass(frozen=True, eq=False)
class SlotNoise:
    """What hides the signals of a slot of T pieces, in units of y/α_u.

    Attributes:
        plan: of the slot.
        channel_noise_std: σ_c.
        jamming: how the jammer jams, or None.
        late: how late the senders arrive, or None.
        num_symbols: channel uses of the slot.
    """

    plan: AirPlan
    channel_noise_std: float
    jamming: Jamming | None
    late: LateArrival | None
    num_symbols: int

    @property
    def published_std(self) -> float:
        """σ_m, the least over the pieces."""
        plan, weakest = self.plan, 0j
        if plan.jammer is not None:
            weakest = complex(plan.jammer.channel.flat[np.abs(plan.jammer.channel).argmin()])
        return effective_noise_std(plan.jammer_gain, weakest, plan.transmit.server_gain, self.channel_noise_std)

    def counted_std(self, later: int = 0) -> NDArray[np.float64]:
        """(T, F) noise that the adversary cannot remove, against the client that it protects least.

        Args:
            later: how many pieces after its own the signal of each piece is heard, in the last one at most.
        """
        plan, pieces = self.plan, self.plan.links.pieces
        if plan.jammer is None or self.jamming is None:
            return np.full(plan.links.channel.shape[1:3], self.channel_noise_std / plan.transmit.server_gain)
        under = np.minimum(np.arange(pieces) + later, pieces - 1)
        by_client = accounted_noise_std(
            plan.jammer_gain,
            plan.jammer.channel[under],
            plan.transmit.server_gain,
            self.channel_noise_std,
            self.jamming.noise,
            plan.jammer.phase_error[under] - self._phase_errors(),
        )
        return np.asarray(by_client.min(axis=(0, 3)))

    def hiding_std(self) -> NDArray[np.float64]:
        """(T, F) noise that hides the signal of each block and group of subcarriers.

        A late single carrier is heard in the next piece as well, where the jammer may arrive with less.
        """
        own = self.counted_std()
        if self.late is None or self.late.subcarriers is not None:
            return own
        return np.minimum(own, self.counted_std(later=1))

    def _phase_errors(self) -> NDArray[np.float64]:
        """(k, T, F, S) radians off the real axis at which signals arrive, on the S subcarriers that timing turns."""
        mismatch, late = self.plan.links.channel / self.plan.links.estimate, self.late
        return np.angle(mismatch if late is None else mismatch * late.rotations(self.num_symbols)[:, None, None, :])
