"""Named, counter-based random streams.

Every random number of a run is a function of ``(seed, purpose, round, node)`` and of nothing else: not of
the order of events, not of which other nodes are active, not of batching or threads. A draw for all active
nodes of a round is one vectorised call of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011), with the hash of ``(seed, purpose)`` as key and ``(block, node, round, 0)`` as counter.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

STREAM_VERSION = 2
"""Rises whenever the same scenario and seed give other numbers than before.

Every trace records it. A run goes on, and is verified, under the version that began it alone; golden numbers in the
tests are pinned to it. Traces of wirelessfl before 0.2 do not say which they have.
"""

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10
_WORDS_AT_ONCE = 1 << 15


Key = tuple[int, int] | tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Two words below 2**32: of all rows of a stream, or (P,) in uint64, of as many rows each, one after the other."""


def philox4x32(counter: tuple[NDArray[np.uint64], ...], key: Key) -> list[NDArray[np.uint64]]:
    """Philox4x32-10 of four counter words and two key words, broadcastable, each below 2**32 and held in uint64.

    Returns the four output words, likewise below 2**32, in the broadcast shape.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = (np.asarray(word, dtype=np.uint64) for word in key)
    for _ in range(_ROUNDS):
        product0 = c0 * _MULTIPLIERS[0]
        product1 = c2 * _MULTIPLIERS[1]
        c0 = (product1 >> _HALF) ^ c1 ^ k0
        c2 = (product0 >> _HALF) ^ c3 ^ k1
        c1 = product1 & _LOW
        c3 = product0 & _LOW
        k0 = (k0 + _WEYL[0]) & _LOW
        k1 = (k1 + _WEYL[1]) & _LOW
    return [c0, c1, c2, c3]


@dataclass(frozen=True)
class NodeStream:
    """The draws of one purpose, or of a purpose for each row, in one round, for an array of nodes at once.

    Row ``i`` of every result belongs to ``nodes[i]`` and is the same whatever the other nodes are.
    Two calls with the same arguments return the same numbers: ask once for all you need, or go on in `at_block`.

    Attributes:
        key: of the purpose, or of that of each row.
        round_index: the round; 0 for what is drawn once.
        nodes: (n,) whose draws they are.
        first_block: (n,) or one number, where the rows begin, in blocks of two words: two uniform or one complex
            normal number.
    """

    key: Key
    round_index: int
    nodes: NDArray[np.int64]
    first_block: NDArray[np.int64] | int = 0

    def at_block(self, rows: NDArray[np.int64] | slice, first_block: NDArray[np.int64]) -> NodeStream:
        """The stream of some of the nodes, each from a block of its own on: draws that are counted, not timed."""
        first, second = self.key
        key: Key = self.key
        if not (isinstance(first, int) or isinstance(second, int)):
            each = len(self.nodes) // len(first)
            key = np.repeat(first, each)[rows], np.repeat(second, each)[rows]
        return replace(self, key=key, nodes=self.nodes[rows], first_block=first_block)

    def _parts(self, count: int) -> list[NodeStream]:
        # The stream cut by rows, so that what is computed on the way to ``count`` numbers a row stays in a cache
        rows = max(1, _WORDS_AT_ONCE // max(count, 1))
        if len(self.nodes) <= rows or not isinstance(self.key[0], int):
            return [self]
        pieces = [slice(first, first + rows) for first in range(0, len(self.nodes), rows)]
        begin = np.broadcast_to(np.asarray(self.first_block), self.nodes.shape)
        return [replace(self, nodes=self.nodes[piece], first_block=begin[piece]) for piece in pieces]

    def _words(self, count: int) -> NDArray[np.uint64]:
        # (len(nodes), count) words of 64 random bits
        first, second = (np.asarray(word, dtype=np.uint64).reshape(-1, 1, 1) for word in self.key)
        each = (len(first), -1 if len(first) else 0, 1)
        first_block = np.asarray(self.first_block, dtype=np.uint64)
        blocks = np.arange((count + 1) // 2, dtype=np.uint64)
        nodes = self.nodes.astype(np.uint64).reshape(each)
        round_index = np.array(self.round_index, dtype=np.uint64)
        counter: tuple[NDArray[np.uint64], ...] = (
            (first_block.reshape(each) if first_block.ndim else first_block) + blocks,
            nodes & _LOW,
            round_index,
            nodes >> _HALF,
        )
        w0, w1, w2, w3 = philox4x32(counter, (first, second))
        pairs = np.empty((*w0.shape, 2), dtype=np.uint64)
        pairs[..., 0], pairs[..., 1] = (w0 << _HALF) | w1, (w2 << _HALF) | w3
        return pairs.reshape(len(self.nodes), 2 * len(blocks))[:, :count]

    def uniform(self, count: int = 1) -> NDArray[np.float64]:
        """(len(nodes), count) uniform numbers in the open interval (0, 1)."""
        parts = self._parts(count)
        if len(parts) > 1:
            return np.concatenate([part.uniform(count) for part in parts])
        return ((self._words(count) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def normal(self, count: int = 1) -> NDArray[np.float64]:
        """(len(nodes), count) standard normal numbers, by Box and Muller."""
        pairs = self.complex_normal((count + 1) // 2)
        both: NDArray[np.float64] = np.stack([pairs.real, pairs.imag], axis=-1) * np.sqrt(2.0)
        return both.reshape(len(self.nodes), 2 * pairs.shape[1])[:, :count]

    def complex_normal(self, count: int = 1) -> NDArray[np.complex128]:
        """(len(nodes), count) circular CN(0, 1) numbers: variance 1/2 in each real dimension."""
        parts = self._parts(2 * count)
        if len(parts) > 1:
            return np.concatenate([part.complex_normal(count) for part in parts])
        uniform = self.uniform(2 * count)
        radius = np.sqrt(-np.log(uniform[:, 0::2]))
        numbers: NDArray[np.complex128] = radius * np.exp(2j * np.pi * uniform[:, 1::2])
        return numbers

    def exponential(self, count: int = 1) -> NDArray[np.float64]:
        """(len(nodes), count) exponential numbers of mean 1."""
        return -np.log(self.uniform(count))


def _digest(seed: int, purpose: str, size: int) -> bytes:
    return hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=size).digest()


@lru_cache(maxsize=64)
def _keys(seed: int, prefixes: tuple[str, ...], purpose: str) -> NDArray[np.uint64]:
    # (2, P) words of the keys; the hashes of many purposes take longer than a draw
    words = np.frombuffer(b"".join(_digest(seed, prefix + purpose, 8) for prefix in prefixes), dtype="<u4")
    return words.reshape(-1, 2).T.astype(np.uint64)


@dataclass(frozen=True)
class Streams:
    """All randomness of a run, named by purpose, e.g. ``streams.nodes("fading", m, clients)``."""

    seed: int

    def _digest(self, purpose: str, size: int) -> bytes:
        return _digest(self.seed, purpose, size)

    def nodes(self, purpose: str, round_index: int, nodes: NDArray[np.int64]) -> NodeStream:
        """The stream of ``purpose`` in a round for ``nodes`` (below 2**63), one row a node."""
        key = self._digest(purpose, 8)
        return NodeStream((int.from_bytes(key[:4], "little"), int.from_bytes(key[4:], "little")), round_index, nodes)

    def each(self, prefixes: tuple[str, ...], purpose: str, round_index: int, nodes: NDArray[np.int64]) -> NodeStream:
        """The streams of P purposes in a round as one, with the numbers of each alone.

        Args:
            prefixes: (P,) beginnings of the purposes.
            purpose: what follows each of them.
            round_index: the round.
            nodes: (P n,) n nodes of the first purpose, then n of the second, and so on.
        """
        first, second = _keys(self.seed, prefixes, purpose)
        return NodeStream((first, second), round_index, nodes)

    def generator(self, purpose: str, round_index: int = 0, node: int = 0) -> np.random.Generator:
        """A NumPy generator for long draws of one node, such as the receiver noise of a round."""
        key = int.from_bytes(self._digest(purpose, 16), "little")
        return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, node, round_index]))

    def torch_seed(self, purpose: str, round_index: int = 0, node: int = 0) -> int:
        """A 63-bit seed for a torch generator on any device."""
        digest = self._digest(f"{purpose}/{round_index}/{node}", 8)
        return int.from_bytes(digest, "little") >> 1
