"""The margin of rates behind a linear receiver of several streams, which knows its channels imperfectly."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.reception.linear import stream_sinr

# One more than the draws of a quantile that is a whole multiple of its inverse
_DRAWS = 1000
# Channels that are known exactly are known up to rounding, which must not turn into outages
_ROUNDED = 1.0 - 1e-12


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
        normals: (K, N, K) draws of CN(0, 1), those of each stream for every channel.
        rank: r, from 1, of the draw that counts.
    """

    mean: NDArray[np.complex128]
    variance: NDArray[np.float64]
    normals: NDArray[np.complex128]
    rank: int

    def of(self, rows: NDArray[np.int64]) -> Self:
        """The same of some of the channels."""
        return replace(self, mean=self.mean[rows], variance=self.variance[rows], normals=self.normals[rows][:, :, rows])

    def outage_sinr(self, weights: NDArray[np.complex128], snr: float) -> NDArray[np.float64]:
        """The SINR (K,) of streams that the true channels fall below with the probability of `margin_rank`.

        w_kᴴh_j is CN(w_kᴴmean_j, v_j‖w_k‖²), independent over j; of the N draws of SNR |w_kᴴh_k|² /
        (SNR Σ_{j≠k} |w_kᴴh_j|² + ‖w_k‖²) the one of rank r is taken.

        Args:
            weights: W (A, K).
            snr: p/(N0 B) at an antenna where |h|² = 1.
        """
        if not self.variance.any():
            return stream_sinr(weights, self.mean.T, snr) * _ROUNDED
        size = np.linalg.norm(weights, axis=0)
        spread = (size[:, None] * np.sqrt(self.variance))[:, None, :]
        power = np.abs((weights.conj().T @ self.mean.T)[:, None, :] + spread * self.normals) ** 2
        own = np.arange(len(size))
        signal = power[own, :, own]
        disturbed = snr * (power.sum(axis=2) - signal) + (size**2)[:, None]
        sinr = np.divide(snr * signal, disturbed, out=np.zeros(signal.shape), where=disturbed > 0)
        return np.asarray(np.partition(sinr, self.rank - 1, axis=1)[:, self.rank - 1])
