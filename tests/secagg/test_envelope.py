"""Share encryption binds session, sender and receiver, and never repeats a nonce."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wirelessfl.secagg import AlteredMessage
from wirelessfl.secagg.keys import seal, unseal
from wirelessfl.secagg.messages import Octets
from wirelessfl.secagg.sharing import PLAIN_BYTES, SEALED_BYTES, shares_of

KEY, SESSION = bytes(range(32)), bytes(range(16))
PLAIN = bytes(index % 251 for index in range(PLAIN_BYTES))


def octets(ciphertext: bytes) -> Octets:
    return np.frombuffer(ciphertext, dtype=np.uint8)


def test_what_is_sealed_is_opened_by_the_same_ends_only() -> None:
    sealed = seal(KEY, SESSION, 1, 2, PLAIN)
    assert len(sealed) == SEALED_BYTES
    assert unseal(KEY, SESSION, 1, 2, octets(sealed)) == PLAIN
    for key, session, sender, receiver in (
        (KEY[::-1], SESSION, 1, 2),
        (KEY, SESSION[::-1], 1, 2),
        (KEY, SESSION, 2, 1),
        (KEY, SESSION, 3, 2),
        (KEY, SESSION, 1, 3),
    ):
        with pytest.raises(AlteredMessage):
            unseal(key, session, sender, receiver, octets(sealed))


def test_session_and_ends_are_associated_data() -> None:
    """Not only through the nonce: the ciphertext is AES-GCM's of this nonce with exactly this associated data."""
    ends = b"\x01\0\0\0\x02\0\0\0"
    assert AESGCM(KEY).decrypt(ends + bytes(4), seal(KEY, SESSION, 1, 2, PLAIN), SESSION + ends) == PLAIN


def test_every_bit_is_protected() -> None:
    sealed = octets(seal(KEY, SESSION, 1, 2, PLAIN))
    for position in range(SEALED_BYTES):
        altered = sealed.copy()
        altered[position] ^= 1
        with pytest.raises(AlteredMessage):
            unseal(KEY, SESSION, 1, 2, altered)


def test_both_directions_of_a_pair_use_different_key_streams() -> None:
    there, back = seal(KEY, SESSION, 1, 2, PLAIN), seal(KEY, SESSION, 2, 1, PLAIN)
    assert there[:PLAIN_BYTES] != back[:PLAIN_BYTES]


def test_shares_are_little_endian_words() -> None:
    shares = shares_of(PLAIN + PLAIN)
    assert shares.shape == (2, 2, 9)
    assert shares[1, 0, 1] == int.from_bytes(PLAIN[4:8], "little")
