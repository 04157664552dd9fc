"""Uploads of some coordinates, the same of all clients of a round, whose sum has them too."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.compression.rand_k import RandK


@dataclass(frozen=True)
class SparseUploads:
    """The coordinates that a codec keeps of every vector of an upload.

    Attributes:
        codec: draws the coordinates of a round.
        dimension: d, length of a vector.
        vectors: P, of an upload.
    """

    codec: RandK
    dimension: int
    vectors: int

    @property
    def sent(self) -> int:
        """Numbers of an upload that are sent."""
        return self.vectors * len(self.codec.places(self.dimension))

    def drawn(self, generator: np.random.Generator) -> Self:
        """The same with the coordinates of another round."""
        return replace(self, codec=self.codec.drawn(generator))

    def reduced(self, updates: NDArray[np.float32]) -> NDArray[np.float32]:
        """(k, sent) what clients send of their uploads (k, P·d)."""
        return self.codec.reduced(updates.reshape(len(updates), self.vectors, -1)).reshape(len(updates), -1)

    def expanded(self, mean: NDArray[np.float64]) -> NDArray[Any]:
        """(P·d) the mean of the uploads from that of what was sent (sent,)."""
        return self.codec.expanded(mean.reshape(self.vectors, -1), self.dimension).ravel()
