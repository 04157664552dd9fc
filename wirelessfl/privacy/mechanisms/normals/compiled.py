"""The compiled kernel: ``kernel.c``, and how it is called."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LIBRARY = Path(__file__).with_name("kernel.bin")
"""Where ``hatch_build.py`` puts the library; by another ending, Python would take it for a module."""


@cache
def kernel() -> ctypes.CDLL | None:
    """The library, or None where it was not compiled or does not fit this machine."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:
        return None
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    library.wirelessfl_add_normals.argtypes = (pointer, count, count, count, pointer, pointer, pointer)
    library.wirelessfl_add_normals.restype = None
    return library


def add_compiled(
    library: ctypes.CDLL,
    out: NDArray[np.float32],
    std: NDArray[np.float32],
    key: bytes,
    nonces: NDArray[np.uint32],
) -> None:
    """Adds std_i times the normals of the stream of ``key`` and ``nonces[i]`` to row i; other threads go on meanwhile.

    Args:
        library: See ``kernel``.
        out: (k, d), changed in place; the elements of a row lie side by side.
        std: (k,).
        key: 32 bytes.
        nonces: (k, 3).
    """
    rows, columns = out.shape
    if out.dtype != np.float32 or out.strides[1] != out.itemsize or not out.flags.writeable:
        raise ValueError(f"rows must be writeable floats side by side, found {out.dtype} with strides {out.strides}")
    if std.shape != (rows,) or nonces.shape != (rows, 3) or len(key) != 32:
        raise ValueError(f"found {std.shape} deviations, {nonces.shape} nonces and a key of {len(key)} for {rows} rows")
    words = np.frombuffer(key, dtype="<u4").astype(np.uint32)
    std, nonces = np.ascontiguousarray(std, np.float32), np.ascontiguousarray(nonces, np.uint32)
    library.wirelessfl_add_normals(
        out.ctypes.data,
        rows,
        out.strides[0] // out.itemsize,
        columns,
        std.ctypes.data,
        words.ctypes.data,
        nonces.ctypes.data,
    )
