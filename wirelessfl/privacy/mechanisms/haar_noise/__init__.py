"""Haar noise on whole parameter vectors: normal coefficients over their weights, transformed back.

The noise of one local step costs several passes over k · m numbers. On a CPU a small C kernel draws and transforms them
row by row within the cache, and draws none that reach no parameter; where it was not compiled, and on a GPU, torch
gives the same numbers.
"""

import ctypes
from functools import cache

import numpy as np
import torch
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.normals import NoiseStreams, noise_key, nonces
from wirelessfl.normals.portable import standard_normals
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.mechanisms.haar_noise.portable import add_inverse_haar, add_portably, coefficients_needed
from wirelessfl.privacy.wavelet import padded_length

__all__ = ["add_haar_noise"]

LIBRARY = library_beside(__file__)


def add_haar_noise(out: Tensor, std: Tensor, purpose: str, step: Step) -> None:
    """Addition of noise with Haar coefficients std_i · N(0, 1) / W, cut to d elements, to row i of ``out``, in place.

    Coefficient j of a row is number j of its stream, see ``add_normal``.

    Args:
        out: (k, d).
        std: (k,).
        purpose: Names the stream.
        step: Whose noise this is, and the run's random streams.

    Raises:
        ValueError: There are not as many deviations or clients as rows.
    """
    rows = len(out)
    precondition(
        std.shape == (rows,) and len(step.clients) == rows,
        f"found {tuple(std.shape)} deviations and {len(step.clients)} clients for {rows} rows",
    )
    library = kernel() if out.device.type == "cpu" and out.dtype == torch.float32 and out.stride(1) == 1 else None
    if library is not None and out.shape[1] > 1:
        key = noise_key(step.streams, purpose, step.round_index)
        streams = NoiseStreams.of(rows, std.float().numpy(), key, nonces(step.clients, step.step))
        _add_compiled(library, out, streams)
    else:
        add_portably(out, std, purpose, step)


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, COUNT, COUNT, COUNT, POINTER, POINTER, POINTER, COUNT, POINTER)
    return loaded(LIBRARY, {"wirelessfl_add_haar_noise": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    # With a last tile that is not full, and an odd end
    dimension, key, words = 1101, bytes(range(32)), np.arange(6, dtype=np.uint32).reshape(2, 3)
    std = np.array([1.5, 0.4], dtype=np.float32)
    found, expected = (torch.full((2, dimension + 3), 0.3, device="cpu", dtype=torch.float32) for _ in range(2))
    _add_compiled(library, found[:, :dimension], NoiseStreams.of(2, std, key, words))
    needed = coefficients_needed(dimension)
    normals = np.stack([standard_normals(key, nonce, needed) for nonce in words]) * std[:, None]
    add_inverse_haar(expected[:, :dimension], torch.from_numpy(normals))
    return torch.equal(found, expected)


def _add_compiled(library: ctypes.CDLL, out: Tensor, streams: NoiseStreams) -> None:
    rows, columns = out.shape
    length = padded_length(columns)
    means = out.new_empty(length)
    library.wirelessfl_add_haar_noise(
        out.data_ptr(),
        *(rows, out.stride(0), columns),
        *streams.addresses(),
        length.bit_length() - 1,
        means.data_ptr(),
    )
