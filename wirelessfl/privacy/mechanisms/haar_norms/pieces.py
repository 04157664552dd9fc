"""Squared norms of the Haar coefficients of vectors in pieces, by torch: on a CPU to the bits of ``kernel.c``.

While blocks lie inside the rows of an outer product l ⊗ r, their sums are l ⊗ (sums of r), and the differences have
squared norm ‖l‖² ‖differences of r‖²: only what is left then is formed, for rows of 784 a sixteenth.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

_FORMED_BYTES = 8 * 2**20  # block sums formed at a time on a CPU: fewer cost more calls than larger caches save
_FORMED_BYTES_ON_DEVICE = 2**29  # where few launches matter more; not measured
_LANES = 16


class Piece(NamedTuple):
    """A stretch of block sums of vectors.

    Attributes:
        left: (..., m) factors of rows, or without a right one the (..., n) sums.
        right: (..., n) what the rows of an outer product have in common.
    """

    left: Tensor
    right: Tensor | None

    @property
    def length(self) -> int:
        """Block sums of a vector in this stretch."""
        return self.left.shape[-1] * (1 if self.right is None else self.right.shape[-1])

    def write(self, values: Tensor) -> None:
        """Copy to values (..., length)."""
        if self.right is None:
            values.copy_(self.left)
        else:
            rows = values.view(*values.shape[:-1], self.left.shape[-1], self.right.shape[-1])
            torch.mul(self.left[..., :, None], self.right[..., None, :], out=rows)


def squared_norms_in_turn(pieces: Sequence[Piece], level_factor: float) -> Tensor:
    """(k, B) squared norms of vectors, as many at a time as their block sums leave memory for.

    Args:
        pieces: Pieces (k, B, ...) of the vectors.
        level_factor: To the power of l, the weight of the energy of level l.
    """
    clients, samples = pieces[0].left.shape[:2]
    formed_bytes = pieces[0].left.element_size() * clients * _formed_elements(pieces)
    limit = _FORMED_BYTES if pieces[0].left.device.type == "cpu" else _FORMED_BYTES_ON_DEVICE
    at_once = max(1, limit // max(1, formed_bytes))
    parts = [
        squared_norms([_of_samples(piece, slice(first, first + at_once)) for piece in pieces], level_factor)
        for first in range(0, max(1, samples), at_once)
    ]
    return torch.cat(parts, dim=1)


def squared_norms(pieces: Sequence[Piece], level_factor: float) -> Tensor:
    """(...) squared norms of vectors in pieces (..., m) and (..., n); see ``squared_norms_in_turn``."""
    total, factor = pieces[0].left.new_zeros(pieces[0].left.shape[:-1]), 1.0
    while len(pieces) > 1 or pieces[0].length > 1:
        factor *= level_factor
        halved = []
        for left, right in _aligned(pieces):
            if right is None:
                sums, energy = _level(left)
                halved.append(Piece(sums, None))
            else:
                sums, energy = _level(right)
                energy = energy * _energy(left)
                halved.append(Piece(left, sums))
            total += factor * energy
        pieces = halved
    first, second = pieces[0]
    last = first[..., 0] if second is None else first[..., 0] * second[..., 0]
    return total + factor * last.square()


def _of_samples(piece: Piece, samples: slice) -> Piece:
    return Piece(piece.left[:, samples], None if piece.right is None else piece.right[:, samples])


def _aligned(pieces: Sequence[Piece]) -> list[Piece]:
    # The same stretches, with outer products formed where blocks of two would cross their rows or ends.
    result: list[Piece] = []
    to_form: list[Piece] = []
    offset = 0
    for piece in pieces:
        if piece.right is None or piece.right.shape[-1] % 2 or offset % 2:
            to_form.append(piece)
        else:
            result += [*_formed(to_form), piece]
            to_form = []
        offset += piece.length
    return [*result, *_formed(to_form)]


def _formed(pieces: list[Piece]) -> list[Piece]:
    # Neighbouring stretches as one that is formed; none of none.
    if (len(pieces) == 1 and pieces[0].right is None) or not pieces:
        return pieces
    ends = list(itertools.accumulate(piece.length for piece in pieces))
    first = pieces[0].left
    values = first.new_empty((*first.shape[:-1], ends[-1]))
    for piece, end in zip(pieces, ends, strict=True):
        piece.write(values[..., end - piece.length : end])
    return [Piece(values, None)]


def _level(sums: Tensor) -> tuple[Tensor, Tensor]:
    # (..., ⌈n/2⌉) sums of neighbours and (...) the squared norm of their differences.
    if sums.shape[-1] % 2:
        sums = pad(sums, (0, 1))
    left, right = sums[..., 0::2], sums[..., 1::2]
    return left + right, _energy(left - right)


def _by_lanes(values: Tensor) -> bool:
    # Whether there is a kernel whose bits these shall be
    return values.device.type == "cpu" and values.dtype == torch.float32


def _energy(values: Tensor) -> Tensor:
    # (...) Σ x², by lanes: lane by lane, then the lanes by halves, as the kernel
    if not _by_lanes(values):
        # Kept and then taken away: without values torch 2.11 keeps an axis of length 1 of its own accord
        norms: Tensor = torch.linalg.vector_norm(values, dim=-1, keepdim=True)
        return norms.squeeze(-1).square()
    squares = pad(values.square(), (0, -values.shape[-1] % _LANES)).numpy()
    lanes: Tensor = torch.from_numpy(
        squares.reshape(*squares.shape[:-1], squares.shape[-1] // _LANES, _LANES).sum(axis=-2)
    )
    while lanes.shape[-1] > 1:
        first, second = lanes.chunk(2, dim=-1)
        lanes = first + second
    return lanes[..., 0]


def _formed_elements(pieces: Sequence[Piece]) -> int:
    # About how many block sums of one vector are formed, at the levels where outer products must be.
    total = offset = 0
    for left, right in pieces:
        columns = 1 if right is None else right.shape[-1]
        length, common = left.shape[-1] * columns, math.gcd(columns, offset)
        total += length // (common & -common)
        offset += length
    return total
