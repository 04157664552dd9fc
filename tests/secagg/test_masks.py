"""Rings and mask expansion."""

from __future__ import annotations

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics import assert_counts
from wirelessfl.secagg import MaskStream, Ring

# RFC 8439, appendix A.1, test vector 1: key, nonce and counter zero.
RFC_KEY_STREAM = bytes.fromhex(
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


def key_stream(key: bytes, nonce: bytes, count: int) -> bytes:
    return Cipher(ChaCha20(key, nonce), mode=None).encryptor().update(bytes(count))


@pytest.mark.parametrize(("bits", "word"), [(32, "<u4"), (64, "<u8")])
def test_masks_are_the_published_key_stream(bits: int, word: str) -> None:
    expected = np.frombuffer(RFC_KEY_STREAM, dtype=word)
    vector = Ring(bits).zeros(len(expected))
    MaskStream(Ring(bits), len(expected)).add(vector, bytes(32))
    assert np.array_equal(vector, expected)


@pytest.mark.parametrize("dimension", [1, 5, 2**15, 2**15 + 1, 100_003])
@pytest.mark.parametrize("bits", [20, 33])
def test_blocks_make_no_difference(dimension: int, bits: int) -> None:
    ring, key, nonce = Ring(bits), bytes(range(32)), bytes(8) + b"nonce..."
    start = np.arange(dimension, dtype=ring.dtype)
    vector = start.copy()
    MaskStream(ring, dimension).add(vector, key, nonce)
    whole = np.frombuffer(key_stream(key, nonce, dimension * ring.dtype.itemsize), dtype=ring.dtype)
    assert np.array_equal(vector, start + whole)


@given(st.integers(1, 64), st.integers(1, 300), st.binary(min_size=32, max_size=32))
def test_masks_cancel(bits: int, dimension: int, key: bytes) -> None:
    ring = Ring(bits)
    vector = np.arange(dimension, dtype=ring.dtype)
    ring.reduce(vector)
    masked, masks = vector.copy(), MaskStream(ring, dimension)
    masks.add(masked, key)
    masks.add_pairwise(masked, 2, 1, key)
    masks.add_pairwise(masked, 1, 2, key)
    masks.add(masked, key, negative=True)
    ring.reduce(masked)
    assert np.array_equal(masked, vector)


@pytest.mark.parametrize("bits", [4, 36])
def test_masks_are_uniform_over_the_ring(bits: int) -> None:
    ring = Ring(bits)
    vector = ring.zeros(64_000)
    MaskStream(ring, len(vector)).add(vector, b"k" * 32)
    ring.reduce(vector)
    top = (vector >> ring.dtype.type(bits - 4)).astype(int)
    assert_counts(np.bincount(top, minlength=16), np.full(16, 1 / 16))


@given(st.integers(1, 64), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_signed_representatives(bits: int, values: list[int]) -> None:
    ring = Ring(bits)
    vector = np.array([value % 2**64 for value in values], dtype=np.uint64).astype(ring.dtype)
    ring.reduce(vector)
    expected = [(value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for value in values]
    assert ring.signed(vector).tolist() == expected


@pytest.mark.parametrize("bits", [0, 65, -3])
def test_a_ring_beyond_the_machine_word_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits"):
        Ring(bits)


def test_vectors_that_do_not_belong_to_the_ring_are_refused() -> None:
    ring = Ring(10)
    ring.check(np.array([0, 1023], dtype=np.uint32), 2)
    for wrong in (
        np.array([0, 1024], dtype=np.uint32),
        np.array([0, 1, 2], dtype=np.uint32),
        np.array([[0, 1]], dtype=np.uint32),
        np.array([0, 1], dtype=np.uint64),
        np.array([0.0, 1.0]),
    ):
        with pytest.raises(ValueError, match=r"fit|expected"):
            ring.check(wrong, 2)
