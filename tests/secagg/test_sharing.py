"""Shamir's scheme: any t shares give the secret, fewer give nothing."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.secagg import PrimeField, SeededBytes, reconstruct, split
from wirelessfl.secagg.sharing import LIMBS, reconstruct_elements, share_elements, share_points


def points_of(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return share_points(np.arange(count, dtype=np.uint32))


View = tuple[int, ...]


def enumerated_sharings(field: PrimeField, secrets: View, holders: int, threshold: int) -> list[list[View]]:
    """The shares (holders, secrets) under every possible choice of all coefficients, each choice once."""
    sharings = []
    for coefficients in itertools.product(range(field.prime), repeat=(threshold - 1) * len(secrets)):
        chosen = b"".join(word.to_bytes(4, "little") for word in coefficients)

        def source(count: int, chosen: bytes = chosen) -> bytes:
            assert count == len(chosen)
            return chosen

        shares = share_elements(field, np.array(secrets, dtype=np.uint64), points_of(holders), threshold, source)
        sharings.append([tuple(row) for row in shares.tolist()])
    return sharings


def views(sharings: list[list[View]], seen: tuple[int, ...]) -> Counter[tuple[View, ...]]:
    """How often these holders together see what."""
    return Counter(tuple(shares[i] for i in seen) for shares in sharings)


@pytest.mark.parametrize(
    ("prime", "holders", "threshold", "num_secrets"),
    [(5, 4, 2, 1), (5, 4, 3, 1), (7, 5, 3, 1), (5, 4, 4, 1), (5, 3, 2, 2), (3, 2, 2, 3)],
)
def test_fewer_than_t_shares_are_independent_of_the_secrets(
    prime: int, holders: int, threshold: int, num_secrets: int
) -> None:
    """Every view of t - 1 holders is equally likely under every tuple of secrets; t holders tell all tuples apart."""
    field = PrimeField(prime)
    sharings = [
        enumerated_sharings(field, secrets, holders, threshold)
        for secrets in itertools.product(range(prime), repeat=num_secrets)
    ]
    for seen in itertools.combinations(range(holders), threshold - 1):
        found = [views(under_one, seen) for under_one in sharings]
        assert all(view == found[0] for view in found)
        assert len(found[0]) == prime ** ((threshold - 1) * num_secrets)  # and uniform: every view once
    for seen in itertools.combinations(range(holders), threshold):
        found = [views(under_one, seen) for under_one in sharings]
        assert all(not (one & other) for one, other in itertools.combinations(found, 2))


def test_any_t_shares_reconstruct_in_a_small_field() -> None:
    field = PrimeField(7)
    for secret in range(7):
        for shares in enumerated_sharings(field, (secret,), holders=5, threshold=3):
            for seen in itertools.combinations(range(5), 3):
                values = np.array([[shares[i] for i in seen]], dtype=np.uint64)
                assert reconstruct_elements(field, points_of(5)[list(seen)][None], values) == secret


@given(st.binary(min_size=64, max_size=64), st.integers(1, 40), st.integers(0, 2**32), st.data())
def test_any_t_of_n_shares_reconstruct_32_bytes(raw: bytes, holders: int, seed: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, holders))
    seen = data.draw(st.permutations(range(holders)))[:threshold]
    secrets = np.frombuffer(raw, dtype=np.uint8).reshape(2, 32)
    shares = split(secrets, points_of(holders), threshold, SeededBytes(seed))
    assert shares.shape == (holders, 2, LIMBS)
    points = np.broadcast_to(points_of(holders)[seen], (2, threshold))
    assert np.array_equal(reconstruct(points, shares[seen].transpose(1, 0, 2)), secrets)


def test_owners_with_different_holders_are_reconstructed_together() -> None:
    secrets = np.frombuffer(SeededBytes(3)(96), dtype=np.uint8).reshape(3, 32)
    shares = split(secrets, points_of(6), 3, SeededBytes(4))
    seen = np.array([[0, 2, 5], [1, 3, 4], [0, 2, 5]])
    values = np.stack([shares[seen[owner], owner] for owner in range(3)])
    assert np.array_equal(reconstruct(points_of(6)[seen], values), secrets)


def test_extreme_secrets_survive() -> None:
    secrets = np.array([[0] * 32, [255] * 32], dtype=np.uint8)
    shares = split(secrets, points_of(3), 2, SeededBytes(5))
    points = np.broadcast_to(points_of(3)[:2], (2, 2))
    assert np.array_equal(reconstruct(points, shares[:2].transpose(1, 0, 2)), secrets)


def test_shares_of_no_32_byte_secret_are_refused() -> None:
    secrets = np.zeros((1, 32), dtype=np.uint8)
    shares = split(secrets, points_of(3), 2, SeededBytes(6))[:2].transpose(1, 0, 2).copy()
    shares[0, 0, LIMBS - 1] ^= 2**20  # times the weight 2 or -2 of point 1: outside the 16 bits of the last limb
    with pytest.raises(ValueError, match="altered"):
        reconstruct(points_of(3)[None, :2], shares)


@pytest.mark.parametrize("threshold", [0, 4, -1])
def test_a_threshold_that_no_one_can_meet_is_refused(threshold: int) -> None:
    with pytest.raises(ValueError, match="threshold"):
        split(np.zeros((1, 32), dtype=np.uint8), points_of(3), threshold, SeededBytes(7))


@pytest.mark.parametrize("points", [[0, 1, 2], [1, 1, 2], [1, 2, 2**31 - 1]])
def test_unusable_points_are_refused(points: list[int]) -> None:
    with pytest.raises(ValueError, match="points"):
        split(np.zeros((1, 32), dtype=np.uint8), np.array(points, dtype=np.uint64), 2, SeededBytes(8))
