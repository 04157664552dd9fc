"""The same numbers on a GPU in one launch: ChaCha20, Box-Muller and the addition as a Triton kernel.

Triton comes with torch's CUDA wheels. Without it this module can be imported all the same, and ``THERE`` says so;
nothing else of the package imports Triton, and nothing imports this module before noise is drawn on a CUDA device.
"""

# The kernel is Triton's language and no Python that could be typed.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

THERE = triton is not None
"""Whether Triton is installed."""

_BLOCKS = 128  # ChaCha20 blocks of a program: one a thread, eight tiles of kernel.c


def _jit(function: Callable[..., Any]) -> Any:
    return triton.jit(function) if THERE else function


def _jit_once(function: Callable[..., Any]) -> Any:
    # For numbers of any kind; by default Triton compiles anew where one is 1, and where 16 divides one.
    numbers = ["stride", "columns", "programs", "step"]
    return triton.jit(function, do_not_specialize=numbers) if THERE else function


def add_fused(out: Tensor, std: Tensor, head: Tensor, members: Tensor, step: int) -> None:
    """Addition of std_i times the normals of row i's stream to row i, in place, in one launch and no further memory.

    Every float operation rounds by itself, as in ``kernel.c``: products and sums are not contracted, and the square
    root is rounded to nearest. A row whose std is 0 is not touched.

    Args:
        out: (k, d) float32 or float64.
        std: (k,) in the dtype of ``out``.
        head: (12,) int32, the words of constants and key in ChaCha20's first state.
        members: (k, 2) int32, the two words of each client.
        step: Local step.
    """
    rows, columns = out.shape
    programs = -(-columns // (16 * _BLOCKS))
    if not rows * programs:
        return
    with torch.cuda.device_of(out):
        _add_normals[(rows * programs,)](
            out,
            out.stride(0),
            out.stride(1),
            columns,
            programs,
            std.contiguous(),
            head,
            members,
            step,
            BLOCKS=_BLOCKS,
            enable_fp_fusion=False,
        )


@_jit
def _rotated(x, by):
    return (x << by) | (x >> (32 - by))


@_jit
def _quarter_round(a, b, c, d):
    a += b
    d = _rotated(d ^ a, 16)
    c += d
    b = _rotated(b ^ c, 12)
    a += b
    d = _rotated(d ^ a, 8)
    c += d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


@_jit
def _logarithm(u):
    # Of ``portable.logarithm``, whose coefficients these are.
    bits = u.to(tl.uint32, bitcast=True)
    exponent = (bits - 0x3F3504F3).to(tl.int32, bitcast=True) >> 23
    x = (bits - (exponent.to(tl.uint32, bitcast=True) << 23)).to(tl.float32, bitcast=True) - 1.0
    p = ((((x * 7.0376836292e-2 - 1.1514610310e-1) * x + 1.1676998740e-1) * x - 1.2420140846e-1) * x) + 1.4249322787e-1
    p = (((p * x - 1.6668057665e-1) * x + 2.0000714765e-1) * x - 2.4999993993e-1) * x + 3.3333331174e-1
    z = x * x
    return x - 0.5 * z + x * z * p + exponent.to(tl.float32) * 0.6931471805599453


@_jit
def _box_muller(radius_word, angle_word):
    # Of a word of either kind R cos φ and R sin φ, see ``portable.standard_normals``.
    u = ((radius_word >> 1).to(tl.int32, bitcast=True).to(tl.float32) + 0.5) * 4.656612873077393e-10
    radius = tl.sqrt_rn(-2.0 * _logarithm(u))
    quarter = (angle_word + 0x20000000) >> 30
    t = (angle_word - (quarter << 30)).to(tl.int32, bitcast=True).to(tl.float32) * 1.4629180792671596e-9
    z = t * t
    s = ((z * -1.9515295891e-4 + 8.3321608736e-3) * z - 1.6666654611e-1) * z * t + t
    c = ((z * 2.443315711809948e-5 - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0
    odd = (quarter & 1) != 0
    cosine, sine = tl.where(odd, s, c), tl.where(odd, c, s)
    cosine = tl.where(((quarter + 1) & 2) != 0, -cosine, cosine)
    sine = tl.where((quarter & 2) != 0, -sine, sine)
    return radius * cosine, radius * sine


@_jit
def _add_pair(row, stride, place, columns, std, radius_word, angle_word):
    # Adds std times the two normals of a pair of words at ``place`` and half a tile of 256 behind it.
    cosine, sine = _box_muller(radius_word, angle_word)
    here, there = row + place * stride, row + (place + 128) * stride
    before = tl.load(here, mask=place < columns)
    tl.store(here, before + std * cosine.to(before.dtype), mask=place < columns)
    before = tl.load(there, mask=place + 128 < columns)
    tl.store(there, before + std * sine.to(before.dtype), mask=place + 128 < columns)


@_jit
def _word(address, zeros):
    return zeros + tl.load(address).to(tl.uint32, bitcast=True)


@_jit
def _four_words(address, zeros):
    return _word(address, zeros), _word(address + 1, zeros), _word(address + 2, zeros), _word(address + 3, zeros)


@_jit_once
def _add_normals(out, stride, stride_1, columns, programs, std, head, members, step, BLOCKS: tl.constexpr):
    # Adds to one row the normals of BLOCKS blocks of its stream, side by side.
    row = (tl.program_id(0) // programs).to(tl.int64)
    scale = tl.load(std + row)
    if scale != 0.0:
        block = (tl.program_id(0) % programs).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
        counter, zeros = block.to(tl.uint32), (block * 0).to(tl.uint32)
        client, more = _word(members + 2 * row, zeros), _word(members + 2 * row + 1, zeros)
        now = zeros + step.to(tl.uint32)
        c0, c1, c2, c3 = _four_words(head, zeros)
        k0, k1, k2, k3 = _four_words(head + 4, zeros)
        k4, k5, k6, k7 = _four_words(head + 8, zeros)
        x0, x1, x2, x3, x4, x5, x6, x7 = c0, c1, c2, c3, k0, k1, k2, k3
        x8, x9, x10, x11, x12, x13, x14, x15 = k4, k5, k6, k7, counter, client, more, now
        for _ in range(10):
            x0, x4, x8, x12 = _quarter_round(x0, x4, x8, x12)
            x1, x5, x9, x13 = _quarter_round(x1, x5, x9, x13)
            x2, x6, x10, x14 = _quarter_round(x2, x6, x10, x14)
            x3, x7, x11, x15 = _quarter_round(x3, x7, x11, x15)
            x0, x5, x10, x15 = _quarter_round(x0, x5, x10, x15)
            x1, x6, x11, x12 = _quarter_round(x1, x6, x11, x12)
            x2, x7, x8, x13 = _quarter_round(x2, x7, x8, x13)
            x3, x4, x9, x14 = _quarter_round(x3, x4, x9, x14)
        here, place = out + row * stride, (block >> 4) * 256 + (block & 15)  # of word w: 16 w further
        _add_pair(here, stride_1, place, columns, scale, x0 + c0, x8 + k4)
        _add_pair(here, stride_1, place + 16, columns, scale, x1 + c1, x9 + k5)
        _add_pair(here, stride_1, place + 32, columns, scale, x2 + c2, x10 + k6)
        _add_pair(here, stride_1, place + 48, columns, scale, x3 + c3, x11 + k7)
        _add_pair(here, stride_1, place + 64, columns, scale, x4 + k0, x12 + counter)
        _add_pair(here, stride_1, place + 80, columns, scale, x5 + k1, x13 + client)
        _add_pair(here, stride_1, place + 96, columns, scale, x6 + k2, x14 + more)
        _add_pair(here, stride_1, place + 112, columns, scale, x7 + k3, x15 + now)
