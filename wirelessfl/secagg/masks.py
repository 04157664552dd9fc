"""Masks: ChaCha20 key streams read as ring elements, added to a vector without ever being stored whole."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from wirelessfl.errors import precondition

# Elements of the ring: little-endian words of 32 or 64 bits, the upper bits beyond the ring's own being free.
RingVector = NDArray[Any]

# A block of the key stream stays in the second-level cache between being written and being added.
_BLOCK_BYTES = 1 << 17
_ZERO_NONCE = bytes(16)


@dataclass(frozen=True)
class Ring:
    """The integers modulo 2**bits, 1 ≤ bits ≤ 64.

    Sums are taken in the machine word (32 or 64 bits), whose wrap-around respects every smaller power of two;
    ``reduce`` drops the upper bits once, at the end.
    """

    bits: int

    def __post_init__(self) -> None:
        precondition(1 <= self.bits <= 64, f"the ring must have 1 to 64 bits, not {self.bits}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned word that holds an element."""
        return np.dtype("<u4" if self.bits <= 32 else "<u8")

    @property
    def largest(self) -> int:
        """The largest element, 2**bits - 1."""
        return (1 << self.bits) - 1

    def zeros(self, dimension: int) -> RingVector:
        """A zero vector of the ring's word."""
        return np.zeros(dimension, dtype=self.dtype)

    def reduce(self, words: RingVector) -> None:
        """Reduction of words modulo 2**bits, in place."""
        np.bitwise_and(words, self.dtype.type(self.largest), out=words)

    def check(self, vector: RingVector, dimension: int) -> None:
        """Refusal of anything but ``dimension`` elements of this ring.

        Raises:
            ValueError: wrong shape, wrong word, or elements beyond the ring.
        """
        precondition(
            vector.shape == (dimension,) and vector.dtype == self.dtype,
            f"expected {dimension} words {self.dtype}, found {vector.dtype} of shape {vector.shape}",
        )
        precondition(int(vector.max()) <= self.largest, f"an element does not fit the ring of {self.bits} bits")

    def signed(self, elements: RingVector) -> NDArray[np.int64]:
        """The representative of each element in [-2**(bits-1), 2**(bits-1))."""
        shift = 64 - self.bits
        return (elements.astype(np.uint64) << np.uint64(shift)).view(np.int64) >> np.int64(shift)


class MaskStream:
    """Mask G(key, nonce) ∈ ring^dimension, added or subtracted block by block through one small buffer.

    G is the ChaCha20 key stream (RFC 8439), one word of the ring per element.
    """

    def __init__(self, ring: Ring, dimension: int) -> None:
        self._block = min(dimension * ring.dtype.itemsize, _BLOCK_BYTES)
        self._words_per_block = _BLOCK_BYTES // ring.dtype.itemsize
        self._zeros = memoryview(bytes(self._block))
        self._buffer = bytearray(self._block)
        self._words = np.frombuffer(self._buffer, dtype=ring.dtype)

    def add_pairwise(self, vector: RingVector, client: int, peer: int, key: bytes, nonce: bytes = _ZERO_NONCE) -> None:
        """Addition of the mask towards a peer: plus for the smaller number, minus for the larger; a pair cancels."""
        self.add(vector, key, nonce, negative=client > peer)

    def add(self, vector: RingVector, key: bytes, nonce: bytes = _ZERO_NONCE, negative: bool = False) -> None:
        """Addition or subtraction of the mask of a 32-byte key (and 16-byte nonce), in place."""
        operation = np.subtract if negative else np.add
        encryptor = Cipher(ChaCha20(key, nonce), mode=None).encryptor()
        for start in range(0, len(vector), self._words_per_block):
            part = vector[start : start + self._words_per_block]
            encryptor.update_into(self._zeros[: part.nbytes], self._buffer)
            operation(part, self._words[: len(part)], out=part)
