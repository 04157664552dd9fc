"""OFDM numerology: how long a number of symbols takes on parallel subcarriers with a cyclic prefix."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class OfdmNumerology:
    """A grid of subcarriers.

    Attributes:
        subcarriers: how many carry data.
        subcarrier_spacing_hz: Δf; a symbol without prefix lasts 1/Δf.
        cyclic_prefix_s: guard time before every symbol.
    """

    subcarriers: int
    subcarrier_spacing_hz: float
    cyclic_prefix_s: float

    def __post_init__(self) -> None:
        if self.subcarriers < 1 or not 0 < self.subcarrier_spacing_hz < np.inf:
            raise ValueError(f"no grid of {self.subcarriers} subcarriers {self.subcarrier_spacing_hz} Hz apart")
        if not 0 <= self.cyclic_prefix_s < np.inf:
            raise ValueError(f"cyclic_prefix_s must be finite and at least 0, not {self.cyclic_prefix_s}")

    @property
    def symbol_duration(self) -> float:
        """Seconds of one OFDM symbol, prefix included."""
        return 1.0 / self.subcarrier_spacing_hz + self.cyclic_prefix_s

    @property
    def bandwidth_hz(self) -> float:
        """Occupied bandwidth."""
        return self.subcarriers * self.subcarrier_spacing_hz

    def slot_duration(self, num_symbols: int) -> float:
        """Seconds for ``num_symbols`` channel uses (`units.num_symbols`), in whole OFDM symbols."""
        return -(-num_symbols // self.subcarriers) * self.symbol_duration
