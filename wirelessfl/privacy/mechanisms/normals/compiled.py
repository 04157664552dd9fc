"""The compiled kernel: ``kernel.c``, and how it is called."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.mechanisms.normals.portable import add_portably

LIBRARY = Path(__file__).with_name("kernel.bin")
"""Where ``hatch_build.py`` puts the library; by another ending, Python would take it for a module."""

_TRIED = 2000  # numbers that are compared before a library is used


@cache
def kernel() -> ctypes.CDLL | None:
    """The library; None where it was not compiled, does not fit this machine, or gives other numbers than it should.

    The last may be so where a compiler contracts operations in spite of its flags, or left over from an older source.
    """
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.wirelessfl_add_normals.argtypes = (pointer, count, count, count, pointer, pointer, pointer)
        library.wirelessfl_add_normals.restype = None
    except (OSError, AttributeError):
        return None
    return library if _gives_the_portable_numbers(library) else None


def _gives_the_portable_numbers(library: ctypes.CDLL) -> bool:
    found, expected = np.zeros((2, 1, _TRIED), dtype=np.float32)
    trial = np.full(1, 1.5, dtype=np.float32), bytes(range(32)), np.arange(3, dtype=np.uint32)[None]
    add_compiled(library, found, *trial)
    add_portably(expected, *trial)
    return np.array_equal(found, expected)


def add_compiled(
    library: ctypes.CDLL,
    out: NDArray[np.float32],
    std: NDArray[np.float32],
    key: bytes,
    nonces: NDArray[np.uint32],
) -> None:
    """Addition of std_i times the normals of the stream of ``key`` and ``nonces[i]`` to row i; other threads go on.

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
