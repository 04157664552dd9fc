"""Theorem 2 of the zCDP paper against exact second moments of one-dimensional quadratics."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from publications.convergence import (
    LocalSgd,
    Smoothness,
    largest_printed_step,
    local_sgd_bound,
    printed_local_sgd_bound,
)

Array = NDArray[np.float64]


def exact_gradients(
    centres: Array, chosen: int, step: float, steps: int, noise: float, start: float, rounds: int
) -> Array:
    """E f'(θ^t)² for t < rounds, with f_i(x) = (x − c_i)²/2: moments of a linear recursion, no sampling.

    A device maps x to keep·x + (1 − keep) c_i plus noise of variance step² σ² Σ_h (1 − step)^{2h}; the server takes the
    mean of r devices, drawn without replacement.
    """
    count, keep = len(centres), (1 - step) ** steps
    local = step**2 * noise**2 * sum((1 - step) ** (2 * h) for h in range(steps)) / chosen
    spread = centres.var() * ((count - chosen) / (chosen * (count - 1)) if count > 1 else 0.0)
    mean, square, found = start - centres.mean(), (start - centres.mean()) ** 2, []
    for _ in range(rounds):
        found.append(square)
        mean, square = keep * mean, keep**2 * square + (1 - keep) ** 2 * spread + local
    return np.array(found)


def setting(
    centres: Array, chosen: int, step: float, steps: int, noise: float, start: float
) -> tuple[LocalSgd, Smoothness]:
    run = LocalSgd(step, steps, len(centres), chosen, batch_size=1, dimension=1, noise_std=noise)
    gap = 0.5 * (start - centres.mean()) ** 2
    return run, Smoothness(1.0, gap, heterogeneity=float(centres.var()))


def so_far(values: Array) -> Array:
    return np.cumsum(values) / np.arange(1, len(values) + 1)


@pytest.mark.parametrize(
    ("chosen", "step", "steps", "noise", "start"),
    list(itertools.product([1, 2, 4], [0.01, 0.08], [1, 3, 6], [0.0, 0.5], [0.0, 3.0])),
)
def test_the_proven_bound_holds_in_every_round(
    chosen: int, step: float, steps: int, noise: float, start: float
) -> None:
    centres = np.array([-1.0, 0.5, 2.0, -1.5])
    measured = so_far(exact_gradients(centres, chosen, step, steps, noise, start, 400))
    bound = local_sgd_bound(np.arange(1, 401), *setting(centres, chosen, step, steps, noise, start))
    assert np.all(np.isfinite(bound))
    assert np.all(measured <= bound * (1 + 1e-12))


@pytest.mark.parametrize("step", [0.02, 0.1, 0.18])
def test_one_step_of_one_device_attains_the_proven_bound(step: float) -> None:
    """E x² settles at η σ²/(2 − η): worked out by hand, x⁺ = (1 − η) x − η b."""
    run, problem = setting(np.zeros(1), 1, step, 1, 0.7, 0.0)
    settles = step * 0.7**2 / (2 - step)
    assert local_sgd_bound(1e9, run, problem) == pytest.approx(settles, rel=1e-6)
    assert exact_gradients(np.zeros(1), 1, step, 1, 0.7, 0.0, 5000)[-1] == pytest.approx(settles, rel=1e-6)


@pytest.mark.parametrize("step", [0.02, 0.1, 0.18])
def test_the_printed_bound_fails_for_one_device(step: float) -> None:
    """A factor: the noise's η σ²/2 as printed, η σ²/(2 − η) in truth, from the minimum and under the condition on η."""
    run, problem = setting(np.zeros(1), 1, step, 1, 0.7, 0.0)
    assert step <= largest_printed_step(1.0, 1)
    measured = so_far(exact_gradients(np.zeros(1), 1, step, 1, 0.7, 0.0, 100_000))[-1]
    printed = printed_local_sgd_bound(100_000, run, problem)
    assert printed == pytest.approx(step * 0.7**2 / 2)
    assert measured > printed


