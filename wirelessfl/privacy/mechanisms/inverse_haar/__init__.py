"""Haar noise on whole parameter vectors, from normal coefficients.

The transform of the noise of one local step costs several passes over k · m numbers. On a CPU a small C kernel makes
them row by row within the cache; where it was not compiled, and on a GPU, torch gives the same numbers.
"""

import ctypes
from functools import cache

import torch
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.kernels import COUNT, POINTER, library_beside, loaded
from wirelessfl.privacy.mechanisms.inverse_haar.portable import add_portably
from wirelessfl.privacy.wavelet import padded_length

__all__ = ["add_inverse_haar", "coefficients_needed"]

LIBRARY = library_beside(__file__)


def coefficients_needed(dimension: int) -> int:
    """n, how many of the m Haar coefficients reach the first d elements: the finest ones of the others come last."""
    length = padded_length(dimension)
    return 1 if length == 1 else length // 2 + -(-dimension // 2)


def add_inverse_haar(out: Tensor, coefficients: Tensor) -> None:
    """Addition of the inverse Haar transform of coefficients over W, cut to d elements, to rows, in place.

    Args:
        out: (k, d).
        coefficients: (k, n) in the order of ``haar``, as many as ``coefficients_needed`` says; of the same kind.

    Raises:
        ValueError: If the shapes do not fit.
    """
    expected = (len(out), coefficients_needed(out.shape[1]))
    precondition(
        tuple(coefficients.shape) == expected, f"coefficients have shape {tuple(coefficients.shape)}, not {expected}"
    )
    library = kernel() if _floats_of_host(out) and _floats_of_host(coefficients) else None
    if library is not None and coefficients.shape[1] > 1:
        _add_compiled(library, out, coefficients)
    else:
        add_portably(out, coefficients)


def _floats_of_host(rows: Tensor) -> bool:
    return rows.device.type == "cpu" and rows.dtype == torch.float32 and rows.stride(1) == 1


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, COUNT, COUNT, COUNT, POINTER, COUNT, COUNT, POINTER)
    return loaded(LIBRARY, {"wirelessfl_add_inverse_haar": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    dimension = 77
    count = 2 * coefficients_needed(dimension)
    numbers = torch.linspace(-1.3, 1.7, count, dtype=torch.float32, device="cpu").cos().view(2, -1)
    found, expected = (numbers.new_full((2, dimension), 0.3) for _ in range(2))
    _add_compiled(library, found, numbers)
    add_portably(expected, numbers)
    return torch.equal(found, expected)


def _add_compiled(library: ctypes.CDLL, out: Tensor, coefficients: Tensor) -> None:
    length = padded_length(out.shape[1])
    means = out.new_empty(length + 4)
    library.wirelessfl_add_inverse_haar(
        out.data_ptr(),
        *(len(out), out.stride(0), out.shape[1]),
        coefficients.data_ptr(),
        *(coefficients.stride(0), length.bit_length() - 1),
        means.data_ptr(),
    )
