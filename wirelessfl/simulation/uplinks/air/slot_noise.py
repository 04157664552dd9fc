"""The noise of a slot over the air, as theorems have it and as the ledger counts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import (
    Jamming,
    LateArrival,
    WorstPiece,
    accounted_noise_std,
    effective_noise_std,
    whitened_amplitude,
    worst_over_pieces,
)
from wirelessfl.simulation.uplinks.air.plan import AirPlan


@dataclass(frozen=True, eq=False)
class View:
    """Columns of a record by what an adversary hears of k clients; all but ratios in units of y/α_u.

    Attributes:
        received_bound: R_i |h_i/ĥ_i| (k,).
        accounted_noise_std: (k,) under which it is heard.
        unjammed_noise_std: the same against one who knows the jamming, alike for all clients.
        csi_ratio: |h_i/ĥ_i| (k,).
    """

    received_bound: NDArray[np.float64]
    accounted_noise_std: NDArray[np.float64]
    unjammed_noise_std: float
    csi_ratio: NDArray[np.float64]

    @classmethod
    def of(
        cls, worst: WorstPiece, csi_ratio: NDArray[np.float64], alone: NDArray[np.float64], noise_std: float
    ) -> View:
        """The columns where what a receiver reads of a client stands for all that is heard of it.

        By how much louder a client is heard elsewhere differs from client to client, and so does the noise without
        jamming in units of what is read: all are put in those in which it is that of the receiver.

        Args:
            worst: of the clients.
            csi_ratio: (k,) of what the receiver reads.
            alone: (k,) noise without jamming under which R_i tells as much as all that is heard.
            noise_std: σ_c/α_u.
        """
        louder = noise_std / alone
        return cls(worst.received_bound * louder, worst.noise_std * louder, noise_std, csi_ratio * louder)


@dataclass(frozen=True, eq=False)
class SlotNoise:
    """Noise that hides the signals of a slot of T blocks and F groups of subcarriers, in units of y at the largest α_u.

    Attributes:
        plan: of the slot.
        antenna_noise_std: σ_c at each antenna.
        jamming: how the jammer jams, or None.
        late: how late the senders arrive, or None.
        num_symbols: channel uses of the slot.
    """

    plan: AirPlan
    antenna_noise_std: float
    jamming: Jamming | None
    late: LateArrival | None
    num_symbols: int

    @cached_property
    def unjammed_std(self) -> float:
        """σ_c/α_u, the least over receivers, blocks and subcarriers."""
        return float(self.plan.noise_std.min()) / self.plan.loudest.server_gain

    @cached_property
    def published_std(self) -> float:
        """σ_m, the least over the slot."""
        jammer = None if self.plan.jammer_behind is None else self.plan.jammer_behind.equivalent
        weakest = 0j if jammer is None else complex(jammer.channel.flat[np.abs(jammer.channel).argmin()])
        noise_std = float(self.plan.noise_std.min())
        return effective_noise_std(self.plan.jammer_gain, weakest, self.plan.loudest.server_gain, noise_std)

    def counted_std(self, later: int = 0) -> NDArray[np.float64]:
        """(T, F) noise that the adversary cannot remove, against the client that it protects least.

        Args:
            later: how many blocks after its own the signal of each block is heard, in the last one at most.
        """
        plan, own = self.plan, self.plan.links.own
        if plan.jammer_behind is None or self.jamming is None:
            return np.full(own.channel.shape[1:3], self.unjammed_std)
        under = np.minimum(np.arange(own.pieces) + later, own.pieces - 1)
        jammer = plan.jammer_behind.equivalent
        by_client = accounted_noise_std(
            plan.jammer_gain,
            jammer.channel[under, ..., 0],
            plan.loudest.server_gain,
            float(plan.noise_std.min()),
            self.jamming.noise,
            jammer.phase_error[under, ..., 0] - self._phase_errors(),
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

    @cached_property
    def louder(self) -> NDArray[np.float64] | float:
        """(k, T, F) ‖h‖/|fᴴh|: by how much louder a client arrives at all antennas than the server reads it; or 1."""
        if self.plan.heard.shape[4] == 1:
            return 1.0
        return np.asarray(np.linalg.norm(self._everywhere, axis=3) / self._read)

    def visible_std(self) -> NDArray[np.float64]:
        """(k, T, F) the noise under which an adversary's best combiner hears a client.

        The adversary has all antennas of all receivers: it knows what arrives at them with the signal-to-noise ratio
        behind a whitening filter. Beside the noise of several receivers with one antenna each stands what a client's
        own one reads, beside that of arrays what arrives at all antennas.
        """
        _, receivers, _, _, antennas = self.plan.heard.shape
        if receivers == antennas == 1:
            return np.broadcast_to(self.hiding_std(), self._read.shape)
        if antennas == 1:
            return np.asarray(self.hiding_std() * self._read / np.linalg.norm(self._everywhere, axis=3))
        amplitude = np.zeros(self._read.shape)
        for jamming in self._received_jamming():
            amplitude = np.maximum(amplitude, whitened_amplitude(self._everywhere, self.antenna_noise_std, jamming))
        return np.asarray(self._read * self.louder / amplitude / self.plan.loudest.server_gain)

    def seen_by_receivers(self, received: NDArray[np.float64], csi_ratio: NDArray[np.float64]) -> View:
        """What an adversary behind the receivers has of the clients.

        Args:
            received: R_i (k, T, F) of all antennas.
            csi_ratio: (k,) |h_i/ĥ_i| of all antennas.
        """
        worst, (_, receivers, _, _, antennas) = worst_over_pieces(received, self.visible_std()), self.plan.heard.shape
        if receivers > 1 and antennas == 1:  # that a client's own reading stands for those of all of them
            return View.of(worst, csi_ratio, worst.noise_std, self.unjammed_std)
        unjammed = self.antenna_noise_std / self.plan.loudest.server_gain if antennas > 1 else self.unjammed_std
        least = float(worst.noise_std.min()) if self.jamming is None else unjammed
        return View(worst.received_bound, worst.noise_std, least, csi_ratio)

    @cached_property
    def _read(self) -> NDArray[np.float64]:
        # (k, T, F) |fᴴh| of each client's own receiver
        return np.abs(self.plan.links.own.channel.squeeze(axis=3))

    @cached_property
    def _everywhere(self) -> NDArray[np.complex128]:
        # (k, T, F, C A) channels to all antennas of all receivers
        heard = self.plan.heard.transpose(0, 2, 3, 1, 4)
        return heard.reshape(*heard.shape[:3], -1)

    def _received_jamming(self) -> Iterator[NDArray[np.complex128] | None]:
        # (T, F, A, N) jamming under which each block is heard, and of late arrival on a single carrier that of the next
        if self.plan.jammer is None or self.jamming is None:
            yield None
            return
        received = self.plan.jammer_gain * self.plan.jammer.parts
        yield received
        if self.late is not None and self.late.subcarriers is None:
            yield np.concatenate([received[1:], received[-1:]])

    def _phase_errors(self) -> NDArray[np.float64]:
        # (k, T, F, S) radians off the real axis at which signals arrive, on the S subcarriers that timing turns
        own, late = self.plan.links.own, self.late
        mismatch = own.channel / own.estimate
        return np.angle(mismatch if late is None else mismatch * late.rotations(self.num_symbols)[:, None, None, :])