def test_the_printed_bound_fails_where_devices_differ() -> None:
    """1 of 2 devices at ±1, no noise, from the minimum: as printed 0 in every round; in truth up to η/(2 − η)."""
    centres, step = np.array([-1.0, 1.0]), 0.1
    run, problem = setting(centres, 1, step, 1, 0.0, 0.0)
    measured = so_far(exact_gradients(centres, 1, step, 1, 0.0, 0.0, 3000))
    assert np.all(printed_local_sgd_bound(np.arange(1, 3001), run, problem) == 0)
    assert np.all(measured[1:] > 0)
    assert measured[-1] == pytest.approx(step / (2 - step), rel=0.01)
    assert local_sgd_bound(1e9, run, problem) == pytest.approx(step / (2 - step), rel=1e-6)


def test_gradient_descent_on_all_devices_alike() -> None:
    """No noise, no spread, τ = 1: the descent lemma, gap/(η T (1 − η L/2))."""
    run, problem = LocalSgd(0.25, 1, 3, 3, 1, 5), Smoothness(2.0, 0.8)
    assert local_sgd_bound(10, run, problem) == pytest.approx(0.8 / (0.25 * 10 * (1 - 0.25)))


def test_the_printed_formula_by_hand() -> None:
    """η = 1/20, L = 1, τ = 2, γ = 4, r = 2, d = 3, σ² = 4, β² = 8, gap 1, T = 5, so K = 10."""
    run = LocalSgd(0.05, 2, 5, 2, batch_size=4, dimension=3, noise_std=2.0)
    problem = Smoothness(1.0, 1.0, gradient_variance=8.0)
    start = 2 / (0.05 * 10)
    floor = 0.05 * 8 / (2 * 4) + 0.05 * 12 / (2 * 2)
    drift = 1 * 3 * (2 * 0.0025 * 8 / (3 * 4) + 0.0025 * 12 * 3 / (3 * 2))
    assert printed_local_sgd_bound(5, run, problem) == pytest.approx(start + floor + drift)


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_the_largest_printed_step_solves_its_condition(steps: int) -> None:
    step = largest_printed_step(2.5, steps)
    assert 5 * step * 2.5 + 3 * (steps * step * 2.5) ** 2 == pytest.approx(1)
    beyond = LocalSgd(step * 1.001, steps, 1, 1, 1, 1)
    assert printed_local_sgd_bound(3, beyond, Smoothness(2.5, 1.0)) == np.inf


def test_too_large_a_step_says_nothing() -> None:
    problem = Smoothness(1.0, 1.0)
    assert local_sgd_bound(5, LocalSgd(2.5, 1, 1, 1, 1, 1), problem) == np.inf
    assert np.all(np.isinf(local_sgd_bound([1, 9], LocalSgd(0.9, 5, 1, 1, 1, 1), problem)))


@pytest.mark.parametrize(
    "change",
    [
        {"step": 0.0}, {"step": np.nan}, {"noise_std": -1.0}, {"local_steps": 0}, {"devices_per_round": 3},
        {"devices_per_round": 0}, {"dimension": 0},
    ],
)  # fmt: skip
def test_bad_settings_are_refused(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "step": 0.1,
        "local_steps": 1,
        "devices": 2,
        "devices_per_round": 1,
        "batch_size": 1,
        "dimension": 1,
    }
    with pytest.raises(ValueError, match="must"):
        LocalSgd(**{**good, **change})


def test_bad_problems_and_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="smoothness"):
        Smoothness(0.0, 1.0)
    with pytest.raises(ValueError, match="initial_gap"):
        Smoothness(1.0, np.inf)
    for bound in (local_sgd_bound, printed_local_sgd_bound):
        with pytest.raises(ValueError, match="rounds"):
            bound(0, LocalSgd(0.1, 1, 1, 1, 1, 1), Smoothness(1.0, 1.0))
