"""Weighted sums of updates by ranges of coordinates, with the energies of the updates in each, in one pass.

In frequency-selective or changing channels a client has a weight, and spends energy, in each range of coordinates of
its own. Updates are read from memory once for both, by a small C kernel that is compiled when the package is
installed; where that was not possible, NumPy gives the same numbers slowly.
"""

import ctypes
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.radio.weighted_sums.portable import Floats, add_portably

__all__ = ["add_weighted"]

LIBRARY = library_beside(__file__)


def add_weighted(out: Floats, updates: Floats, weights: Floats) -> NDArray[np.float64]:
    """Addition of Σ_i w_i Δ_i to one or two sums in each of n ranges of coordinates, in place.

    The result does not depend on the processor: all sums are of single precision, in the order of the clients.

    Args:
        out: (n, 1|2, length) the sums, in a row.
        updates: Δ (k, n · length), the coordinates of a client side by side.
        weights: w (n, 1|2, k).

    Returns:
        (k, n) Σ Δ² of each client in each range.

    Raises:
        ValueError: if the shapes do not fit.
    """
    ranges, outputs, length = out.shape
    precondition(
        updates.shape[1:] == (ranges * length,) and weights.shape == (ranges, outputs, len(updates)),
        f"updates {updates.shape} and weights {weights.shape} do not fit sums {out.shape}",
    )
    precondition(
        out.flags.c_contiguous and out.flags.writeable and updates.strides[1] == updates.itemsize,
        f"sums must lie in a row, and coordinates side by side, found strides {out.strides} and {updates.strides}",
    )
    energies = np.zeros((len(updates), ranges))
    weights = np.ascontiguousarray(weights)
    if (library := kernel()) is not None:
        _add_compiled(library, out, updates, weights, energies)
    else:
        add_portably(out, updates, weights, energies)
    return energies


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, *(COUNT,) * 5, POINTER, POINTER, POINTER)
    return loaded(LIBRARY, {"wirelessfl_add_weighted": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    numbers = np.random.default_rng(1)
    updates, weights = (numbers.standard_normal(shape, dtype=np.float32) for shape in ((6, 78), (2, 2, 6)))
    (found, its), (expected, wanted) = ((np.zeros((2, 2, 39), np.float32), np.zeros((6, 2))) for _ in range(2))
    _add_compiled(library, found, updates, weights, its)
    add_portably(expected, updates, weights, wanted)
    return np.array_equal(found, expected) and np.array_equal(its, wanted)


def _add_compiled(
    library: ctypes.CDLL, out: Floats, updates: Floats, weights: Floats, energies: NDArray[np.float64]
) -> None:
    ranges, outputs, length = out.shape
    library.wirelessfl_add_weighted(
        updates.ctypes.data,
        len(updates),
        updates.strides[0] // updates.itemsize,
        ranges,
        length,
        outputs,
        weights.ctypes.data,
        out.ctypes.data,
        energies.ctypes.data,
    )
