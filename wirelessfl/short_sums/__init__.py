"""Products of many pairs of small matrices, whose numbers are sums of few products, added to what is there.

Such are gradients of a linear layer in batches of a few samples, what local training in sample space makes of weights
at its end, and the superposition of a few clients' updates. A small kernel in C keeps a piece of what is formed in
registers for a whole sum; it wants a processor with AVX-512, or with AVX2 and fused multiplications.
"""

import ctypes
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wirelessfl.kernels import POINTER, library_beside, loaded

__all__ = ["LONGEST", "add_sums", "kernel"]

Floats = NDArray[np.float32]

LIBRARY = library_beside(__file__)

LONGEST = 384
"""Products in a sum; with more, the last digits would be lost one by one."""


def add_sums(library: ctypes.CDLL, into: Floats, left: Floats, right: Floats, decay: float) -> None:
    """Sets into ← decay · into + left @ right, batched.

    The products of a sum are added one after the other, each with a single rounding, and then ``into``.

    Args:
        library: From ``kernel``.
        into: (c, m, n) in float32, with columns beside each other.
        left: (c, m, k) in float32, k up to ``LONGEST``.
        right: (c, k, n) in float32, with columns beside each other.
        decay: What ``into`` is multiplied by; where it is 0, nothing that ``into`` held matters.

    Raises:
        TypeError: They are not in float32.
        ValueError: Their shapes do not fit together, sums are longer, columns lie apart, rows lie apart by no whole
            number of floats, or ``into`` is read-only.
    """
    matrices = into, left, right
    if any(matrix.dtype != np.float32 for matrix in matrices):  # the kernel reads memory as such
        raise TypeError("short sums are for numbers in float32")
    if not into.flags.writeable or any(stride % matrix.itemsize for matrix in matrices for stride in matrix.strides):
        raise ValueError("short sums need whole floats between rows, and memory that may be written")
    (clients, rows, terms), columns = left.shape, right.shape[2]
    fit = into.shape == (clients, rows, columns) and right.shape == (clients, terms, columns) and terms <= LONGEST
    apart = [[stride // matrix.itemsize for stride in matrix.strides] for matrix in matrices]
    if not fit or any(matrix.size and found[2] != 1 for matrix, found in ((into, apart[0]), (right, apart[2]))):
        raise ValueError(f"found {[matrix.shape for matrix in matrices]} with strides {apart}")
    plan = (clients, rows, terms, columns, *apart[1], *apart[2][:2], *apart[0][:2])
    pointers = (matrix.ctypes.data for matrix in (left, right, into))
    library.wirelessfl_add_short_sums(
        (ctypes.c_int64 * len(plan))(*plan), *pointers, ctypes.byref(ctypes.c_float(decay))
    )


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    return loaded(LIBRARY, {"wirelessfl_add_short_sums": (POINTER,) * 5}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # Where the processor lacks the instructions nothing is written
    numbers = np.cos(np.linspace(-1.3, 1.7, 3000, dtype=np.float32) * np.float32(2**12))
    left, right = numbers[: 2 * 7 * 13].reshape(2, 7, 13).swapaxes(1, 2), numbers[-2 * 7 * 45 :].reshape(2, 7, 45)
    found = numbers[: 2 * 600].copy().reshape(2, 600)[:, 9:594].reshape(2, 13, 45)
    expected = 0.5 * found + left @ right
    add_sums(library, found, left, right, 0.5)
    return np.allclose(found, expected, rtol=1e-4, atol=1e-5)
