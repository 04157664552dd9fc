"""Links to each antenna of a receiver under jamming: how loudly clients are heard there, and what hides them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.observation import floor_amplitude, whitened_amplitude


@dataclass(frozen=True, eq=False)
class AntennaLinks:
    """Links to each of A antennas: R estimates, F groups of subcarriers, B blocks that each estimate serves.

    Attributes:
        channel: h (n, R, F, B, A) of the clients.
        jammer: ĥ_CJ/√N (R, F, 1, A, N) of the jammer's antennas.
        sends: (n, R, F) the m rows that count.
    """

    channel: NDArray[np.complex128]
    jammer: NDArray[np.complex128]
    sends: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """A."""
        return int(self.channel.shape[4])

    def loudest(self, loudness: NDArray[np.float64], noise_std: float, jammer_gain: float = math.inf) -> float:
        """The largest loudness · ‖Σ^{−1/2} h‖ under jamming, over all that count.

        Args:
            loudness: (m,) factors, in the order of ``sends``.
            noise_std: σ_c at each antenna.
            jammer_gain: α_CJ; infinite for what no jamming hides.
        """
        return float((loudness * self.amplitude(noise_std, jammer_gain)).max(initial=0.0))

    def amplitude(self, noise_std: float, jammer_gain: float) -> NDArray[np.float64]:
        """(m,) ‖Σ^{−1/2} h‖ of all that count, the largest over the blocks of an estimate."""
        if math.isinf(jammer_gain):
            amplitude = floor_amplitude(self.channel, noise_std, self.jammer)
        else:
            amplitude = whitened_amplitude(self.channel, noise_std, jammer_gain * self.jammer)
        return np.asarray(amplitude.max(axis=3)[self.sends])

    def hiding_gain(self, loudness: NDArray[np.float64], noise_std: float) -> float:
        """The least α_CJ with which nothing is louder than 1, to a part in 1e12; infinite where none is enough."""
        if self.loudest(loudness, noise_std) >= 1.0:
            return math.inf
        if self.loudest(loudness, noise_std, 0.0) <= 1.0:
            return 0.0
        low, high = 0.0, 1.0
        while self.loudest(loudness, noise_std, high) > 1.0:
            low, high = high, 2.0 * high
        while high - low > 1e-12 * high:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.loudest(loudness, noise_std, middle) > 1.0 else (low, middle)
        return high
