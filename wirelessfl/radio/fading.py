"""Small-scale block fading: one complex gain of mean power 1 for each client and round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream


@runtime_checkable
class FadingModel(Protocol):
    """A law of block fading: the gain is constant over one slot and has mean power 1.

    The path gain β_i is applied outside: h_i = sqrt(β_i) times the draw. A model takes all its randomness from the
    stream, row by row, so that a client's gain does not depend on who else is active.
    """

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """The gains (n,) of the n nodes of ``stream`` in its round, E|gain|² = 1."""
        ...


@dataclass(frozen=True)
class Rayleigh:
    """Rich scattering without line of sight: CN(0, 1), variance 1/2 in each real dimension."""

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Independent CN(0, 1) gains (n,)."""
        return stream.complex_normal()[:, 0]


@dataclass(frozen=True)
class Static:
    """No fading: the gain is 1 in every round."""

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Ones (n,)."""
        return np.ones(len(stream.nodes), dtype=np.complex128)
