"""Counts of sampled mechanisms: by client and event, at every number of events and of clients."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from wirelessfl.privacy.account import EventCounts
from wirelessfl.privacy.accountants import _composed_pld
from wirelessfl.privacy.costs import SampledGaussian


def test_an_event_of_any_number_stays_with_its_client() -> None:
    """Numbers around the powers of two, where packed fields run into each other, against a dictionary."""
    numbers = [0, 1, 2**20 - 1, 2**20, 2**20 + 1, 2**30, 2**31 - 2]
    slots = [0, 1, 2, 2**20, 2**31 - 2]
    generator = np.random.default_rng(7)
    rows = [(slot, event, int(generator.integers(1, 9))) for slot in slots for event in numbers] * 2
    counts, expected = EventCounts(), Counter[tuple[int, int]]()
    for slot, event, count in rows:
        counts.add(*(np.array([value], dtype=np.int64) for value in (slot, event, count)))
        expected[slot, event] += count
    found = zip(*(column.tolist() for column in counts.entries()), strict=True)
    assert list(found) == [(*key, expected[key]) for key in sorted(expected)]


def test_the_uses_of_a_client_beyond_a_million_events() -> None:
    counts = EventCounts()
    some, other = SampledGaussian(1.0, 0.1), SampledGaussian(2.0, 0.1)
    counts.events = [some] * 2**20 + [other]
    for slot, event in ((0, 0), (0, 2**20), (1, 1)):
        counts.add(np.array([slot]), np.array([event]), np.array([3]))
    assert counts.uses_of(np.array([0, 1, 2])) == [((some, 3), (other, 3)), ((some, 3),), ()]


@pytest.mark.slow
def test_more_distinct_mechanisms_than_python_may_recurse() -> None:
    """1,100 multipliers that differ in the ninth place compose to what one of them does, used 1,100 times."""
    interval, steps = 2.0**-4, 1100
    distinct = tuple((SampledGaussian(3.0 + 1e-9 * step, 0.05), 1) for step in range(steps))
    one_by_one = _composed_pld(distinct, interval)
    at_once = _composed_pld(((SampledGaussian(3.0, 0.05), steps),), interval)
    for delta in (1e-3, 1e-6):
        found, expected = (float(pld.get_epsilon_for_delta(delta)) for pld in (one_by_one, at_once))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    longer = (*distinct, (SampledGaussian(1.0, 0.05), 1))
    assert _composed_pld(longer, interval).get_epsilon_for_delta(1e-6) > expected
