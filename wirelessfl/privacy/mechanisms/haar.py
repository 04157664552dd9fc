"""Noise on Haar wavelet coefficients (DP-SGD-WAV), and the norms in which gradients may be clipped for it.

Squared norms of coefficients come level by level, without forming the coefficients. A level-l coefficient is a
difference of sums over two neighbouring blocks of 2^(l−1) elements, divided by 2^l. So at each level differences of
neighbours are counted and their sums are handed on to the next.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from wirelessfl.privacy import ClipDomain, HaarNoise, NoiseLaw, WaveletReading, padded_length
from wirelessfl.privacy.clipping import Step, shrink
from wirelessfl.privacy.costs import require_choices
from wirelessfl.privacy.mechanisms.base import PerSampleGradients
from wirelessfl.privacy.mechanisms.gaussian import PURPOSE, GaussianMechanism
from wirelessfl.privacy.mechanisms.inverse_haar import add_inverse_haar, coefficients_needed
from wirelessfl.privacy.mechanisms.normals import add_normal

_FORMED_BYTES = 8 * 2**20  # block sums formed at a time on a CPU: fewer cost more calls than larger caches save
_FORMED_BYTES_ON_DEVICE = 2**29  # where few launches matter more; not measured
_LEVEL_FACTOR = {"coefficients": 0.25, "weighted": 1.0}


def haar_squared_norms(vectors: Tensor, clip_domain: Literal["coefficients", "weighted"]) -> Tensor:
    """Squared norms of the Haar coefficients of vectors padded with zeros to a power of two.

    Args:
        vectors: (..., d).
        clip_domain: ``coefficients`` for ‖H‖², ``weighted`` for ‖W∘H‖².

    Returns:
        (...).
    """
    return _from_level(vectors, 1.0, _LEVEL_FACTOR[clip_domain])


def haar_squared_norms_of_products(
    products: Sequence[tuple[Tensor, Tensor]], clip_domain: Literal["coefficients", "weighted"]
) -> Tensor:
    """The same for vectors made of outer products, as the gradients of linear layers are, without forming these.

    While blocks lie inside the rows of an outer product l ⊗ r, their sums are l ⊗ (sums of r), and the differences
    have squared norm ‖l‖² ‖differences of r‖²: only what is left then is formed, for rows of 784 a sixteenth.

    Args:
        products: Pairs (k, B, m_i) and (k, B, n_i), which stand for m_i · n_i elements each, row by row.
        clip_domain: See ``haar_squared_norms``.

    Returns:
        (k, B).
    """
    products = [(_single_precision(left), _single_precision(right)) for left, right in products]
    clients, samples = products[0][0].shape[:2]
    formed_bytes = products[0][0].element_size() * clients * _formed_elements(products)
    limit = _FORMED_BYTES if products[0][0].device.type == "cpu" else _FORMED_BYTES_ON_DEVICE
    at_once = max(1, limit // formed_bytes)
    parts = [
        _of_pieces(
            [_Piece(left[:, first : first + at_once], right[:, first : first + at_once]) for left, right in products],
            _LEVEL_FACTOR[clip_domain],
        )
        for first in range(0, samples, at_once)
    ]
    return torch.cat(parts, dim=1)


class _Piece(NamedTuple):
    # A stretch of block sums: the outer product of two vectors, or, without a right one, formed.
    left: Tensor
    right: Tensor | None

    @property
    def length(self) -> int:
        # Elements of a vector in this stretch.
        return self.left.shape[-1] * (1 if self.right is None else self.right.shape[-1])

    def write(self, values: Tensor) -> None:
        # To values (..., length).
        if self.right is None:
            values.copy_(self.left)
        else:
            rows = values.view(*values.shape[:-1], self.left.shape[-1], self.right.shape[-1])
            torch.mul(self.left[..., :, None], self.right[..., None, :], out=rows)


def _of_pieces(pieces: list[_Piece], level_factor: float) -> Tensor:
    # (k, B) squared norms of vectors in pieces that begin with outer products.
    total = pieces[0].left.new_zeros(pieces[0].left.shape[:-1])
    factor = 1.0
    pieces = _aligned(pieces)
    while len(pieces) > 1 or pieces[0].right is not None:
        factor *= level_factor
        halved = []
        for left, right in pieces:
            if right is None:
                sums, energy = _level(left)
                halved.append(_Piece(sums, None))
            else:
                sums, energy = _level(right)
                energy = energy * left.square().sum(-1)
                halved.append(_Piece(left, sums))
            total += factor * energy
        pieces = _aligned(halved)
    return total + _from_level(pieces[0].left, factor, level_factor)


def _aligned(pieces: list[_Piece]) -> list[_Piece]:
    # The same stretches, with outer products formed where blocks of two would cross their rows or ends.
    result: list[_Piece] = []
    to_form: list[_Piece] = []
    offset = 0
    for piece in pieces:
        if piece.right is None or piece.right.shape[-1] % 2 or offset % 2:
            to_form.append(piece)
        else:
            result += [*_formed(to_form), piece]
            to_form = []
        offset += piece.length
    return [*result, *_formed(to_form)]


def _formed(pieces: list[_Piece]) -> list[_Piece]:
    # Neighbouring stretches as one that is formed; none of none.
    if (len(pieces) == 1 and pieces[0].right is None) or not pieces:
        return pieces
    ends = list(itertools.accumulate(piece.length for piece in pieces))
    first = pieces[0].left
    values = first.new_empty((*first.shape[:-1], ends[-1]))
    for piece, end in zip(pieces, ends, strict=True):
        piece.write(values[..., end - piece.length : end])
    return [_Piece(values, None)]


def _from_level(sums: Tensor, factor: float, level_factor: float) -> Tensor:
    # Squared norms of all levels above the one of these block sums (..., n), which has weight ``factor``.
    total = sums.new_zeros(sums.shape[:-1])
    while sums.shape[-1] > 1:
        sums, energy = _level(sums)
        factor *= level_factor
        total += factor * energy
    return total + factor * sums[..., 0].square()


def _level(sums: Tensor) -> tuple[Tensor, Tensor]:
    # (..., ⌈n/2⌉) sums of neighbours and (...) the squared norm of their differences.
    if sums.shape[-1] % 2:
        sums = pad(sums, (0, 1))
    left, right = sums[..., 0::2], sums[..., 1::2]
    # Kept and then taken away: without values torch 2.11 keeps an axis of length 1 of its own accord
    norms = torch.linalg.vector_norm(left - right, dim=-1, keepdim=True).squeeze(-1)
    return left + right, norms.square()


def _single_precision(vectors: Tensor) -> Tensor:
    # At least that, also where the model was evaluated in bfloat16.
    return vectors.to(torch.promote_types(vectors.dtype, torch.float32))


def _formed_elements(products: Sequence[tuple[Tensor, Tensor]]) -> int:
    # About how many block sums of one vector are formed, at the levels where outer products must be.
    total = offset = 0
    for left, right in products:
        rows, columns = left.shape[-1], right.shape[-1]
        common = math.gcd(columns, offset)
        total += rows * columns // (common & -common)
        offset += rows * columns
    return total


_DRAWN_BYTES = 2**22  # of coefficients at a time: the inverse transform passes over them while they are in the cache
_DRAWN_BYTES_ON_DEVICE = 2**28  # there launches count; the transform holds four times as much meanwhile


def clip_by_haar_norm(
    vectors: Tensor, clip: float, clip_domain: Literal["coefficients", "weighted"]
) -> tuple[Tensor, Tensor]:
    """Vectors (k, d) scaled to Haar norm ``clip`` where they exceed it, and their (k,) norms before.

    A vector whose norm is not finite becomes zero.
    """
    norms = haar_squared_norms(vectors, clip_domain).sqrt()
    weights = shrink(norms, norms.new_full((), clip))[:, None]
    return (vectors * weights).where(weights > 0, 0.0), norms


@dataclass(frozen=True)
class HaarMechanism(GaussianMechanism):
    """N(0, (σC/W)²) on the Haar coefficients of the sum (wavelet-dp-fl, Algorithm 1).

    The flat gradient is padded with zeros to m = 2^k elements and the noised one cut back. As the transform is linear,
    clipping the coefficients of a sample scales its gradient, and noise on the coefficients of the sum is noise in
    gradient space, of variance σ²C²(1/m² + Σ_l 4^−l) per element.

    Attributes:
        noise_multiplier: σ in each round.
        clip_domain: The norm that is clipped to C: ``coefficients`` ‖H‖ (the paper's Algorithm 1), ``weighted``
            ‖W∘H‖, ``gradient`` ‖g‖. The true noise multiplier is σ/m, σ and σ/√m.
        reading: Which claim of the paper the ledger's published column takes, see ``HaarNoise``.

    Raises:
        ValueError: If the clip domain or the reading is unknown.
    """

    clip_domain: ClipDomain = "coefficients"
    reading: WaveletReading = "algorithm_1"

    def __post_init__(self) -> None:
        require_choices(self, clip_domain=ClipDomain, reading=WaveletReading)

    @override
    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        if self.clip_domain == "gradient":
            return gradients.squared_norms()
        products = gradients.products()
        if products is not None:
            return haar_squared_norms_of_products(products, self.clip_domain)[..., None]
        norms = [haar_squared_norms(part, self.clip_domain) for _, part in gradients.formed()]
        return torch.cat(norms, dim=1)[..., None]

    @override
    def draw(self, total: Tensor, noise_std: Tensor, step: Step) -> None:
        # Noise with coefficients N(0, (σ_i/W)²) before it is cut to d
        clients, dimension = total.shape
        needed = coefficients_needed(dimension)
        drawn = _DRAWN_BYTES if total.device.type == "cpu" else _DRAWN_BYTES_ON_DEVICE
        at_once = max(1, drawn // (total.element_size() * padded_length(dimension)))
        for first in range(0, clients, at_once):
            rows = slice(first, first + at_once)
            whose = step.clients[rows]
            coefficients = total.new_zeros(len(whose), needed)
            add_normal(coefficients, noise_std[rows], step.streams, PURPOSE, step.round_index, whose, step.step)
            add_inverse_haar(total[rows], coefficients)

    @override
    def law(self, dimension: int) -> NoiseLaw:
        return HaarNoise(padded_length(dimension), self.clip_domain, self.reading)
