"""Haar noise on whole parameter vectors: normal coefficients over their weights, transformed back.

The noise of one local step costs several passes over k · m numbers. On a CPU a small C kernel draws and transforms them
row by row within the cache, and draws none that reach no parameter; where it was not compiled, and on a GPU, torch
gives the same numbers.
"""

import ctypes
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.normals import add_normal, noise_key, nonces
from wirelessfl.normals.portable import standard_normals
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.mechanisms.haar_noise.portable import add_inverse_haar, coefficients_needed
from wirelessfl.privacy.wavelet import padded_length

__all__ = ["add_haar_noise"]

LIBRARY = library_beside(__file__)

_DRAWN_BYTES = 2**22  # of coefficients at a time: the inverse transform passes over them while they are in the cache
_DRAWN_BYTES_ON_DEVICE = 2**28  # there launches count; the transform holds four times as much meanwhile


def add_haar_noise(out: Tensor, std: Tensor, purpose: str, step: Step) -> None:
    """Addition of noise with Haar coefficients std_i · N(0, 1) / W, cut to d elements, to row i of ``out``, in place.

    Coefficient j of a row is number j of its stream, see ``add_normal``.

    Args:
        out: (k, d).
        std: (k,).
        purpose: Names the stream.
        step: Whose noise this is, and the run's random streams.
    """
    library = kernel() if out.device.type == "cpu" and out.dtype == torch.float32 and out.stride(1) == 1 else None
    if library is not None and out.shape[1] > 1:
        key = noise_key(step.streams, purpose, step.round_index)
        _add_compiled(library, out, std, key, nonces(step.clients, step.step))
    else:
        _add_in_pieces(out, std, purpose, step)


def _add_in_pieces(out: Tensor, std: Tensor, purpose: str, step: Step) -> None:
    clients, dimension = out.shape
    drawn = _DRAWN_BYTES if out.device.type == "cpu" else _DRAWN_BYTES_ON_DEVICE
    at_once = max(1, drawn // (out.element_size() * padded_length(dimension)))
    room = out.new_empty(min(at_once, clients), coefficients_needed(dimension))
    for first in range(0, clients, at_once):
        rows = slice(first, first + at_once)
        whose = step.clients[rows]
        coefficients = room[: len(whose)].zero_()
        add_normal(coefficients, std[rows], step.streams, purpose, step.round_index, whose, step.step)
        add_inverse_haar(out[rows], coefficients)


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, COUNT, COUNT, COUNT, POINTER, POINTER, POINTER, COUNT, POINTER)
    return loaded(LIBRARY, {"wirelessfl_add_haar_noise": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    dimension, std, key = 1100, 1.5, bytes(range(32))
    nonce = np.arange(3, dtype=np.uint32)
    found, expected = (torch.full((1, dimension), 0.3, device="cpu", dtype=torch.float32) for _ in range(2))
    _add_compiled(library, found, found.new_full((1,), std), key, nonce[None])
    normals = torch.from_numpy(standard_normals(key, nonce, coefficients_needed(dimension)))
    add_inverse_haar(expected, normals[None] * std)
    return torch.equal(found, expected)


def _add_compiled(library: ctypes.CDLL, out: Tensor, std: Tensor, key: bytes, nonces: NDArray[np.uint32]) -> None:
    rows, columns = out.shape
    length = padded_length(columns)
    words = np.frombuffer(key, dtype="<u4").astype(np.uint32)
    std, nonces = std.float().contiguous(), np.ascontiguousarray(nonces)
    means = out.new_empty(length)
    library.wirelessfl_add_haar_noise(
        out.data_ptr(),
        *(rows, out.stride(0), columns),
        *(std.data_ptr(), words.ctypes.data, nonces.ctypes.data),
        length.bit_length() - 1,
        means.data_ptr(),
    )
