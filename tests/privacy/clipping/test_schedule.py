"""Public schedules."""

from __future__ import annotations

import itertools
import math

import pytest

from wirelessfl.privacy.clipping import Constant, Geometric


def test_a_constant_is_constant() -> None:
    assert [Constant(0.3).at(m) for m in (1, 2, 1000)] == [0.3] * 3
    assert Constant(0.0).at(1) == 0.0


def test_geometric_steps_are_equal_factors_that_end_at_the_ratio() -> None:
    schedule = Geometric(2.0, 0.5, 8)
    values = [schedule.at(m) for m in range(1, 10)]
    assert values[0] == 2.0
    assert values[8] == pytest.approx(1.0, rel=1e-15)
    factors = [after / before for before, after in itertools.pairwise(values)]
    assert factors == pytest.approx([0.5 ** (1 / 8)] * 8)
    assert schedule.at(1000) == values[8]


def test_the_form_of_du_et_al() -> None:
    """C_t = C_0 ρ^(−t/T) with t = 0 in the first round, and noise multipliers 1/μ_t of μ_t = μ_0 ρ^(t/T)."""
    clips, multipliers = Geometric(1.5, 1 / 3.0, 20), Geometric(1 / 0.8, 1 / 2.0, 20)
    for t in range(20):
        assert clips.at(t + 1) == pytest.approx(1.5 * 3.0 ** (-t / 20))
        assert multipliers.at(t + 1) == pytest.approx(1 / (0.8 * 2.0 ** (t / 20)))


def test_a_growing_multiplier_grows() -> None:
    schedule = Geometric(1.0, 1.5, 10)
    assert schedule.at(10) == pytest.approx(math.exp(0.9 * math.log(1.5)))
