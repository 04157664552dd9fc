"""The margin of rates behind a linear receiver of several streams, which knows its channels imperfectly."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.reception.linear import stream_sinr

# One more than the draws of a quantile that is a whole multiple of its inverse
_DRAWS = 1000
# Channels that are known exactly are known up to rounding, which must not turn into outages
_ROUNDED = 1.0 - 1e-12
# Numbers that are drawn at once, which bounds the memory
_BLOCK = 1 << 20


def margin_rank(outage: float) -> tuple[int, int]:
    """Draws N, and the rank r of the one that a further draw falls below with probability r/(N + 1) ≈ ``outage``.

    That probability holds for every continuous law (David and Nagaraja, "Order Statistics", 2003, section 2.4).

    Raises:
        ValueError: if ``outage`` is out of range.
    """
    precondition(0 < outage < 1, f"outage must lie between 0 and 1, not {outage}")
    rank = max(1, round(_DRAWS * outage))
    count = max(rank, round(rank / outage) - 1)
    return count, rank


@dataclass(frozen=True, eq=False)
class SinrMargin:
    """Knowledge of K channels from their estimates: channel j is CN(mean_j, v_j I).

    Attributes:
        mean: (K, A) E[h | ĥ].
        variance: v (K,) of each antenna.
        draw: so many numbers of CN(0, 1) (n, count) of some of the K streams.
        draws: N.
        rank: r, from 1, of the draw that counts.
    """

    mean: NDArray[np.complex128]
    variance: NDArray[np.float64]
    draw: Callable[[NDArray[np.int64], int], NDArray[np.complex128]]
    draws: int
    rank: int

    def outage_sinr(
        self, sending: NDArray[np.int64], weights: NDArray[np.complex128], snr: float
    ) -> NDArray[np.float64]:
        """The SINR (k,) of the streams that send, below which the true channels fall as often as `margin_rank` says.

        Args:
            sending: (k,) of the K.
            weights: W (A, k).
            snr: p/(N0 B) at an antenna where |h|² = 1.
        """
        if not self.variance.any():
            return stream_sinr(weights, self.mean[sending].T, snr) * _ROUNDED
        count, found = len(sending), np.empty(len(sending))
        at_once = max(1, _BLOCK // (self.draws * count))
        for first in range(0, count, at_once):
            own = np.arange(first, min(first + at_once, count))
            normals = self.draw(sending[own], self.draws * count).reshape(len(own), self.draws, count)
            sinr = self._sinr(sending, own, weights[:, own], normals, snr)
            found[own] = np.partition(sinr, self.rank - 1, axis=1)[:, self.rank - 1]
        return found

    def _sinr(
        self,
        sending: NDArray[np.int64],
        own: NDArray[np.int64],
        weights: NDArray[np.complex128],
        normals: NDArray[np.complex128],
        snr: float,
    ) -> NDArray[np.float64]:
        # (n, N) draws of SNR |w_kᴴh_k|² / (SNR Σ_{j≠k} |w_kᴴh_j|² + ‖w_k‖²) of n of the streams that send, with
        # w_kᴴh_j ~ CN(w_kᴴmean_j, v_j‖w_k‖²), independent over j
        size = np.linalg.norm(weights, axis=0)
        spread = (size[:, None] * np.sqrt(self.variance[sending]))[:, None, :]
        power = np.abs((weights.conj().T @ self.mean[sending].T)[:, None, :] + spread * normals) ** 2
        signal = power[np.arange(len(own)), :, own]
        disturbed = snr * (power.sum(axis=2) - signal) + (size**2)[:, None]
        return np.asarray(np.divide(snr * signal, disturbed, out=np.zeros(signal.shape), where=disturbed > 0))
