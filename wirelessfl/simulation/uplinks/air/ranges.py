"""Coordinates of a slot over the air by blocks and groups of subcarriers, each of which has a gain of its own."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", np.float64, np.bool_)
Ranges = tuple[tuple[int, int], ...]
"""First and one past the last coordinate of each block and group of subcarriers."""


def scale_ranges(values: NDArray[np.float64], ranges: Ranges, factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., d) times a factor (T, F) for each block and group of subcarriers, in place."""
    each = factors.ravel().tolist()
    if len(set(each)) == 1:
        values *= each[0]
        return values
    for (first, end), factor in zip(ranges, each, strict=True):
        values[..., first:end] *= factor
    return values


def renormalised(received: NDArray[np.float64], ranges: Ranges, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ p_i Δ_i (d,) divided, in place, by the weight of those who sent, range by range; 0 where nobody did.

    Args:
        received: the sum, with noise.
        ranges: of the T·F blocks and groups of subcarriers.
        weight: Σ p_i (R, F) of those who sent, R = T or 1 for all blocks alike.
    """
    each = _by_range(weight, ranges).tolist()
    if len(set(each)) == 1 and each[0] > 0:
        received /= each[0]
        return received
    for (first, end), heard in zip(ranges, each, strict=True):
        if heard > 0:
            received[first:end] /= heard
        else:
            received[first:end] = 0.0
    return received


def over_ranges(values: NDArray[Number], ranges: Ranges) -> NDArray[Number]:
    """(d,) a value for each coordinate, from one (R, F) for each block and group of subcarriers, R = T or 1."""
    return np.repeat(_by_range(values, ranges), [end - first for first, end in ranges])


def _by_range(values: NDArray[Number], ranges: Ranges) -> NDArray[Number]:
    # (T F,) values (R, F), R = T or 1 for all blocks alike
    return np.broadcast_to(values, (len(ranges) // values.shape[1], values.shape[1])).ravel()
