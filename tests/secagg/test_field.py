"""Field arithmetic against Python's integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics import assert_counts
from wirelessfl.secagg import PrimeField, SeededBytes
from wirelessfl.secagg.sharing import MERSENNE_31, Elements

P = MERSENNE_31.prime
elements = st.integers(0, P - 1)


def as_elements(values: list[int] | list[list[int]]) -> Elements:
    return np.array(values, dtype=np.uint64)


@pytest.mark.parametrize("element", [P - 1, P - 2, P // 2])
@pytest.mark.parametrize("terms", [1, 63, 64, 65, 700])
def test_matmul_is_exact_for_large_elements(terms: int, element: int) -> None:
    left = np.full((2, terms), element, dtype=np.uint64)
    assert np.all(MERSENNE_31.matmul(left, left.T) == element**2 * terms % P)


@given(st.integers(1, 5), st.integers(1, 130), st.integers(1, 4), st.integers(0, 2**32))
def test_matmul_agrees_with_integers(rows: int, terms: int, columns: int, seed: int) -> None:
    source = SeededBytes(seed)
    left, right = MERSENNE_31.random((rows, terms), source), MERSENNE_31.random((terms, columns), source)
    expected = [
        [sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) % P for column in right.T] for row in left
    ]
    assert MERSENNE_31.matmul(left, right).tolist() == expected


@given(st.lists(elements, min_size=1, max_size=20), st.integers(1, 40))
def test_powers_and_inverses_agree_with_integers(points: list[int], count: int) -> None:
    assert MERSENNE_31.powers(as_elements(points), count).tolist() == [
        [pow(x, k, P) for k in range(count)] for x in points
    ]
    assert MERSENNE_31.inverse(as_elements(points)).tolist() == [pow(x, P - 2, P) for x in points]


@given(st.lists(st.integers(1, P - 1), min_size=1, max_size=12, unique=True), st.integers(0, 2**32))
def test_lagrange_weights_give_a_polynomial_its_value_at_zero(points: list[int], seed: int) -> None:
    coefficients = [int(c) for c in MERSENNE_31.random((len(points),), SeededBytes(seed))]
    values = [sum(c * pow(x, k, P) for k, c in enumerate(coefficients)) % P for x in points]
    (weights,) = MERSENNE_31.lagrange_at_zero(as_elements([points]))
    assert sum(int(w) * y for w, y in zip(weights, values, strict=True)) % P == coefficients[0]


def test_every_inverse_in_a_small_field() -> None:
    field = PrimeField(13)
    units = as_elements(list(range(1, 13)))
    assert np.all(units * field.inverse(units) % np.uint64(13) == 1)
    assert field.inverse(as_elements([0])) == 0


def test_random_elements_are_uniform() -> None:
    # 5 is the prime for which rejection matters most: 3 of 8 words are thrown away.
    drawn = PrimeField(5).random((50_000,), SeededBytes(1))
    assert_counts(np.bincount(drawn.astype(int), minlength=5), np.full(5, 0.2))


def test_random_elements_reject_the_prime_itself() -> None:
    words = itertools.chain([P, 2**32 - 1, 7], itertools.repeat(8))  # both first words are P under 31 bits
    source = lambda count: b"".join(next(words).to_bytes(4, "little") for _ in range(count // 4))  # noqa: E731
    assert MERSENNE_31.random((2,), source).tolist() == [7, 8]


@pytest.mark.parametrize("prime", [1, 0, -7, 2**31 + 11])
def test_a_prime_beyond_31_bits_or_below_2_is_refused(prime: int) -> None:
    with pytest.raises(ValueError, match="prime"):
        PrimeField(prime)
