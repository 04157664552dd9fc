"""The plain sum of what the antennas receive."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.power_control import AirInterface
from wirelessfl.radio.reception.base import AdditiveNoise


@dataclass(frozen=True)
class SumReceiver(AdditiveNoise):
    """f = 1 at every antenna.

    Attributes:
        antennas: A.
    """

    antennas: int = 1

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        """Ones (R, F, A)."""
        return np.ones(links.estimate.shape[1:], dtype=np.complex128)
