"""Squared norms of Haar coefficients, level by level, without forming the coefficients.

A level-l coefficient is a difference of sums over two neighbouring blocks of 2^(l−1) elements, divided by 2^l. So at
each level differences of neighbours are counted and their sums are handed on to the next. On a CPU a small C kernel
does so vector by vector within the cache; where it was not compiled, in other precisions and on a GPU, torch does.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Literal

import torch
from torch import Tensor

from wirelessfl.errors import precondition
from wirelessfl.kernels import COUNT, FLOAT, POINTER, library_beside, loaded
from wirelessfl.privacy.mechanisms.haar_norms.pieces import Piece, squared_norms, squared_norms_in_turn

__all__ = ["haar_squared_norms", "haar_squared_norms_of_pieces"]

LIBRARY = library_beside(__file__)

_LEVEL_FACTOR = {"coefficients": 0.25, "weighted": 1.0}


def haar_squared_norms(vectors: Tensor, clip_domain: Literal["coefficients", "weighted"]) -> Tensor:
    """Squared norms of the Haar coefficients of vectors padded with zeros to a power of two.

    Args:
        vectors: (..., d), d at least 1; no gradients follow through the norms.
        clip_domain: ``coefficients`` for ‖H‖², ``weighted`` for ‖W∘H‖².

    Returns:
        (...).

    Raises:
        ValueError: If a vector has no element, or a gradient is asked for.
    """
    pieces, factor = [Piece(vectors, None)], _LEVEL_FACTOR[clip_domain]
    _require_vectors(pieces)
    library = kernel() if _floats_of_host(pieces) else None
    return squared_norms(pieces, factor) if library is None else _compiled(library, pieces, factor)


def haar_squared_norms_of_pieces(
    pieces: Sequence[tuple[Tensor, Tensor | None]], clip_domain: Literal["coefficients", "weighted"]
) -> Tensor:
    """The same for vectors in pieces, some of them outer products, as gradients of linear layers are, never formed.

    Args:
        pieces: Elements (k, B, m_i), or pairs (k, B, m_i) and (k, B, n_i), which stand for m_i · n_i elements each, row
            by row.
        clip_domain: See ``haar_squared_norms``.

    Returns:
        (k, B).

    Raises:
        ValueError: If pieces differ in k or B, one has no element, or a gradient is asked for.
    """
    kept = [
        Piece(_single_precision(left), None if right is None else _single_precision(right)) for left, right in pieces
    ]
    _require_vectors(kept)
    factor, library = _LEVEL_FACTOR[clip_domain], kernel() if _floats_of_host(kept) else None
    return squared_norms_in_turn(kept, factor) if library is None else _compiled(library, kept, factor)


def _require_vectors(pieces: Sequence[Piece]) -> None:
    parts = [part for piece in pieces for part in piece if part is not None]
    shapes = [tuple(part.shape) for part in parts]
    precondition(
        len({shape[:-1] for shape in shapes}) == 1 and all(shape[-1] > 0 for shape in shapes),
        f"vectors must have at least one element, and be as many in each piece; found pieces {shapes}",
    )
    precondition(
        not torch.is_grad_enabled() or not any(part.requires_grad for part in parts),
        "no gradient follows through Haar norms; allowed: detached vectors",
    )


def _single_precision(vectors: Tensor) -> Tensor:
    # At least that, also where the model was evaluated in bfloat16.
    return vectors.to(torch.promote_types(vectors.dtype, torch.float32))


def _floats_of_host(pieces: Sequence[Piece]) -> bool:
    numbers = [part for piece in pieces for part in piece if part is not None]
    return all(part.device.type == "cpu" and part.dtype == torch.float32 for part in numbers)


class _Piece(ctypes.Structure):
    # As in kernel.c
    _fields_ = (("left", POINTER), ("right", POINTER), ("rows", COUNT), ("columns", COUNT))


@cache
def kernel() -> ctypes.CDLL | None:
    """The library of this package, see ``loaded``."""
    arguments = (POINTER, COUNT, COUNT, FLOAT, POINTER, POINTER, COUNT, POINTER)
    return loaded(LIBRARY, {"wirelessfl_haar_squared_norms": arguments}, _compiled_agrees)


def _compiled_agrees(library: ctypes.CDLL) -> bool:
    numbers = torch.linspace(-1.3, 1.7, 2 * 3 * 90, dtype=torch.float32, device="cpu").cos().view(2, 3, 90)
    shapes = ((7, 72), (3, 1), (41, 10), (39, 7))  # rows that share 8, 1 and 2 with what is before them
    pieces = [Piece(numbers[..., :rows], numbers[..., -columns:]) for rows, columns in shapes]
    return torch.equal(_compiled(library, pieces, 0.25), squared_norms(pieces, 0.25))


def _described(piece: Piece) -> _Piece:
    left, right = piece
    if right is None:
        return _Piece(left.data_ptr(), None, left.shape[-1], 0)
    return _Piece(left.data_ptr(), right.data_ptr(), left.shape[-1], right.shape[-1])


def _compiled(library: ctypes.CDLL, pieces: Sequence[Piece], level_factor: float) -> Tensor:
    kept = [Piece(left.contiguous(), None if right is None else right.contiguous()) for left, right in pieces]
    first = pieces[0].left
    described = (_Piece * len(pieces))(*map(_described, kept))
    length, out = sum(piece.length for piece in pieces), first.new_empty(first.shape[:-1])
    room, work = first.new_empty(3 * (length + len(pieces))), (_Piece * (2 * len(pieces)))()
    library.wirelessfl_haar_squared_norms(
        described, len(pieces), out.numel(), level_factor, work, room.data_ptr(), length, out.data_ptr()
    )
    return out
