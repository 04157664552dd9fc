"""Links of clients to several receivers, of which one serves each client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.slot_links import SlotLinks


@dataclass(frozen=True, eq=False)
class CellLinks:
    """Links of n clients to C receivers.

    Attributes:
        serving: (n,) the receiver that serves each client.
        own: the links of the n clients to it.
        channel: (n, C, T, F, A) channels to all of them.
    """

    serving: NDArray[np.int64]
    own: SlotLinks
    channel: NDArray[np.complex128]

    def take(self, index: NDArray[np.int64]) -> CellLinks:
        """The links of some clients, by position."""
        return CellLinks(self.serving[index], self.own.take(index), self.channel[index])

    def combined(self, weights: NDArray[np.complex128]) -> CellLinks:
        """The links behind the combiners: fᴴh of each receiver, as those of one antenna.

        Args:
            weights: f (C, R, F, A) of the receivers.
        """
        channel = (weights.conj() * self.channel).sum(axis=4, keepdims=True)
        return CellLinks(self.serving, self.own.combined(weights[self.serving]), channel)
