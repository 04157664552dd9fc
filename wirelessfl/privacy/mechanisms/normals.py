"""Fast normal numbers for noise on whole parameter vectors.

The k · d normals of one local step are most of the cost of private training, so they are drawn in the order of
the memory bandwidth: AES-128 in counter mode gives the random bits (instructions for it are in every processor,
and its stream cannot be told from a random one), vectorised Box-Muller turns them into normals.
"""

from __future__ import annotations

import math
import threading

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.streams import Streams

_AT_ONCE = 2**20  # numbers per vectorised pass: with fewer, threads wait for the interpreter between passes
_ALIGNED = 32  # so that both halves of a tile begin on a cache line
_KEPT_TILES = 4
_SMALLEST = torch.tensor(2.0**-32)


def add_normal(
    out: Tensor,
    std: Tensor,
    streams: Streams,
    purpose: str,
    round_index: int,
    clients: NDArray[np.int64],
    step: int,
) -> Tensor:
    """Add std_i · N(0, 1), independently, to every element of row i of ``out`` (k, d), and return it.

    The noise of row i is a function of the seed, the purpose, the round, ``clients[i]``, the step and d alone, not
    of the other rows. (torch's CPU generator looks at the lowest 32 bits of a seed: with one seed a row, hundreds
    of thousands of rows are enough for two of them to get the same noise.) On a CUDA device the numbers come from
    torch's generator there, whose seed has 64 bits; they are others than on a CPU.

    Args:
        out: (k, d), changed in place.
        std: (k,).
        streams: The run's random streams.
        purpose: Names the stream.
        round_index: Communication round.
        clients: (k,) whose noise this is.
        step: Local step.
    """
    if out.is_cuda:
        return _add_on_cuda(out, std, streams, f"{purpose}/{step}", round_index, clients)
    dimension = out.shape[1]
    tiles = -(-dimension // _AT_ONCE)
    width = -(-dimension // (tiles * _ALIGNED)) * _ALIGNED
    height = max(1, min(len(out), _AT_ONCE // width))
    key = _key(streams, purpose, round_index)
    scale = std.to(out.dtype)[:, None]
    for top in range(0, len(out), height):
        rows = [_keystream(key, client, step) for client in clients[top : top + height].tolist()]
        tile = _TILES.of(len(rows), width)
        for left in range(0, dimension, width):
            tile.add_to(out[top : top + height, left : left + width], scale[top : top + height], rows)
    return out


def _add_on_cuda(
    out: Tensor, std: Tensor, streams: Streams, purpose: str, round_index: int, clients: NDArray[np.int64]
) -> Tensor:
    noise = torch.empty_like(out[:1]).squeeze(0)
    generator = torch.Generator(out.device)
    for row, scale, client in zip(out, std, clients.tolist(), strict=True):
        generator.manual_seed(streams.torch_seed(purpose, round_index, client))
        row.addcmul_(noise.normal_(generator=generator), scale)
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

    def add_to(self, out: Tensor, scale: Tensor, rows: list[CipherContext]) -> None:
        """Add normals, ``scale`` (rows, 1) times, to ``out`` (rows, at most width); one stream a row."""
        for stream, words in zip(rows, self._words, strict=True):
            stream.update_into(self._zeros, words)
        radius, cosine, sine = self.box_muller(self._radius_bits, self._angle_bits)
        # In the dtype of out; in place where that is possible, for new memory costs as much as the product.
        radius = radius.mul_(scale) if scale.dtype == radius.dtype else radius * scale
        for half, part in ((out[:, : self._half], cosine), (out[:, self._half :], sine)):
            columns = half.shape[1]
            half.addcmul_(part[:, :columns].to(out.dtype), radius[:, :columns])

    def box_muller(self, radius_bits: Tensor, angle_bits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """R, cos φ and sin φ (rows, half) from words of either kind: R cos φ and R sin φ are independent normals."""
        radius, angle, cosine = self._radius, self._angle, self._cosine
        radius.copy_(radius_bits).abs_()
        torch.add(_SMALLEST, radius, alpha=2.0**-31, out=radius)
        radius.log_().mul_(-2.0).sqrt_()
        angle.copy_(angle_bits).mul_(math.pi * 2.0**-31)
        torch.cos(angle, out=cosine)
        return radius, cosine, angle.sin_()


class _Tiles(threading.local):
    """Of each thread the tiles of its latest shapes: new memory would cost as much as the numbers."""

    def __init__(self) -> None:
        self._latest: dict[tuple[int, int], _Tile] = {}

    def of(self, rows: int, width: int) -> _Tile:
        if (rows, width) not in self._latest:
            if len(self._latest) == _KEPT_TILES:
                self._latest.clear()
            self._latest[rows, width] = _Tile(rows, width)
        return self._latest[rows, width]


_TILES = _Tiles()


def _key(streams: Streams, purpose: str, round_index: int) -> algorithms.AES:
    halves = (streams.torch_seed(purpose, round_index, half) for half in (0, 1))
    return algorithms.AES(b"".join(half.to_bytes(8, "big") for half in halves))


def _keystream(key: algorithms.AES, client: int, step: int) -> CipherContext:
    """The stream of one row: the counter is 8 bytes of client, 4 of step, and 4 that count blocks."""
    counter = client.to_bytes(8, "big") + step.to_bytes(4, "big") + bytes(4)
    return Cipher(key, modes.CTR(counter)).encryptor()
