"""Noise-free complex signals at all antennas of a slot, summed over blocks of clients."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self._phases = (1.0 + 0j,) if iq_packing else (1.0 + 0j, -1j)
        self._air = [[Superposition(dimension, iq_packing, pieces) for _ in self._phases] for _ in range(antennas)]

    def add(self, symbols: Any, gains: NDArray[np.complex128], late: LateArrival | None) -> None:
        """Addition of a block of symbols (k, n) with gains h α (A, k, T, F)."""
        for parts, gain in zip(self._air, gains, strict=True):
            for part, phase in zip(parts, self._phases, strict=True):
                part.add(symbols, phase * gain, late)

    def received(self) -> NDArray[np.complex128]:
        """(A, m) complex: m = n, or with I/Q packing the channel uses, the last of an odd n with one part alone."""
        values = np.array([[np.asarray(part.received(), dtype=np.float64) for part in parts] for parts in self._air])
        if not self._packed:
            return np.asarray(values[:, 0] + 1j * values[:, 1])
        even = np.pad(values[:, 0], ((0, 0), (0, values.shape[2] % 2)))
        return np.asarray(even[:, 0::2] + 1j * even[:, 1::2])


def complex_noise(stream: np.random.Generator, antennas: int, channel_uses: int) -> NDArray[np.complex128]:
    """(A, m) circular noise of standard deviation 1 per real dimension, independent between antennas."""
    return np.asarray(stream.standard_normal((antennas, channel_uses, 2)).view(np.complex128)[..., 0])
