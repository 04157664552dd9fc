"""Haar noise by torch, on any device: the numbers of ``kernel.c``."""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from wirelessfl.privacy.wavelet import inverse_haar, padded_length


def add_portably(out: Tensor, coefficients: Tensor) -> None:
    """Addition of the inverse transform of coefficients over W to rows, in place.

    Args:
        out: (k, d).
        coefficients: (k, n) the first of m, those behind which only elements beyond d follow.
    """
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
