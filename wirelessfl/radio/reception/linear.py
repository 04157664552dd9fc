"""Linear receivers of several streams in the same band: zero forcing and linear MMSE, and the SINR behind them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# Singular values below this part of the largest count as zero: such channels are linearly dependent
_DEPENDENT = 1e-10


class StreamCombiner(Protocol):
    """A linear receiver of K streams with A antennas."""

    def weights(self, channel: NDArray[np.complex128], snr: float) -> NDArray[np.complex128]:
        """The combiners W (..., A, K), one column a stream, for channels that are taken as exact.

        Args:
            channel: H (..., A, K), one column a stream.
            snr: p/(N0 B) of each stream at an antenna where |h|² = 1.
        """


@dataclass(frozen=True)
class ZeroForcing:
    """W = H (HᴴH)⁻¹: no stream disturbs another, at the price of noise.

    Behind it a stream has the SNR p/(N0 B) / [(HᴴH)⁻¹]_kk (Tse and Viswanath, "Fundamentals of Wireless Communication",
    2005, section 8.3.1). Channels that are linearly dependent cannot be told apart: then W is the pseudo-inverse, and
    interference remains.
    """

    def weights(self, channel: NDArray[np.complex128], snr: float) -> NDArray[np.complex128]:
        """The pseudo-inverse of H, conjugated and transposed."""
        return np.asarray(np.linalg.pinv(channel, rcond=_DEPENDENT).conj().swapaxes(-1, -2))


@dataclass(frozen=True)
class LinearMmse:
    """W = H (I + SNR HᴴH)⁻¹: the linear receiver of least mean-squared error, and of largest SINR for every stream.

    Behind it a stream has the SINR 1/[(I + SNR HᴴH)⁻¹]_kk − 1 (Tse and Viswanath 2005, section 8.3.3).
    """

    def weights(self, channel: NDArray[np.complex128], snr: float) -> NDArray[np.complex128]:
        """(I + SNR HHᴴ)⁻¹H by the smaller of the two matrices that give it."""
        adjoint, (antennas, streams) = channel.conj().swapaxes(-1, -2), channel.shape[-2:]
        if streams <= antennas:
            regular = np.eye(streams) + snr * (adjoint @ channel)
            return np.asarray(np.linalg.solve(regular, adjoint).conj().swapaxes(-1, -2))
        return np.asarray(np.linalg.solve(np.eye(antennas) + snr * (channel @ adjoint), channel))


def stream_sinr(weights: NDArray[np.complex128], channel: NDArray[np.complex128], snr: float) -> NDArray[np.float64]:
    """The SINR (..., K) of streams: SNR |w_kᴴh_k|² / (SNR Σ_{j≠k} |w_kᴴh_j|² + ‖w_k‖²); 0 where w_k is zero.

    Args:
        weights: W (..., A, K), of whatever the receiver believes.
        channel: H (..., A, K), as it is.
        snr: p/(N0 B), as for the weights.
    """
    power = np.abs(weights.conj().swapaxes(-1, -2) @ channel) ** 2
    signal = np.diagonal(power, axis1=-2, axis2=-1)
    others = np.where(np.eye(power.shape[-1], dtype=np.bool_), 0.0, power).sum(axis=-1)
    disturbed = snr * others + (np.abs(weights) ** 2).sum(axis=-2)
    return np.asarray(np.divide(snr * signal, disturbed, out=np.zeros(signal.shape), where=disturbed > 0))
