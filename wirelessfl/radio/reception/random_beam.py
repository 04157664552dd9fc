"""A beam of random direction, drawn anew in every round."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.power_control import AirInterface
from wirelessfl.radio.reception.base import AdditiveNoise
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class RandomBeam(AdditiveNoise):
    """f uniform on the unit sphere, one for every block and group of subcarriers, whatever the channels are.

    With h ~ CN(0, I) a client arrives with |fᴴh|² >= x with probability e^{−x}: who is heard changes from round to
    round (Kim, Swindlehurst, Park, IEEE Trans. Wireless Commun. 2023).

    Attributes:
        antennas: A.
        streams: randomness of the run.
    """

    antennas: int
    streams: Streams

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        """Unit vectors (R, F, A)."""
        estimates, subcarriers, antennas = links.estimate.shape[1:]
        nodes = np.arange(estimates * subcarriers)
        drawn = self.streams.nodes("random_beam", round_index, nodes).complex_normal(antennas)
        unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return np.asarray(unit.reshape(estimates, subcarriers, antennas))
