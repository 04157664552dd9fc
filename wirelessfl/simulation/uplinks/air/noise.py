"""The noise of a slot over the air, as theorems have it and as the ledger counts it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Jamming, LateArrival, accounted_noise_std, effective_noise_std
from wirelessfl.simulation.uplinks.air.plan import AirPlan


@dataclass(frozen=True, eq=False)
class SlotNoise:
    """What hides the signals of a slot of T blocks and F groups of subcarriers, in units of y at the largest α_u.

    Attributes:
        plan: of the slot.
        jamming: how the jammer jams, or None.
        late: how late the senders arrive, or None.
        num_symbols: channel uses of the slot.
    """

    plan: AirPlan
    jamming: Jamming | None
    late: LateArrival | None
    num_symbols: int

    @property
    def unjammed_std(self) -> float:
        """σ_c/α_u, the least over receivers, blocks and subcarriers."""
        return float(self.plan.noise_std.min()) / self.plan.loudest.server_gain

    @property
    def published_std(self) -> float:
        """σ_m, the least over the slot."""
        jammer = self.plan.jammer
        weakest = 0j if jammer is None else complex(jammer.channel.flat[np.abs(jammer.channel).argmin()])
        noise_std = float(self.plan.noise_std.min())
        return effective_noise_std(self.plan.jammer_gain, weakest, self.plan.loudest.server_gain, noise_std)

    def counted_std(self, later: int = 0) -> NDArray[np.float64]:
        """(T, F) noise that the adversary cannot remove, against the client that it protects least.

        Args:
            later: how many blocks after its own the signal of each block is heard, in the last one at most.
        """
        plan, own = self.plan, self.plan.links.own
        if plan.jammer is None or self.jamming is None:
            return np.full(own.channel.shape[1:3], self.unjammed_std)
        under = np.minimum(np.arange(own.pieces) + later, own.pieces - 1)
        by_client = accounted_noise_std(
            plan.jammer_gain,
            plan.jammer.channel[under],
            plan.loudest.server_gain,
            float(plan.noise_std.min()),
            self.jamming.noise,
            plan.jammer.phase_error[under] - self._phase_errors(),
        )
        return np.asarray(by_client.min(axis=(0, 3)))

    def hiding_std(self) -> NDArray[np.float64]:
        """(T, F) noise that hides the signal of each block and group of subcarriers.

        A late single carrier is heard in the next block as well, where the jammer may arrive with less.
        """
        own = self.counted_std()
        if self.late is None or self.late.subcarriers is not None:
            return own
        return np.minimum(own, self.counted_std(later=1))

    def visible_std(self) -> NDArray[np.float64]:
        """(k, T, F) the same against receivers that are adversaries together.

        Each hears a client under noise of its own: together they know it as well as its own one would with less noise,
        by |h_own|/‖h‖.
        """
        own, everywhere = self.plan.links.own.channel.squeeze(axis=3), self.plan.links.channel.squeeze(axis=4)
        hiding = self.hiding_std()
        if everywhere.shape[1] == 1:
            return np.broadcast_to(hiding, own.shape)
        return np.asarray(hiding * np.abs(own) / np.linalg.norm(everywhere, axis=1))

    def _phase_errors(self) -> NDArray[np.float64]:
        # (k, T, F, S) radians off the real axis at which signals arrive, on the S subcarriers that timing turns
        own, late = self.plan.links.own, self.late
        mismatch = own.channel / own.estimate
        return np.angle(mismatch if late is None else mismatch * late.rotations(self.num_symbols)[:, None, None, :])
