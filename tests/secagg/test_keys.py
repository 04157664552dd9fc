"""Key agreement and the seeded byte source against published vectors and independent implementations."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from wirelessfl.secagg import KeyPair, MalformedMessage, SeededBytes, agree
from wirelessfl.secagg.keys import pair_context

# RFC 7748, §6.1.
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
SHARED = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")


def hkdf_by_hand(secret: bytes, context: bytes) -> bytes:
    """RFC 5869 for one block of SHA-256 and no salt."""
    extracted = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(extracted, context + b"\x01", hashlib.sha256)


def test_agreement_is_x25519_then_hkdf() -> None:
    alice, bob = KeyPair.of(ALICE), KeyPair.of(BOB)
    assert alice.public == ALICE_PUBLIC
    assert agree(alice, bob.public, b"context") == hkdf_by_hand(SHARED, b"context")


def test_both_ends_agree_and_the_context_separates_keys() -> None:
    one, two = KeyPair.of(SeededBytes(1)(32)), KeyPair.of(SeededBytes(2)(32))
    context = pair_context(b"mask", b"s" * 16, 4, 9)
    assert context == pair_context(b"mask", b"s" * 16, 9, 4)
    assert agree(one, two.public, context) == agree(two, one.public, context)
    others = [
        pair_context(b"share", b"s" * 16, 4, 9),
        pair_context(b"mask", b"t" * 16, 4, 9),
        pair_context(b"mask", b"s" * 16, 4, 8),
        pair_context(b"mask", b"s" * 16, 5, 9),
    ]
    assert len({agree(one, two.public, other) for other in [context, *others]}) == 5


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31), b"short"])
def test_a_key_of_small_order_or_length_is_refused(public: bytes) -> None:
    with pytest.raises(MalformedMessage, match="public key"):
        agree(KeyPair.of(ALICE), public, b"context")


def test_the_seeded_source_is_a_stream_that_depends_on_every_name() -> None:
    whole, parts = SeededBytes(7, "client", 3), SeededBytes(7, "client", 3)
    assert whole(100) == parts(1) + parts(60) + parts(39)
    sources = [SeededBytes(7, "client", 3), SeededBytes(7, "client", 4), SeededBytes(8, "client", 3), SeededBytes(7)]
    assert len({source(32) for source in sources}) == len(sources)
