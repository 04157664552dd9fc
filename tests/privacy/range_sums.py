"""The variance of sums of Haar noise, in closed form."""

from __future__ import annotations

import numpy as np


def range_sum_noise_variance(length: int, start: int, stop: int) -> float:
    """Variance of the sum of elements [start, stop) under noise N(0, 1/W²) on the coefficients."""
    levels = length.bit_length() - 1
    variance = ((stop - start) / length) ** 2
    edges = np.array([start, stop])
    for level in range(1, levels + 1):
        half = 1 << (level - 1)
        # Only blocks that an edge cuts have unequally many elements of the range in their two halves; two edges
        # in one block act on the same coefficient.
        blocks = np.unique(edges // (2 * half))
        first = blocks * 2 * half
        left = np.clip(stop, first, first + half) - np.clip(start, first, first + half)
        right = np.clip(stop, first + half, first + 2 * half) - np.clip(start, first + half, first + 2 * half)
        variance += float(np.sum((left - right) ** 2)) / 4.0**level
    return variance
