"""Discounts of late updates against the formulas of Xie et al., 2019."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.learning.aggregation import (
    ConstantDiscount,
    HingeDiscount,
    Mixing,
    PolynomialDiscount,
    StalenessDiscount,
)

LATE = np.arange(0.0, 41.0)
DISCOUNTS = [ConstantDiscount(), PolynomialDiscount(0.5), PolynomialDiscount(2.0), HingeDiscount(10.0, 4.0)]


def test_closed_forms() -> None:
    """s(t − τ) of section 5.2 there, written out one by one."""
    polynomial, hinge = PolynomialDiscount(0.5).discount(LATE), HingeDiscount(10.0, 4.0).discount(LATE)
    for staleness in range(41):
        assert polynomial[staleness] == pytest.approx(1 / math.sqrt(1 + staleness), rel=1e-15)
        by_hand = 1.0 if staleness <= 4 else 1 / (10 * (staleness - 4) + 1)
        assert hinge[staleness] == pytest.approx(by_hand, rel=1e-15)
    assert np.all(ConstantDiscount().discount(LATE) == 1)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_every_discount_begins_with_1_and_falls(discount: StalenessDiscount) -> None:
    found = discount.discount(LATE)
    assert found[0] == 1 and np.all(found > 0) and np.all(np.diff(found) <= 0)


def test_limits() -> None:
    assert np.array_equal(PolynomialDiscount(0.0).discount(LATE), ConstantDiscount().discount(LATE))
    assert np.array_equal(HingeDiscount(0.0, 3.0).discount(LATE), ConstantDiscount().discount(LATE))
    assert np.array_equal(HingeDiscount(1.0, 0.0).discount(LATE), PolynomialDiscount(1.0).discount(LATE))


@given(
    rate=st.floats(0.01, 1.0),
    weight=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8),
    late=st.integers(0, 20),
)
def test_fresh_updates_weigh_alpha_in_all_and_late_ones_less(rate: float, weight: list[float], late: int) -> None:
    p = np.array(weight)
    mixing = Mixing(rate, PolynomialDiscount(0.5))
    fresh = mixing.shares(p, np.zeros(len(p))) / p.sum()
    assert fresh.sum() == pytest.approx(rate, rel=1e-12)
    stale = mixing.shares(p, np.full(len(p), float(late))) / p.sum()
    assert stale.sum() == pytest.approx(rate / math.sqrt(1 + late), rel=1e-12)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_bad_arguments(value: float) -> None:
    with pytest.raises(ValueError, match="exponent"):
        PolynomialDiscount(value)
    with pytest.raises(ValueError, match="slope"):
        HingeDiscount(value, 1.0)
    with pytest.raises(ValueError, match="grace"):
        HingeDiscount(1.0, value)
    with pytest.raises(ValueError, match="mixing rate"):
        Mixing(value, ConstantDiscount())


def test_the_model_cannot_be_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="mixing rate"):
        Mixing(0.0, ConstantDiscount())
