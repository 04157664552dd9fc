"""The one-round theorem of two papers, against steps that are known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from publications.convergence import Federation, noisy_step_bound, printed_step_bound, quadratic_step
from publications.descent_pages import DRIFTING, NOISE_CLAIM, ONE_ROUND_FIGURE, alone, drifting
from publications.tables import Tables


def test_noise_at_the_minimum_by_hand() -> None:
    """M = 1, η = 1/2, d σ² = 1: a step leaves η²/2 = 1/8; the bound is (η/2)(η − 1) = −1/8."""
    assert alone(0.0, 1.0) == pytest.approx((1 / 8, -1 / 8))


def test_the_exact_step_is_that_of_sampled_noise() -> None:
    random, plays = np.random.default_rng(11), 50_000
    after = (np.array([1.0, -2.0]) * (1 - 0.3 * 2) - 0.3 * 0.7 * random.standard_normal((plays, 2))) ** 2
    gaps = after.sum(axis=1)  # M = 2: the loss is ‖x‖²
    assert abs(gaps.mean() - quadratic_step(2.0, 0.3, 5.0, 2 * 0.49)) <= 5 * gaps.std() / np.sqrt(plays)


def test_drift_by_hand() -> None:
    """η = 1: client 1 stands at 0, client 2 at 1, nothing moves; the gap stays 1/16, and the bound is half of it."""
    assert drifting(1.0) == pytest.approx((1 / 16, 1 / 32))


def test_drift_is_played_out() -> None:
    """Two clients with x²/2 and 0, step by step; and the constants are true of them."""
    step, models = 0.9, np.array([1.0, 1.0])
    for _ in range(2):
        before = models.copy()
        models = models - step * np.array([models[0], 0.0])
    gap, bound = drifting(step)
    assert gap == pytest.approx(models.mean() ** 2 / 4)
    assert gap > bound
    gradients = np.array([before[0], 0.0])
    assert (gradients**2).mean() / gradients.mean() ** 2 == pytest.approx(DRIFTING.diversity)
    x = 1.7  # Assumption 1 and PL for L = x²/4, at any x
    assert (x - x / 2) ** 2 + (0 - x / 2) ** 2 == pytest.approx(DRIFTING.dissimilarity * (x / 2) ** 2)
    assert (x / 2) ** 2 / 2 == pytest.approx(DRIFTING.growth * x**2 / 4)


def test_the_printed_formula_by_hand() -> None:
    """M = 2, μ = 1/2, B_1 = 3, B_2² = 5, λ = 1.5, K = 4, N = 6, η = 0.1, two steps before: eqs. (13)-(16)."""
    one = Federation(2.0, 0.5, 3.0, 5.0, 1.5, 4, 6)
    constant = 0.1 * 2 * 5 / 4 * (0.05 + 2 * 5 / 4 * 0.02)
    first = 0.05 * (-1 + 1.5 * 2 * 0.1 * 7 / 4) * 0.8
    second = 1.5 * 5 * 0.1 * 4 / 16 * (3 + 6) * 0.02 * 0.8
    assert printed_step_bound(one, 0.1, 0.7, 0.8, earlier=2) == pytest.approx(0.95 * 0.7 + constant + first + second)


def test_the_other_readings_of_the_noise() -> None:
    """A gradient without noise leaves 0 at the minimum, below 1/8; only B_2² = d σ² besides makes the bound hold."""
    exact = quadratic_step(1.0, 0.5, 0.0, 1.0)
    assert printed_step_bound(Federation(), 0.5, 0.0, 0.0) == 0 < exact
    assert printed_step_bound(Federation(offset=1.0), 0.5, 0.0, 1.0) <= 1e-15 < exact
    assert printed_step_bound(Federation(offset=1.0), 0.5, 0.0, 0.0) == pytest.approx(exact)


@pytest.mark.parametrize("step", [0.1, 1.0, 1.9])
def test_the_mended_bound_is_attained(step: float) -> None:
    assert noisy_step_bound(1.0, 1.0, step, 2.0, 3.0) == pytest.approx(quadratic_step(1.0, step, 2.0, 3.0))
    assert noisy_step_bound(1.0, 0.3, step, 2.0, 3.0) > quadratic_step(1.0, step, 2.0, 3.0)


def test_a_step_beyond_the_largest_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 2"):
        noisy_step_bound(1.0, 1.0, 2.0, 1.0, 0.0)


def test_noise_lowers_the_printed_bound() -> None:
    found = NOISE_CLAIM.check(Tables({}, {}))
    assert "bound 0.25 → 0.125, exact gap 0.25 → 0.375" in found.numbers


def test_the_picture_has_a_bound_below_zero() -> None:
    left, right = ONE_ROUND_FIGURE.draw(Tables({}, {})).axes
    assert np.asarray(left.lines[2].get_ydata(), dtype=float).min() < 0
    exact, bound = (np.asarray(line.get_ydata(), dtype=float) for line in right.lines)
    assert np.any(exact > bound)
