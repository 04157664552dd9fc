"""How many bits a digital link carries: Shannon's rate, short packets, and outage on Rayleigh fading."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special


def link_snr(
    snr: NDArray[np.float64] | float, channel: NDArray[np.complex128], bandwidth_share: float = 1.0
) -> NDArray[np.float64]:
    """γ = |h|² p/(N0 B_i) = SNR_i |h|²/(2 B_i/B), signal over complex noise in the client's own band.

    Args:
        snr: SNR_i = 2p/(N0 B), as over the air: against the noise of one real dimension in the full band.
        channel: h (n,).
        bandwidth_share: B_i/B, 1 for TDMA and 1/n for OFDMA.
    """
    return snr_of_power(snr, np.abs(channel) ** 2, bandwidth_share)


def snr_of_power(
    snr: NDArray[np.float64] | float, power: NDArray[np.float64], bandwidth_share: float = 1.0
) -> NDArray[np.float64]:
    """γ of `link_snr` from the power |h|² (n,) of the channel."""
    if not 0 < bandwidth_share <= 1:
        raise ValueError(f"bandwidth_share must lie in (0, 1], not {bandwidth_share}")
    return np.asarray(snr * power / (2.0 * bandwidth_share))


def shannon_rate(bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Capacity B log2(1 + γ) of complex Gaussian noise, in bit/s."""
    return np.asarray(bandwidth_hz * np.log1p(snr) / math.log(2.0))


def finite_blocklength_rate(
    bandwidth_hz: float, snr: NDArray[np.float64], blocklength: float, error_probability: float
) -> NDArray[np.float64]:
    """The normal approximation for short packets, in bit/s (Polyanskiy, Poor, Verdú, IEEE Trans. IT 2010).

    B [log2(1 + γ) − sqrt(V/n) Q^{-1}(ε) log2 e] with dispersion V = 1 − (1 + γ)^{-2} and at least 0. Good from about a
    hundred channel uses on.

    Args:
        bandwidth_hz: B, one channel use per hertz and second.
        snr: γ (n,).
        blocklength: n, complex channel uses of a packet.
        error_probability: ε in (0, 1/2] of a packet at this rate.

    Raises:
        ValueError: if the block length or the error probability is out of range.
    """
    if not blocklength >= 1 or not 0 < error_probability <= 0.5:
        raise ValueError(f"no rate for blocklength={blocklength} and error_probability={error_probability}")
    dispersion = 1.0 - (1.0 + snr) ** -2.0
    backoff = np.sqrt(dispersion / blocklength) * -special.ndtri(error_probability) / math.log(2.0)
    return np.asarray(np.maximum(shannon_rate(bandwidth_hz, snr) - bandwidth_hz * backoff, 0.0))


@dataclass(frozen=True)
class ShortPackets:
    """Packets of a fixed length at the rate of the normal approximation, each repeated until it arrives.

    Attributes:
        blocklength: n, complex channel uses of a packet.
        error_probability: ε, with which a packet is lost.
    """

    blocklength: float
    error_probability: float

    def throughput(self, bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
        """(1 − ε) R bit/s at signal-to-noise ratios (n,): a packet is sent 1/(1 − ε) times on average."""
        rate = finite_blocklength_rate(bandwidth_hz, snr, self.blocklength, self.error_probability)
        return np.asarray((1.0 - self.error_probability) * rate)


def rayleigh_outage_probability(
    rate_bps: float, bandwidth_hz: float, mean_snr: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1 − exp(−(2^{R/B} − 1)/γ̄): how often a Rayleigh channel carries less than the fixed rate R."""
    return np.asarray(-np.expm1(-np.expm1(rate_bps / bandwidth_hz * math.log(2.0)) / mean_snr))
