"""Noise-free complex signals at all antennas of a slot, summed over blocks of clients."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.radio import LateArrival, Superposition


class EveryAntenna:
    """The superpositions at A antennas, in both quadratures.

    Args:
        antennas: A.
        dimension: n, real symbols of a client.
        iq_packing: two of them a channel use.
        pieces: T·F ranges of symbols.
    """

    def __init__(self, antennas: int, dimension: int, iq_packing: bool, pieces: int) -> None:
        self._packed = iq_packing
        # The last symbol of an odd number carries one coordinate and arrives in both quadratures all the same
        self._padded = int(iq_packing and dimension % 2)
        self._phases = (1.0 + 0j,) if iq_packing else (1.0 + 0j, -1j)
        self._air = [
            [Superposition(dimension + self._padded, iq_packing, pieces) for _ in self._phases] for _ in range(antennas)
        ]

    def add(self, symbols: Tensor, gains: NDArray[np.complex128], late: LateArrival | None) -> None:
        """Addition of a block of symbols (k, n) with gains h α (A, k, T, F)."""
        if self._padded:
            whole = symbols.new_zeros((symbols.shape[0], symbols.shape[1] + 1))
            whole[:, :-1] = symbols
            symbols = whole
        for parts, gain in zip(self._air, gains, strict=True):
            for part, phase in zip(parts, self._phases, strict=True):
                part.add(symbols, phase * gain, late)

    def add_to(self, real: NDArray[np.float64], imaginary: NDArray[np.float64], scale: float = 1.0) -> None:
        """Addition of the signals, times a scale, to real and imaginary parts (A, m), m = n or the channel uses."""
        for parts, re, im in zip(self._air, real, imaginary, strict=True):
            values = [scale * np.asarray(part.received(), dtype=np.float64) for part in parts]
            if self._packed:
                values = [values[0][0::2], values[0][1::2]]
            re[: len(values[0])] += values[0]
            im[: len(values[1])] += values[1]


def complex_noise(stream: np.random.Generator, antennas: int, channel_uses: int, std: float) -> NDArray[np.complex128]:
    """(A, m) circular noise of a standard deviation per real dimension, independent between antennas."""
    noise = stream.standard_normal((antennas, channel_uses, 2))
    noise *= std
    return np.asarray(noise.view(np.complex128)[..., 0])
