"""Fast normal numbers for noise on whole parameter vectors.

The k · d normals of one local step are most of the cost of private training, so they are drawn in the order of
the memory bandwidth: AES-128 in counter mode gives the random bits (instructions for it are in every processor,
and its stream cannot be told from a random one), vectorised Box-Muller turns them into normals.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.streams import Streams

_AT_ONCE = 2**16  # numbers per vectorised pass: scratch stays in the cache
_ALIGNED = 32  # so that both halves of a tile begin on a cache line
_SMALLEST = torch.tensor(2.0**-32)


def fill_normal(
    out: Tensor, streams: Streams, purpose: str, round_index: int, clients: NDArray[np.int64], step: int
) -> Tensor:
    """Fill ``out`` (k, d) with standard normals, and return it.

    Row i is a function of the seed, the purpose, the round, ``clients[i]`` and the step alone; not of the other
    rows, and a shorter row is not the beginning of a longer one. On a CUDA device the numbers come from torch's
    generator there, with the same guarantee, and are others than on a CPU.
    """
    if out.is_cuda:
        for row, client in zip(out, clients.tolist(), strict=True):
            seed = streams.torch_seed(f"{purpose}/{step}", round_index, client)
            row.normal_(generator=torch.Generator(out.device).manual_seed(seed))
        return out
    dimension = out.shape[1]
    tiles = -(-dimension // _AT_ONCE)
    width = -(-dimension // (tiles * _ALIGNED)) * _ALIGNED
    height = max(1, min(len(out), _AT_ONCE // width))
    key = _key(streams, purpose, round_index)
    tile = _Tile(height, width)
    for top in range(0, len(out), height):
        rows = [_keystream(key, client, step) for client in clients[top : top + height].tolist()]
        if len(rows) < height:
            tile = _Tile(len(rows), width)
        for left in range(0, dimension, width):
            tile.fill(out[top : top + height, left : left + width], rows)
    return out


class _Tile:
    """Scratch for as many numbers as stay in the cache, and the draw of so many.

    Of a row of random 32-bit words w the first half gives radii √(−2 ln u), u = (|w| + 1/2) / 2³¹ in (0, 1],
    whose spacing is finest near 0, where it matters: normals reach out to 6.7 standard deviations. The second
    half gives angles.
    """

    def __init__(self, rows: int, width: int) -> None:
        self._half = half = width // 2
        bits = torch.empty(rows, 2 * half, dtype=torch.int32)
        self._radius_bits, self._angle_bits = bits[:, :half], bits[:, half:]
        self._radius, self._angle, self._cosine = torch.empty(3, rows, half).unbind()
        self._words = [row.data for row in bits.numpy().view(np.uint8)]
        self._zeros = bytes(8 * half)

    def fill(self, out: Tensor, rows: list[CipherContext]) -> None:
        """Fill ``out`` (rows, at most width) with standard normals, from one stream a row."""
        for stream, words in zip(rows, self._words, strict=True):
            stream.update_into(self._zeros, words)
        self.box_muller(self._radius_bits, self._angle_bits, out)

    def box_muller(self, radius_bits: Tensor, angle_bits: Tensor, out: Tensor) -> None:
        """Normals ``out`` (rows, at most width) from words (rows, half) of either kind."""
        radius, angle, cosine = self._radius, self._angle, self._cosine
        radius.copy_(radius_bits).abs_()
        torch.add(_SMALLEST, radius, alpha=2.0**-31, out=radius)
        radius.log_().mul_(-2.0).sqrt_()
        angle.copy_(angle_bits).mul_(math.pi * 2.0**-31)
        torch.cos(angle, out=cosine)
        angle.sin_()
        for first, direction in ((0, cosine), (self._half, angle)):
            part = out[:, first : first + self._half]
            count = part.shape[1]
            if count == self._half:
                torch.mul(direction, radius, out=part)
            else:
                torch.mul(direction[:, :count], radius[:, :count], out=part)


def _key(streams: Streams, purpose: str, round_index: int) -> algorithms.AES:
    halves = (streams.torch_seed(purpose, round_index, half) for half in (0, 1))
    return algorithms.AES(b"".join(half.to_bytes(8, "big") for half in halves))


def _keystream(key: algorithms.AES, client: int, step: int) -> CipherContext:
    """The stream of one row: the counter is 8 bytes of client, 4 of step, and 4 that count blocks."""
    counter = client.to_bytes(8, "big") + step.to_bytes(4, "big") + bytes(4)
    return Cipher(key, modes.CTR(counter)).encryptor()
