"""Fast normal numbers for noise on whole parameter vectors.

The k · d normals of one local step are most of the cost of private training. On a CPU they are drawn by a small C
kernel, compiled when the package is installed; where that was not possible, by NumPy, which gives the same numbers
slowly. On a GPU a Triton kernel makes the same numbers in one launch, or where that is not possible torch's operations.
"""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.privacy.mechanisms.normals.device import add_on_device, nonces
from wirelessfl.privacy.mechanisms.normals.portable import add_portably
from wirelessfl.streams import Streams

__all__ = ["add_normal", "noise_key"]

_KEY_PARTS = 4  # of 63 random bits each, written as 64

LIBRARY = Path(__file__).with_name("kernel.bin")
"""Where ``hatch_build.py`` puts the library; by another ending, Python would take it for a module."""

_TRIED = 2000  # numbers that are compared before a library is used


def add_normal(
    out: Tensor,
    std: Tensor,
    streams: Streams,
    purpose: str,
    round_index: int,
    clients: NDArray[np.int64],
    step: int,
) -> Tensor:
    """Addition of std_i · N(0, 1), independently, to every element of row i of ``out`` (k, d), which is returned.

    The noise of row i is a function of the seed, the purpose, the round, ``clients[i]`` and the step alone, not
    of the other rows, and noise on fewer columns is the beginning of noise on more. (torch's CPU generator looks at
    the lowest 32 bits of a seed: with one seed a row, hundreds of thousands of rows are enough for two of them to get
    the same noise.) Nor of the device: a GPU computes the same stream, see ``device``.

    Args:
        out: (k, d), changed in place.
        std: (k,).
        streams: The run's random streams.
        purpose: Names the stream.
        round_index: Communication round.
        clients: (k,) whose noise this is.
        step: Local step.
    """
    key = noise_key(streams, purpose, round_index)
    if out.device.type != "cpu":
        add_on_device(out, std, key, clients, step)
    elif out.dtype == torch.float32 and out.stride(1) == 1:
        _add_to_floats(out, std, key, nonces(clients, step))
    else:
        _add_to_others(out, std.to(out.dtype), key, nonces(clients, step))
    return out


def _add_to_others(out: Tensor, std: Tensor, key: bytes, nonces: NDArray[np.uint32]) -> None:
    for row, scale, nonce in zip(out, std, nonces, strict=True):
        if scale != 0:
            noise = torch.zeros(1, out.shape[1])
            _add_to_floats(noise, torch.ones(1), key, nonce[None])
            row += noise[0].to(out.dtype) * scale


def _add_to_floats(out: Tensor, std: Tensor, key: bytes, nonces: NDArray[np.uint32]) -> None:
    # Adds the normals of every row's stream, ``std`` (k,) times, to rows of contiguous floats (k, d).
    if (library := kernel()) is not None:
        add_compiled(library, out.numpy(), std.float().numpy(), key, nonces)
    else:
        add_portably(out.numpy(), std.float().numpy(), key, nonces)


def noise_key(streams: Streams, purpose: str, round_index: int) -> bytes:
    """The 32 bytes of a ChaCha20 key for all clients and steps of a round."""
    parts = (streams.torch_seed(purpose, round_index, part) for part in range(_KEY_PARTS))
    return b"".join(part.to_bytes(8, "little") for part in parts)


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
    precondition(
        out.dtype == np.float32 and out.strides[1] == out.itemsize and out.flags.writeable,
        f"rows must be writeable floats side by side, found {out.dtype} with strides {out.strides}",
    )
    precondition(
        std.shape == (rows,) and nonces.shape == (rows, 3) and len(key) == 32,
        f"found {std.shape} deviations, {nonces.shape} nonces and a key of {len(key)} for {rows} rows",
    )
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
