"""Lemma 2 and section IV-B of the paper on multi-objective clipping: verdicts, and the cases they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from publications.claims import Outcome, judge
from publications.convergence import (
    descend,
    norm_bound,
    printed_derivative,
    printed_norm_bound,
    quadratic_gap,
    true_derivative,
    wavy_loss,
    wavy_slope,
)
from publications.moo_theory import GRID, THEORY_CLAIMS, THEORY_FIGURE, growth_of_the_wavy_loss, minimisers
from publications.tables import Tables

NO_RUNS = Tables({"size": "small"}, {})


def test_three_quarters_of_the_largest_step_by_hand() -> None:
    """L = 1, C* = 1, C_0 = 3, η = 0.75: C_1 = 3 − 0.75 · 2 = 1.5, the gap falls from 2 to 1/8; Lemma 2 says −1."""
    assert descend(true_derivative(lambda norm: norm - 1.0, 0.0), 3.0, 0.75, 1) == 1.5
    assert quadratic_gap(1, 0.75, 1.0, 0.0, 2.0) == pytest.approx(0.125)
    assert printed_norm_bound(1, 0.75, 1.0, 0.0, 2.0) == pytest.approx(-1.0)


def test_the_largest_step_never_arrives() -> None:
    """η = 2/L, which Lemma 2 allows "for stability": 3, −1, 3, … about C* = 1."""
    assert quadratic_gap(101, 2.0, 1.0, 0.0, 2.0) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="between 0 and 2"):
        norm_bound(1, 2.0, 1.0, 1.0, 0.0, 1.0)


def test_the_floor_by_hand() -> None:
    """μ = L = 4, η = 1/4, σ_g = 1, C_0 = C*: C_1 − C* is normal with σ = 1/4, so E 2 (C_1 − C*)² = 1/8."""
    assert quadratic_gap(1, 0.25, 4.0, 1.0, 0.0) == pytest.approx(2 / 16)
    assert printed_norm_bound(1, 0.25, 4.0, 1.0, 0.0) == pytest.approx(1 / 32)
    assert norm_bound(1, 0.25, 4.0, 4.0, 1.0, 0.0) == pytest.approx(1 / 8)


def test_exact_gaps_are_those_of_sampled_steps() -> None:
    random, plays = np.random.default_rng(3), 40_000
    norm = np.full(plays, 1.0)
    for _ in range(4):
        norm = norm - 0.3 * (2.0 * norm + random.standard_normal(plays))
    found = norm**2  # L = 2
    assert abs(found.mean() - quadratic_gap(4, 0.3, 2.0, 1.0, 1.0)) <= 5 * found.std() / np.sqrt(plays)


@pytest.mark.parametrize("step", [0.05, 0.2, 0.24])
@pytest.mark.parametrize("start", [0.5, 2.0, 6.5, 9.0])
def test_the_mended_lemma_holds_where_the_loss_is_not_convex(step: float, start: float) -> None:
    gaps, norm = [], start
    for _ in range(200):
        gaps.append(float(wavy_loss(norm)))
        norm -= step * float(wavy_slope(norm))
    assert np.all(np.array(gaps) <= norm_bound(np.arange(200), step, 8.0, 1 / 32, 0.0, gaps[0]) + 1e-12)


def test_the_wavy_loss_is_what_it_is_taken_for() -> None:
    slope = np.diff(wavy_loss(GRID)) / np.diff(GRID)
    np.testing.assert_allclose(slope, wavy_slope((GRID[1:] + GRID[:-1]) / 2), atol=1e-4)
    assert growth_of_the_wavy_loss() >= 1 / 32
    assert np.abs(np.diff(wavy_slope(GRID)) / np.diff(GRID)).max() <= 8


def test_two_minimisers_by_hand() -> None:
    """y² + 3 cos² y is even; its valleys are where y = (3/2) sin 2y, y = ±1.139."""
    low, high = minimisers(np.pi)
    assert low + high == pytest.approx(2 * (4 - np.pi / 2), abs=2e-3)
    y = (high - low) / 2
    assert y == pytest.approx(1.5 * np.sin(2 * y), abs=5e-3)
    assert len(minimisers(0.0)) == 1  # ℒ_model alone has one


def test_eq_10_leads_elsewhere() -> None:
    """ℒ_model = (C − 3)²/2, κ = 1/2: eq. (10) is −1/2 + 3/C, 0 at 6, above 0 below it: a step goes away from 6."""
    printed = printed_derivative(lambda norm: norm - 3.0, 0.5)
    assert printed(6.0) == 0
    assert printed(5.0) == pytest.approx(0.1)
    assert printed(7.0) < 0
    assert descend(printed, 5.0, 0.1, 10_000) == 1e-3
    assert np.isinf(descend(printed, 7.0, 0.1, 10_000, most=100))
    assert descend(true_derivative(lambda norm: norm - 3.0, 0.5), 5.0, 0.1, 1000) == pytest.approx(2.5)


def test_verdicts_and_picture() -> None:
    found = [judge(claim, NO_RUNS) for claim in THEORY_CLAIMS]
    assert [one.outcome is Outcome.CONFIRMED for one in found] == [False, True, False, False, False, True, True]
    assert Outcome.NOT_TESTED not in {one.outcome for one in found}
    assert "the lemma says -0.5" in found[0].numbers
    assert "broken after one step for 40 of 40" in found[0].numbers
    left, right = THEORY_FIGURE.draw(NO_RUNS).axes
    assert left.get_ylim()[0] < -2.5
    assert len(right.get_legend_handles_labels()[1]) == 3
