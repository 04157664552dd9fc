"""Analogue distributed gradient descent with compressed sensing (A-DSGD).

Amiri, Gündüz: "Machine Learning at the Wireless Edge: Distributed Stochastic Gradient Descent Over-the-Air", IEEE TSP
2020 (arXiv 1901.00844), Algorithm 1; over fading channels with inversion, as in their TWC 2020 paper.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.radio.compressed_sensing import SubsampledCosines, approximate_message_passing, framed, unframed
from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.modulation.waveform import Heard, Outgoing, Waveform


@dataclass(frozen=True)
class ADsgd(Waveform):
    """The k largest coordinates of an update and of what was left of earlier ones, projected to s − 1 numbers.

    A client sends √a (A g, 1) with a = τ²/(‖A g‖² + 1), so that all have the norm τ; the server divides the sum by its
    last number and recovers the sparse mean by approximate message passing. a follows from private data and weighs
    the mean.

    Attributes:
        symbols: s/d, in (0, 1].
        kept: k/d, below s/d.
        iterations: of message passing.
        threshold: θ, of its soft threshold, in units of the error's standard deviation.
        seed: of the projection, the same in all rounds.

    Raises:
        ValueError: if a number is out of range.
    """

    spreads: ClassVar[bool] = True
    private_scale: ClassVar[bool] = True

    symbols: float = 0.5
    kept: float = 0.1
    iterations: int = 20
    threshold: float = 1.3
    seed: int = 0

    def __post_init__(self) -> None:
        shares = f"needs 0 < kept < symbols <= 1, not {self.kept} and {self.symbols}"
        precondition(0 < self.kept < self.symbols <= 1, shares)
        precondition(self.iterations >= 1 and self.threshold > 0, "needs an iteration and a positive threshold")

    @override
    def symbol_count(self, dimension: int) -> int:
        # The tolerance keeps 0.07 of 100 coordinates at 7, where the product is a hair above it
        return max(2, math.ceil(self.symbols * dimension * (1.0 - 1e-15)))

    @override
    def coordinates_sent(self, dimension: int) -> int:
        """K."""
        return max(1, math.floor(self.kept * dimension * (1.0 + 1e-15)))

    @override
    def encode(self, outgoing: Outgoing) -> tuple[Array, NDArray[np.float64]]:
        """The projections with their scales, of norm τ."""
        updates = outgoing.updates
        rows = np.asarray(updates.cpu() if hasattr(updates, "cpu") else updates, dtype=np.float64)
        symbols = framed(self._projection(rows.shape[1]).forward(rows), outgoing.clip**2)
        sent = updates.new_tensor(symbols) if hasattr(updates, "new_tensor") else symbols.astype(updates.dtype)
        return sent, np.full(len(rows), outgoing.clip)

    @override
    def decode(self, received: NDArray[Any], heard: Heard) -> NDArray[np.float64]:
        """The sparse mean; 0 where the sum of the scales is lost in noise."""
        projection = self._projection(heard.dimension)
        return approximate_message_passing(projection, unframed(received), self.iterations, self.threshold)

    def _projection(self, dimension: int) -> SubsampledCosines:
        return _projection(dimension, self.symbol_count(dimension) - 1, self.seed)


@functools.lru_cache(maxsize=4)
def _projection(dimension: int, measurements: int, seed: int) -> SubsampledCosines:
    return SubsampledCosines(dimension, measurements, np.random.default_rng(seed))
