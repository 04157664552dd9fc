"""How updates and their weights p_i become vectors whose ring sum gives the weighted mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.secagg.encoding import FixedPoint, WeightedMean
from wirelessfl.secagg.masks import Ring, RingVector

FLOAT_ROOM = 1.0 + 2.0**-10
"""Bound of a coordinate over the clip τ: a float32 update clipped to τ exceeds it by a few times 2^-24."""


class SumEncoding(Protocol):
    """What is summed in place of the updates."""

    @property
    def ring(self) -> Ring:
        """Where the sum lives."""

    @property
    def length(self) -> int:
        """Elements of an encoded vector."""

    def encode(self, update: NDArray[np.float32], samples: int, generator: np.random.Generator) -> RingVector:
        """The vector (length,) of a client with ``samples`` samples."""

    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weighted mean (d,) from the sum over clients with (k,) ``samples``."""


@dataclass(frozen=True)
class PublicWeights:
    """The sample numbers n_i are public: client i encodes (n_i/max n) Δ_i, and the server divides by Σ n_i/max n.

    Attributes:
        fixed_point: encodes coordinates.
        dimension: d.
        max_weight: the largest n_i.
    """

    fixed_point: FixedPoint
    dimension: int
    max_weight: int

    @property
    def ring(self) -> Ring:
        """Where the sum lives."""
        return self.fixed_point.ring

    @property
    def length(self) -> int:
        """As many as the update has, d."""
        return self.dimension

    def encode(self, update: NDArray[np.float32], samples: int, generator: np.random.Generator) -> RingVector:
        """The vector (d,) of a client with ``samples`` samples."""
        return self.fixed_point.encode(update.astype(np.float64) * (samples / self.max_weight), generator)

    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weighted mean (d,)."""
        return self.fixed_point.decode(total) * (self.max_weight / float(samples.sum()))


@dataclass(frozen=True)
class HiddenWeights:
    """The sample numbers n_i are summed under the masks as well: the server learns Σ n_i and no single one.

    Attributes:
        weighted_mean: encodes updates with their weights.
        dimension: d.
    """

    weighted_mean: WeightedMean
    dimension: int

    @property
    def ring(self) -> Ring:
        """Where the sum lives."""
        return self.weighted_mean.fixed_point.ring

    @property
    def length(self) -> int:
        """One more than d."""
        return self.dimension + 1

    def encode(self, update: NDArray[np.float32], samples: int, generator: np.random.Generator) -> RingVector:
        """The vector (d + 1,) of a client with ``samples`` samples."""
        return self.weighted_mean.encode(update, samples, generator)

    def decode(self, total: RingVector, samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weighted mean (d,); ``samples`` is not looked at."""
        return self.weighted_mean.decode(total)[0]
