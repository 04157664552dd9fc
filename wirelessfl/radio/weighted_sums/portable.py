"""The numbers of ``kernel.c`` by NumPy, operation by operation in its order."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LANES = 16
TILE = 4096


def add_portably(out: Floats, updates: Floats, weights: Floats, energies: NDArray[np.float64]) -> None:
    """Addition of weighted updates to sums, and of their energies by range of coordinates, in place.

    Args:
        out: (n, 1|2, length).
        updates: (k, n · length).
        weights: (n, 1|2, k).
        energies: (k, n).
    """
    ranges, _, length = out.shape
    for client, update in enumerate(updates):
        parts = update.reshape(ranges, length)
        out += weights[:, :, client, None] * parts[:, None, :]
        for first in range(0, length, TILE):
            energies[client] += _energy(parts[:, first : first + TILE])


def _energy(parts: Floats) -> Floats:
    # (n,) Σ x² of (n, columns): lane by lane, then the lanes by halves
    whole = -(-parts.shape[1] // LANES) * LANES
    squares = np.zeros((len(parts), whole), dtype=np.float32)
    squares[:, : parts.shape[1]] = parts * parts
    lanes = np.zeros((len(parts), LANES), dtype=np.float32)
    for first in range(0, whole, LANES):
        lanes += squares[:, first : first + LANES]
    half = LANES // 2
    while half:
        lanes[:, :half] += lanes[:, half : 2 * half]
        half //= 2
    return lanes[:, 0]
