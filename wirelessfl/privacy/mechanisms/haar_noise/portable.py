"""The inverse Haar transform of noise by torch, on any device: the numbers of ``kernel.c``."""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from wirelessfl.errors import precondition
from wirelessfl.privacy.wavelet import inverse_haar, padded_length


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
    length = padded_length(out.shape[1])
    scale = _inverse_weights(length, out.dtype, out.device)
    whole = pad(coefficients, (0, length - coefficients.shape[1])).mul_(scale)
    out += inverse_haar(whole)[:, : out.shape[1]]


@lru_cache(maxsize=4)
def _inverse_weights(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    # (m,) 1/W of ``haar_weights``, filled in on the device: a copy would make the host wait.
    inverse = torch.full((length,), 1 / length, dtype=dtype, device=device)
    for level in range(1, length.bit_length()):
        inverse[length >> level : 2 * length >> level].fill_(2.0**-level)
    return inverse
