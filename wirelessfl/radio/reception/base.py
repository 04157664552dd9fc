"""The protocol of a receiver over the air."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.power_control import AirInterface


@runtime_checkable
class Receiver(Protocol):
    """A receiver with A antennas, combined before updates are touched: the sum arrives with the gains fᴴh.

    `wirelessfl.radio.reception.conformance` checks a receiver of your own.
    """

    @property
    def antennas(self) -> int:
        """A."""

    def combine(self, links: SlotLinks, round_index: int, air: AirInterface) -> NDArray[np.complex128]:
        """The combiner f (R, F, A) for the clients of a receiver; a pure function of its arguments.

        Args:
            links: of the n clients that the receiver serves, with estimates (n, R, F, A); n >= 1.
            round_index: from 1.
            air: constants of the uplink.
        """

    def noise_std(self, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
        """The receiver noise (R, F) behind a combiner, per real coordinate: ‖f‖ σ_c where antennas have noise alike."""


class AdditiveNoise:
    """Receiver noise of the same power at every antenna, independent between them."""

    def noise_std(self, weights: NDArray[np.complex128], air: AirInterface) -> NDArray[np.float64]:
        """‖f‖ σ_c (R, F)."""
        return np.asarray(air.channel_noise_std * np.linalg.norm(weights, axis=2))
