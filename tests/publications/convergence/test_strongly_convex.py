"""Lemma 6 of the zCDP paper, and the exact quadratics that it is held against."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from publications.convergence import (
    LocalSgd,
    Quadratics,
    Smoothness,
    expected_gaps,
    optimality_bound,
    printed_local_sgd_bound,
    printed_optimality_bound,
)
from publications.zcdp_theory import FROM_THE_MINIMUM, ROUNDING


def so_far(values: np.ndarray) -> np.ndarray:
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def test_exact_gaps_are_those_of_sampled_runs() -> None:
    """Algorithm 1 played 20,000 times, unlike devices, two of three a round, two noisy steps."""
    problem, run = Quadratics((1.0, 2.0, 0.5), (1.0, -1.0, 3.0)), LocalSgd(0.1, 2, 3, 2, 1, 1, noise_std=0.5)
    random, plays = np.random.default_rng(7), 20_000
    curvature, centre = np.array(problem.curvature), np.array(problem.centre)
    model, found = np.full(plays, 2.0), []
    for _ in range(3):
        order = np.argsort(random.random((plays, 3)), axis=1)[:, :2]
        local = np.repeat(model[:, None], 2, axis=1)
        for _ in range(2):
            found.append(problem.convexity / 2 * (local.mean(axis=1) - problem.minimiser) ** 2)
            noise = 0.5 * random.standard_normal(local.shape)
            local = local - 0.1 * (curvature[order] * (local - centre[order]) + noise)
        model = local.mean(axis=1)
    exact = expected_gaps(problem, run, 2.0, 3)
    for one, known in zip(found, exact, strict=True):
        assert abs(one.mean() - known) <= 5 * one.std() / np.sqrt(plays) + 1e-12


def test_one_of_two_devices_by_hand() -> None:
    """X = 0, then ±η: the mean of f − f* over two iterations is η²/4, and eq. (15) says 0."""
    case = FROM_THE_MINIMUM["1 of 2 devices, no noise, τ = 1"]
    assert case.run.step == 0.1
    assert case.measured(2)[1] == pytest.approx(0.1**2 / 4)
    assert np.all(case.printed(50) == 0)


def test_all_devices_and_two_steps_by_hand() -> None:
    """The devices go to 2 (2 η − η²) and −(4 η − 4 η²), their mean is η²: also Theorem 2 says 0 there."""
    case, step = FROM_THE_MINIMUM["2 of 2 devices, no noise, τ = 2"], 0.05
    gaps = expected_gaps(case.problem, case.run, 0.0, 2)
    assert np.allclose(gaps[:2], 0, atol=1e-18)
    assert gaps[2] == pytest.approx(0.75 * step**4)
    assert case.run.devices_per_round == case.run.devices == 2
    assert np.all(case.printed(50) == 0)
    assert printed_local_sgd_bound(50, case.run, Smoothness(2.0, 0.0)) == 0


def test_one_noisy_device_by_hand() -> None:
    """Settles at η σ²/(2 (2 − η)); as printed η σ²/4."""
    case = FROM_THE_MINIMUM["1 device, σ = 1, τ = 1"]
    assert case.measured(20_000)[-1] == pytest.approx(0.15 / (2 * 1.85), rel=1e-3)
    assert case.printed(20_000)[-1] == pytest.approx(0.15 / 4)
    assert case.measured(400)[-1] > case.printed(400)[-1] + ROUNDING


@pytest.mark.parametrize("name", list(FROM_THE_MINIMUM))
def test_the_condition_on_the_step_is_met(name: str) -> None:
    run, smoothness = FROM_THE_MINIMUM[name].run, max(FROM_THE_MINIMUM[name].problem.curvature)
    scaled = run.step * smoothness
    assert 5 * scaled + 3 * run.local_steps**2 * scaled**2 <= 1
    assert FROM_THE_MINIMUM[name].start == pytest.approx(FROM_THE_MINIMUM[name].problem.minimiser)


@pytest.mark.parametrize(
    ("chosen", "step", "steps", "noise", "start"),
    list(itertools.product([1, 2, 4], [0.01, 0.08], [1, 3], [0.0, 0.5], [0.0, 3.0])),
)
def test_the_mended_bound_holds_in_every_round(
    chosen: int, step: float, steps: int, noise: float, start: float
) -> None:
    problem, run = Quadratics((1.0,) * 4, (-1.0, 0.5, 2.0, -1.5)), LocalSgd(step, steps, 4, chosen, 1, 1, noise)
    received = so_far(expected_gaps(problem, run, start, 200)[::steps])
    bound = optimality_bound(np.arange(1, 201), run, problem.constants(start), problem.convexity)
    assert np.all(np.isfinite(bound))
    assert np.all(received <= bound * (1 + 1e-12))


def test_the_printed_formula_by_hand() -> None:
    """η = 1/20, L = 1, λ = 1/2, τ = 2, γ = 4, r = 2, d = 3, σ² = 4, β² = 8, gap 1, T = 5, so K = 10: eq. (15)."""
    run, problem = LocalSgd(0.05, 2, 5, 2, 4, 3, 2.0), Smoothness(1.0, 1.0, gradient_variance=8.0)
    start = (1 - 0.025) / (10 * 0.025)
    floor = 0.05 * 8 / (4 * 0.5 * 4) + 0.05 * 12 / (4 * 2 * 0.5)
    drift = 0.0025 * 1 * 3 * (8 / (3 * 0.5 * 4) + 12 * 3 / (6 * 2 * 0.5))
    assert printed_optimality_bound(5, run, problem, 0.5) == pytest.approx(start + floor + drift)


def test_wrong_values() -> None:
    with pytest.raises(ValueError, match="convexity must be above 0"):
        optimality_bound(1, LocalSgd(0.1, 1, 1, 1, 1, 1), Smoothness(1.0, 1.0), 0.0)
    with pytest.raises(ValueError, match="one curvature above 0"):
        Quadratics((1.0,), (0.0, 1.0))
    with pytest.raises(ValueError, match="without bound"):
        Quadratics((1.0, 2.0), (0.0, 1.0)).constants(0.0)
