"""Fixed point: unbiased, exact in the sum, and never overflowing."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.statistics import assert_probability, shifted
from wirelessfl.secagg import FixedPoint, HiddenWeights, bits_for

bounds = st.floats(1e-6, 1e6)
counts = st.integers(1, 2000)


def encodings(bound: float, bits: int, num_clients: int) -> FixedPoint | None:
    try:
        return FixedPoint.finest(bound, bits, num_clients)
    except ValueError:
        return None


@given(bounds, st.integers(2, 64), counts, st.sampled_from([-1.0, 1.0]))
def test_the_sum_of_the_largest_inputs_does_not_wrap(bound: float, bits: int, num_clients: int, sign: float) -> None:
    encoding = encodings(bound, bits, num_clients)
    if encoding is None:
        assert num_clients > 2 ** (bits - 1) - 1  # refused exactly where not even one step fits
        return
    encoded = encoding.encode(np.full(1, sign * bound), np.random.default_rng(0))
    steps = int(encoding.ring.signed(encoded)[0])
    assert abs(steps) <= encoding.largest
    total = np.array([int(encoded[0]) * num_clients % 2**bits], dtype=encoding.ring.dtype)
    assert int(encoding.ring.signed(total)[0]) == num_clients * steps


@given(bounds, st.floats(1e-9, 1e3), counts)
def test_the_smallest_ring_fits_and_one_bit_less_overflows(bound: float, step: float, num_clients: int) -> None:
    largest = ceil(Fraction(bound) / Fraction(step))
    encoding = FixedPoint(bound, step, bits_for(num_clients * largest), num_clients)
    assert num_clients * largest <= 2 ** (encoding.bits - 1) - 1
    assert num_clients * largest > 2 ** (encoding.bits - 2) - 1
    with pytest.raises(ValueError, match=r"overflow|bits"):
        FixedPoint(bound, step, encoding.bits - 1, num_clients)


@given(bounds, st.integers(8, 64), st.integers(1, 100))
def test_the_finest_step_uses_the_ring(bound: float, bits: int, num_clients: int) -> None:
    encoding = encodings(bound, bits, num_clients)
    assert encoding is not None or num_clients > 2 ** (bits - 1) - 1
    if encoding is not None:
        assert encoding.largest == min((2 ** (bits - 1) - 1) // num_clients, 2**53)


@given(
    st.integers(1, 6),
    st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=8),
    st.integers(12, 64),
    st.integers(0, 2**32),
)
def test_each_value_goes_to_a_neighbouring_step_and_the_sum_decodes(
    num_clients: int, values: list[float], bits: int, seed: int
) -> None:
    encoding, generator = FixedPoint.finest(3.0, bits, num_clients), np.random.default_rng(seed)
    total, steps = encoding.ring.zeros(len(values)), np.zeros(len(values), dtype=object)
    for _ in range(num_clients):
        encoded = encoding.encode(np.array(values), generator)
        signed = encoding.ring.signed(encoded).tolist()
        scaled = [value / encoding.step for value in values]
        assert all(floor(x) <= step <= ceil(x) for x, step in zip(scaled, signed, strict=True))
        total, steps = total + encoded, steps + signed
    encoding.ring.reduce(total)
    assert encoding.ring.signed(total).tolist() == steps.tolist()
    assert encoding.decode(total).tolist() == [int(step) * encoding.step for step in steps]


@pytest.mark.parametrize("value", [0.3, -0.3, 2.75, -1.0])
def test_rounding_keeps_the_mean(value: float) -> None:
    encoding, trials = FixedPoint(4.0, 1.0, 20, 1), 100_000
    encoded = encoding.encode(np.full(trials, value), np.random.default_rng(shifted(11)))
    ups = int(np.sum(encoding.ring.signed(encoded) > floor(value)))
    assert_probability(ups, trials, value - floor(value))


def test_float32_updates_are_encoded_without_loss() -> None:
    update = np.array([0.5, -0.25, 1.0], dtype=np.float32)
    encoding = FixedPoint(1.0, 2.0**-8, 16, 4)
    assert encoding.decode(encoding.encode(update, np.random.default_rng(0))).tolist() == update.tolist()


@pytest.mark.parametrize("value", [1.0000001, -1.0000001, np.nan, np.inf])
def test_values_beyond_the_bound_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="coordinate"):
        FixedPoint(1.0, 0.01, 20, 3).encode(np.array([0.0, value]), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("bound", "step", "bits", "num_clients"),
    [
        (0.0, 0.1, 20, 3),
        (-1.0, 0.1, 20, 3),
        (np.inf, 0.1, 20, 3),
        (1.0, 0.0, 20, 3),
        (1.0, np.nan, 20, 3),
        (1.0, 0.1, 20, 0),
        (1.0, 0.1, 65, 3),
        (1.0, 1e-17, 64, 1),
        (1.0, 0.1, 0, 3),
    ],
)
def test_impossible_encodings_are_refused(bound: float, step: float, bits: int, num_clients: int) -> None:
    with pytest.raises(ValueError, match=r"must|needs|overflow|finer|need"):
        FixedPoint(bound, step, bits, num_clients)


def test_a_step_that_needs_more_than_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="64 bits"):
        FixedPoint(1.0, 2.0**-50, bits_for(2**70), 2**20)


@pytest.mark.parametrize("largest", [0, 1, 2, 127, 128, 2**40])
def test_bits_for_is_the_smallest_two_s_complement_width(largest: int) -> None:
    bits = bits_for(largest)
    assert -(2 ** (bits - 1)) <= -largest and largest <= 2 ** (bits - 1) - 1
    assert bits == 1 or largest > 2 ** (bits - 2) - 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10).filter(any), st.integers(0, 2**32))
def test_weighted_mean_without_any_single_weight(weights: list[int], seed: int) -> None:
    encoding = HiddenWeights(FixedPoint.finest(2.0, 40, len(weights)), dimension=5, max_weight=50)
    generator = np.random.default_rng(seed)
    updates = generator.uniform(-2, 2, (len(weights), 5))
    total = encoding.ring.zeros(encoding.length)
    for update, weight in zip(updates, weights, strict=True):
        total += encoding.encode(update, weight, generator)
    encoding.ring.reduce(total)
    mean = encoding.decode(total, np.array([], dtype=np.int64))  # no single weight is read
    assert total[-1] == sum(weights)
    expected = np.average(updates, axis=0, weights=weights)
    # each client's rounding is below one step, and the decoded sum is scaled by max_weight / Σ n_i
    tolerance = len(weights) * encoding.fixed_point.step * 50 / sum(weights) + 1e-12
    assert np.max(np.abs(mean - expected)) <= tolerance


def test_weights_out_of_range_or_all_zero_are_refused() -> None:
    encoding = HiddenWeights(FixedPoint.finest(1.0, 16, 3), dimension=2, max_weight=10)
    generator = np.random.default_rng(0)
    for weight in (-1, 11):
        with pytest.raises(ValueError, match="weight"):
            encoding.encode(np.zeros(2), weight, generator)
    with pytest.raises(ValueError, match="zero"):
        encoding.decode(encoding.encode(np.zeros(2), 0, generator), np.zeros(1, dtype=np.int64))
    with pytest.raises(ValueError, match="overflow"):
        HiddenWeights(FixedPoint.finest(1.0, 16, 3), dimension=2, max_weight=2**14)
    with pytest.raises(ValueError, match="at least 1"):
        HiddenWeights(FixedPoint.finest(1.0, 16, 3), dimension=2, max_weight=0)
