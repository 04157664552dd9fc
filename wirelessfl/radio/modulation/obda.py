"""One-bit digital aggregation: signs over inverted channels, and a majority vote at the server.

Zhu, Du, Gündüz, Huang: "One-Bit Over-the-Air Aggregation for Communication-Efficient Federated Edge Learning: Design
and Convergence Analysis", IEEE TWC 2021.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.modulation.waveform import Heard, Outgoing, Waveform
from wirelessfl.radio.superposition import row_norms


@dataclass(frozen=True)
class Obda(Waveform):
    """Symbols sign(Δ_ij) τ/√d, two in a channel use with I/Q packing (4-QAM), and g = η sign(Re y).

    Attributes:
        step: η, by which each coordinate of the model moves in a round.
    """

    step: float

    @override
    def symbol_count(self, dimension: int) -> int:
        return dimension

    @override
    def encode(self, outgoing: Outgoing) -> tuple[Array, NDArray[np.float64]]:
        """Signs as loud as an update of norm τ; a coordinate that is exactly zero is left out."""
        symbols = outgoing.updates.sign() * (outgoing.clip / np.sqrt(outgoing.updates.shape[1]))
        return symbols, row_norms(symbols)

    @override
    def decode(self, received: NDArray[Any], heard: Heard) -> NDArray[np.float64]:
        """The majority, weighted by p_i as the channels are inverted towards it."""
        return np.asarray(self.step * np.sign(received))
