"""The same numbers by torch operations on integers: on a GPU without Triton, and on torch's ``meta`` device.

torch has shifts and sums of int32 on every device and of uint32 on few; int32 wraps around alike, and a rotation masks
the copies of the sign that a shift to the right draws in. Every operation is a launch of its own: some seven hundred
for each piece of the block, however many clients are in it. Nothing here asks the device for a number.
"""

import torch
from torch import Tensor

from wirelessfl.normals.portable import COSINE, LN_2, LOGARITHM, RADIANS, ROOT_HALF, SINE

NUMBERS = 2**22
"""Normal numbers of a piece, at most; all that is alive while one is drawn takes about 25 bytes a number."""

_BLOCKS, _TILE = 16, 256


def add_by_operations(out: Tensor, std: Tensor, head: Tensor, members: Tensor, step: int) -> None:
    """Addition of std_i times the normals of row i's stream to row i of ``out``, in place, in pieces of bounded size.

    Args:
        out: (k, d).
        std: (k,) in the dtype of ``out``.
        head: (12,) int32, the words of constants and key in ChaCha20's first state.
        members: (k, 2) int32, the two words of each client.
        step: Local step.
    """
    clients, dimension = out.shape
    tiles = -(-dimension // _TILE)
    tiles_at_once = max(1, min(tiles, NUMBERS // _TILE))
    rows_at_once = max(1, NUMBERS // (tiles_at_once * _TILE))
    for first_row in range(0, clients, rows_at_once):
        rows = slice(first_row, first_row + rows_at_once)
        for first in range(0, tiles, tiles_at_once):
            count = min(tiles_at_once, tiles - first)
            part = out[rows, first * _TILE : (first + count) * _TILE]
            normals = standard_normals(head, members[rows], step, first, count)[:, : part.shape[1]]
            part.add_(normals.to(out.dtype) * std[rows, None])


def standard_normals(head: Tensor, members: Tensor, step: int, first_tile: int, tiles: int) -> Tensor:
    """(k, 256 · tiles) float32 normals of each row's stream from a tile on, see ``portable.standard_normals``."""
    words = key_stream(head, members, step, first_tile * _BLOCKS, tiles * _BLOCKS)
    radius = radii(words[:8])
    cosine, sine = cosine_and_sine(words[8:])
    pairs = torch.stack([radius.mul(cosine), radius.mul_(sine)])  # (2, 8, k, blocks)
    return pairs.view(2, 8, len(members), tiles, _BLOCKS).permute(2, 3, 0, 1, 4).reshape(len(members), tiles * _TILE)


def key_stream(head: Tensor, members: Tensor, step: int, first_block: int, blocks: int) -> Tensor:
    """(16, k, blocks) int32, the words of ChaCha20 blocks of each row's stream (RFC 8439).

    Args:
        head: (12,) int32.
        members: (k, 2) int32.
        step: Third word of the nonce.
        first_block: Counter of the first block, below 2³².
        blocks: How many.
    """
    shape = (4, len(members), blocks)
    counter = torch.arange(blocks, dtype=torch.int32, device=head.device) + _wrapped(first_block)
    nonce = members.t()[:, :, None].expand(2, *shape[1:])
    last = torch.cat([counter.expand(1, *shape[1:]), nonce, head.new_full((1, *shape[1:]), _wrapped(step))])
    rows = [head[first : first + 4, None, None].expand(shape) for first in (0, 4, 8)]
    a, b, c, d = (row.clone(memory_format=torch.contiguous_format) for row in (*rows, last))
    for _ in range(10):
        _quarter_rounds(a, b, c, d)
        b, c, d = b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0)
        _quarter_rounds(a, b, c, d)
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    return torch.cat([row.add_(first) for row, first in zip((a, b, c, d), (*rows, last), strict=True)])


def _quarter_rounds(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> None:
    # ChaCha20's quarter round on the four columns of every state, in place.
    for total, term, mixed, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        mixed.bitwise_xor_(total.add_(term))
        lowest = mixed.bitwise_right_shift(32 - by).bitwise_and_((1 << by) - 1)
        mixed.bitwise_left_shift_(by).bitwise_or_(lowest)


def _wrapped(word: int) -> int:
    # The int32 with the bits of a word below 2³².
    return word - 2**32 if word >= 2**31 else word


def radii(words: Tensor) -> Tensor:
    """√(−2 ln u) of words, as ``portable.radii`` gives it.

    On a CPU torch's square root of a float32 may be off by one rounding; by way of float64 it is exact everywhere.
    """
    highest = words.bitwise_right_shift(1).bitwise_and_(2**31 - 1)
    return logarithm(highest.float().add_(0.5).mul_(2.0**-31)).mul_(-2.0).double().sqrt_().float()


def logarithm(u: Tensor) -> Tensor:
    """Natural logarithm of 0 < u ≤ 1, as ``portable.logarithm`` gives it."""
    bits = u.view(torch.int32)
    exponent = (bits - int(ROOT_HALF)).bitwise_right_shift_(23)
    x = bits.sub_(exponent.bitwise_left_shift(23)).view(torch.float32) - 1.0
    z = x * x
    third = _polynomial(LOGARITHM, x).mul_(x * z)
    return x.sub_(z.mul_(0.5)).add_(third).add_(exponent.float().mul_(float(LN_2)))


def cosine_and_sine(words: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of 2π w / 2³², as ``portable.cosine_and_sine`` gives them."""
    quarter = (words + 2**29).bitwise_right_shift_(30).bitwise_and_(3)
    t = (words - quarter.bitwise_left_shift(30)).float().mul_(float(RADIANS))
    z = t * t
    sine = _polynomial(SINE, z).mul_(z).mul_(t).add_(t)
    cosine = _polynomial(COSINE, z).mul_(z).mul_(z).sub_(z.mul_(0.5)).add_(1.0)
    odd = quarter.bitwise_and(1) != 0
    of_cosine, of_sine = sine.where(odd, cosine), cosine.where(odd, sine)
    return of_cosine.mul_(_sign(quarter + 1)), of_sine.mul_(_sign(quarter))


def _sign(quarter: Tensor) -> Tensor:
    # −1 where the second bit is set, else 1.
    return 1 - quarter.bitwise_and_(2)


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    # Horner's rule, highest power first; sums and products are rounded one by one.
    value = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value.mul_(x).add_(coefficient)
    return value
