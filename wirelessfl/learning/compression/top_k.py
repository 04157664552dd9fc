"""The k largest coordinates of a vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.compression.codecs import FLOAT_BITS, Codec, Payload


@dataclass(frozen=True)
class TopK(Codec):
    """The k = ⌈share · d⌉ coordinates of largest magnitude (Stich et al., "Sparsified SGD with memory", 2018).

    Values travel in single precision, their places as the number of the set among all of its size:
    ⌈log₂ C(d, k)⌉ bits. Of equal magnitudes the first are taken.

    Attributes:
        share: in (0, 1].

    Raises:
        ValueError: if the share is out of range.
    """

    share: float

    def __post_init__(self) -> None:
        check_share(self.share)

    @override
    def bits(self, dimension: int) -> int:
        kept = kept_of(self.share, dimension)
        return FLOAT_BITS * kept + index_bits(dimension, kept)

    @override
    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        kept = kept_of(self.share, rows.shape[1])
        places = np.stack([largest(row, kept) for row in rows])
        return Payload((rows.shape, places, np.take_along_axis(rows, places, axis=1)), self.bits(rows.shape[1]))

    @override
    def decode(self, payload: Payload) -> NDArray[np.float32]:
        shape, places, values = payload.content
        rows = np.zeros(shape, dtype=np.float32)
        np.put_along_axis(rows, places, values, axis=1)
        return rows


def largest(row: NDArray[np.float32], kept: int) -> NDArray[np.int64]:
    """(k,) ascending places of the largest magnitudes of (d,) numbers; of equal ones the first."""
    # As integers magnitudes have the order of the numbers, NaN above all
    magnitude = np.abs(row).view(np.int32)
    least = np.partition(magnitude, len(row) - kept)[len(row) - kept]
    above = np.flatnonzero(magnitude > least)
    ties = np.flatnonzero(magnitude == least)[: kept - len(above)]
    return np.sort(np.concatenate([above, ties]))


def kept_of(share: float, dimension: int) -> int:
    """K = ⌈share · d⌉ coordinates of d."""
    # The tolerance keeps 0.07 of 100 coordinates at 7, where the product is a hair above it
    return min(dimension, math.ceil(share * dimension * (1.0 - 1e-15)))


def check_share(share: float) -> None:
    """Precondition on a share of the coordinates: in (0, 1], else ValueError."""
    precondition(0 < share <= 1, f"share must lie in (0, 1], not {share}")


def index_bits(dimension: int, kept: int) -> int:
    """⌈log₂ C(d, k)⌉, bits that tell sets of k places of d apart.

    The logarithm is that of Γ; next to a whole number, where it could round to the wrong side, C(d, k) itself decides.
    """
    logarithm = math.lgamma(dimension + 1) - math.lgamma(kept + 1) - math.lgamma(dimension - kept + 1)
    found = logarithm / math.log(2)
    error = 1e-15 * (1 + math.lgamma(dimension + 1)) * 16
    if abs(found - round(found)) <= error:
        return (math.comb(dimension, kept) - 1).bit_length()
    return math.ceil(found)
