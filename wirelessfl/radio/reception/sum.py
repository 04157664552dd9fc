"""The sum of one antenna: what arrives is added up by the channel itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.power_control import AirInterface
from wirelessfl.radio.slot_links import SlotLinks


@dataclass(frozen=True)
class SumReceiver:
    """One antenna, f = 1."""

    antennas: ClassVar[int] = 1

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        """Ones (R, F, 1)."""
        return np.ones(links.estimate.shape[1:], dtype=np.complex128)

    def noise_std(self, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
        """σ_c everywhere (R, F)."""
        return np.asarray(air.channel_noise_std * np.linalg.norm(weights, axis=2))
