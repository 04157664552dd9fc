"""Key agreement by X25519 (RFC 7748) and HKDF-SHA256 (RFC 5869), encryption of shares, masks, and random bytes.

Shares travel between two clients through the server, encrypted with AES-256-GCM (NIST SP 800-38D). Masks are ChaCha20
key streams (RFC 8439) read as ring elements, added to a vector without ever being stored whole.
"""

import hashlib
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from wirelessfl.secagg.encoding import Ring, RingVector
from wirelessfl.secagg.protocol import AlteredMessage, MalformedMessage

KEY_BYTES = 32
# A block of the key stream stays in the second-level cache between being written and being added.
_BLOCK_BYTES = 1 << 17
_ZERO_NONCE = bytes(16)


@dataclass(frozen=True)
class KeyPair:
    """An X25519 key pair; ``secret`` is the 32-byte string that secret sharing works on."""

    secret: bytes
    private: X25519PrivateKey
    public: bytes

    @classmethod
    def of(cls, secret: bytes) -> Self:
        """The key pair that belongs to a 32-byte secret."""
        private = X25519PrivateKey.from_private_bytes(secret)
        return cls(secret, private, private.public_key().public_bytes_raw())


_PROBE = KeyPair.of(bytes(KEY_BYTES))


def agree(own: KeyPair, peer_public: bytes, context: bytes) -> bytes:
    """The 32-byte key that both ends derive for one purpose, named by ``context``.

    Raises:
        MalformedMessage: the peer's public key has small order, so that the result would be known to everyone.
    """
    return HKDF(SHA256(), KEY_BYTES, None, context).derive(_shared_secret(own, peer_public))


def check_order(public: bytes) -> None:
    """Refusal of a public key of small order before others try to agree with it.

    Scalars of X25519 are multiples of 8 (RFC 7748, §5), so that the product with a point of small order is zero for
    every scalar, and one key pair tells for all.

    Raises:
        MalformedMessage: the key has small order.
    """
    _shared_secret(_PROBE, public)


def _shared_secret(own: KeyPair, peer_public: bytes) -> bytes:
    try:
        return own.private.exchange(_public_key(peer_public))
    except ValueError as error:
        raise MalformedMessage("a peer's public key is not a valid X25519 key") from error


@lru_cache(maxsize=8192)  # in a simulation, one process meets every key once for each neighbour of its owner
def _public_key(public: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(public)


def pair_context(purpose: bytes, session: bytes, client: int, peer: int) -> bytes:
    """The context of a key between two clients: the same at both ends, different in every session."""
    return purpose + session + struct.pack("<II", min(client, peer), max(client, peer))


def seal(key: bytes, session: bytes, sender: int, receiver: int, plaintext: bytes) -> bytes:
    """Ciphertext of a share; session, sender and receiver are authenticated with it.

    The pair's key is used once in each direction, so that the two ends make a nonce that never repeats.
    """
    ends = struct.pack("<II", sender, receiver)
    return AESGCM(key).encrypt(ends + b"\0\0\0\0", plaintext, session + ends)


def unseal(key: bytes, session: bytes, sender: int, receiver: int, ciphertext: NDArray[np.uint8]) -> bytes:
    """Share of a ciphertext.

    Raises:
        AlteredMessage: it was altered, or is not what this sender sealed for this receiver in this session.
    """
    ends = struct.pack("<II", sender, receiver)
    try:
        return AESGCM(key).decrypt(ends + b"\0\0\0\0", ciphertext.tobytes(), session + ends)
    except InvalidTag as error:
        raise AlteredMessage(f"the share of {sender} for {receiver} does not verify") from error


class MaskStream:
    """Mask G(key, nonce) ∈ ring^dimension, added or subtracted block by block through one small buffer.

    G is the ChaCha20 key stream (RFC 8439), one word of the ring per element.
    """

    def __init__(self, ring: Ring, dimension: int) -> None:
        self._buffer = bytearray(min(dimension * ring.dtype.itemsize, _BLOCK_BYTES))
        self._zeros = memoryview(bytes(self._buffer))
        self._words = np.frombuffer(self._buffer, dtype=ring.dtype)

    def add_pairwise(self, vector: RingVector, client: int, peer: int, key: bytes, nonce: bytes = _ZERO_NONCE) -> None:
        """Addition of the mask towards a peer: plus for the smaller number, minus for the larger; a pair cancels."""
        self.add(vector, key, nonce, negative=client > peer)

    def add(self, vector: RingVector, key: bytes, nonce: bytes = _ZERO_NONCE, negative: bool = False) -> None:
        """Addition or subtraction of the mask of a 32-byte key (and 16-byte nonce), in place."""
        operation = np.subtract if negative else np.add
        encryptor = Cipher(ChaCha20(key, nonce), mode=None).encryptor()
        for start in range(0, len(vector), len(self._words)):
            part = vector[start : start + len(self._words)]
            encryptor.update_into(self._zeros[: part.nbytes], self._buffer)
            operation(part, self._words[: len(part)], out=part)


class SeededBytes:
    """A reproducible source of random bytes, for simulation only: who knows the seed knows every key.

    The ChaCha20 key stream under the hash of ``seed`` and the names, e.g. ``SeededBytes(seed, "client", round, i)``.
    A deployment would hand in ``os.urandom`` instead.
    """

    def __init__(self, seed: int, *names: str | int) -> None:
        key = hashlib.blake2b(repr((seed, *names)).encode(), digest_size=32).digest()
        self._stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()

    def __call__(self, count: int) -> bytes:
        """The next ``count`` bytes of the stream."""
        return self._stream.update(bytes(count))
