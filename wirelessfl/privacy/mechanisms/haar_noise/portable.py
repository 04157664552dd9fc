"""Haar noise without the kernel, on any device: its numbers, from normals that torch transforms."""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from wirelessfl.errors import precondition
from wirelessfl.normals import add_normal
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.wavelet import inverse_haar, padded_length

_DRAWN_BYTES = 2**22  # of coefficients at a time: the transform passes over them while they are in the cache
_DRAWN_BYTES_ON_DEVICE = 2**28  # there launches count; the transform holds four times as much meanwhile


def add_portably(out: Tensor, std: Tensor, purpose: str, step: Step) -> None:
    """Addition of Haar noise to rows (k, d), some clients at a time; see ``add_haar_noise`` for the arguments."""
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
