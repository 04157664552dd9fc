"""Key agreement: X25519 (RFC 7748) and HKDF-SHA256 (RFC 5869)."""

import hashlib
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wirelessfl.secagg.refusals import MalformedMessage

KEY_BYTES = 32


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
    return HKDF(SHA256(), KEY_BYTES, None, context).derive(_exchange(own, peer_public))


def check_order(public: bytes) -> None:
    """Refusal of a public key of small order before others try to agree with it.

    Scalars of X25519 are multiples of 8 (RFC 7748, §5), so that the product with a point of small order is zero for
    every scalar, and one key pair tells for all.

    Raises:
        MalformedMessage: the key has small order.
    """
    _exchange(_PROBE, public)


def _exchange(own: KeyPair, peer_public: bytes) -> bytes:
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


def link_key(own: KeyPair, peer_public: bytes, client: int) -> bytes:
    """The key with which the server and one client authenticate their messages, agreed once at enrolment."""
    return agree(own, peer_public, b"wirelessfl link" + struct.pack("<I", client))


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
