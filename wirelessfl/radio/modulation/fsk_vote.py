"""Majority vote by frequency-shift keying: two tones a coordinate, and energy detectors without channel knowledge.

Şahin, Everette, Hoque: "Distributed Learning over a Wireless Network with FSK-Based Majority Vote", CommNet 2021
(arXiv 2111.01850); with absentee votes, Şahin: "Distributed Learning over a Wireless Network with Non-coherent Majority
Vote Computation", IEEE TWC 2023 (arXiv 2209.04692).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.modulation.waveform import Heard, Outgoing, Waveform
from wirelessfl.radio.superposition import row_norms


@dataclass(frozen=True)
class FskVote(Waveform):
    """Tone 2j for a positive coordinate j, tone 2j + 1 for a negative one, and g_j = η sign(|y_2j|² − |y_2j+1|²).

    Energies are added over the antennas.

    Attributes:
        step: η, by which each coordinate of the model moves in a round.
        absentee_threshold: t; a coordinate with |Δ_ij| <= t sends neither tone.
    """

    at_antennas: ClassVar[bool] = True
    signals: ClassVar[Literal["opposite", "non_negative"]] = "non_negative"

    step: float
    absentee_threshold: float = 0.0

    @override
    def symbol_count(self, dimension: int) -> int:
        return 2 * dimension

    @override
    def encode(self, outgoing: Outgoing) -> tuple[Array, NDArray[np.float64]]:
        """One of two tones of amplitude τ/√d, so that all d together have the norm τ."""
        updates, threshold = outgoing.updates, self.absentee_threshold
        count, dimension = updates.shape
        symbols = updates.new_zeros((count, dimension, 2))
        symbols[:, :, 0] = updates > threshold
        symbols[:, :, 1] = updates < -threshold
        symbols = symbols.reshape(count, 2 * dimension) * (outgoing.clip / np.sqrt(dimension))
        return symbols, row_norms(symbols)

    @override
    def decode(self, received: NDArray[Any], heard: Heard) -> NDArray[np.float64]:
        """The tone with more energy."""
        energy = np.zeros(received.shape[1])
        for antenna in received:
            energy += antenna.real**2 + antenna.imag**2
        return np.asarray(self.step * np.sign(energy[0::2] - energy[1::2]))
