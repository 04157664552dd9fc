"""Theorem 5 of the over-the-air paper against exact second moments of quadratics that share their minimiser."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from publications.convergence import (
    Heterogeneity,
    UpcycledRounds,
    printed_coefficients,
    proven_coefficients,
    upcycled_bound,
    upcycled_movement,
)

Array = NDArray[np.float64]


def quadratics(
    curvature: Array, mu: float, lam: float, backoff: float, noise: float, start: float, rounds: int
) -> tuple[Array, Array, float, float]:
    """F_i(x) = l_i x²/2, p_i = 1/n: E f'(w̄^{2m−1})², E f'² of all local solutions, and q, from the exact recursion.

    A local solution is μ/(μ + l_i) of the broadcast model; λ = ∞ leaves the server's second step out.
    """
    shrink = 1 - (curvature / (mu + curvature)).mean() / backoff
    again = mu / (mu + lam)
    slope, square = curvature.mean(), start**2
    found, local, moved = [], [], []
    for _ in range(rounds):
        after = shrink**2 * square + noise**2
        local.append(slope**2 * square * (mu / (mu + curvature.min())) ** 2)
        moved.append((1 - shrink) ** 2 * square + noise**2)
        found.append(slope**2 * after)
        square = ((1 + again) * shrink - again) ** 2 * square + (1 + again) ** 2 * noise**2
    return np.array(found), np.array(local), float(np.sqrt(max(moved))), float(curvature.max())


def problem(
    curvature: Array, mu: float, lam: float, backoff: float, noise: float, start: float, rounds: int
) -> tuple[Array, UpcycledRounds, Heterogeneity, float]:
    found, local, q, smooth = quadratics(curvature, mu, lam, backoff, noise, start, rounds + 1)
    slope = curvature.mean()
    bound = float(np.sqrt(max(found.max(), local.max(), (slope * start) ** 2)))
    clients = Heterogeneity(
        smoothness=smooth,
        convexity=mu + float(curvature.min()),
        gradient_bound=bound,
        dissimilarity=float(np.sqrt((curvature**2).mean()) / slope),
        deviation=np.abs(curvature - slope) / slope * bound,
        weight=np.full(len(curvature), 1 / len(curvature)),
    )
    setting = UpcycledRounds(
        prox_mu=mu,
        lam=np.full(rounds, lam),
        scaled_backoff=np.full((rounds + 1, len(curvature)), backoff),
        jammer_noise_std=np.full(rounds + 1, noise * 0.6),
        receiver_noise_std=noise * 0.8,
        dimension=1,
        movement=q,
    )
    return found[:rounds], setting, clients, 0.5 * slope * start**2


@pytest.mark.parametrize(
    ("mu", "lam", "backoff", "noise"),
    list(itertools.product([3.0, 8.0, 30.0], [0.5, 50.0, np.inf], [1.0, 1.3], [0.0, 0.1])),
)
def test_the_proven_bound_holds_in_every_round(mu: float, lam: float, backoff: float, noise: float) -> None:
    curvature = np.array([0.5, 1.0, 1.5])
    measured, setting, clients, gap = problem(curvature, mu, lam, backoff, noise, 2.0, 60)
    bound = upcycled_bound(proven_coefficients(setting, clients), gap)
    assert np.all(np.isfinite(bound))
    assert np.all(np.cumsum(measured) / np.arange(1, 61) <= bound)
    assert np.all(np.minimum.accumulate(measured) <= bound)


def test_one_client_by_hand() -> None:
    """One client, λ = ∞, τ s = 1, no noise: C_1 = 1/(2μ) − L²/(μ ρ²) and C_4 = max(L/μ² − 1/(2μ), 0) G² alone."""
    clients = Heterogeneity(2.0, 4.0, 3.0, 1.0, np.zeros(1), np.ones(1))
    setting = UpcycledRounds(3.0, np.full(2, np.inf), np.ones((3, 1)), np.zeros(3), 0.0, 5, 1.0)
    found = proven_coefficients(setting, clients)
    assert found.c1 == pytest.approx(1 / 6 - 4 / (3 * 16))
    np.testing.assert_allclose(found.c4, (2 / 9 - 1 / 6) * 9)
    assert found.first == pytest.approx((2 / 9 - 1 / 6) * 9)
    assert not found.c2.any()
    assert not found.c3.any()
    assert found.c6 == 0
    np.testing.assert_allclose(upcycled_bound(found, 1.0)[1], (1.0 / 2 + 0.5 / 2 + 0.5) / found.c1)


def test_noise_enters_once_a_round() -> None:
    """C_5 and C_6 are (L d/2) σ²; the first training has both as well."""
    clients = Heterogeneity(2.0, 9.0, 1.0, 1.0, np.zeros(1), np.ones(1))
    setting = UpcycledRounds(9.0, np.full(1, np.inf), np.ones((2, 1)), np.array([0.3, 0.4]), 0.5, 7, 1.0)
    found = proven_coefficients(setting, clients)
    np.testing.assert_allclose(found.c5, [2 * 7 / 2 * 0.16])
    assert found.c6 == pytest.approx(2 * 7 / 2 * 0.25)
    assert found.first == pytest.approx(2 * 7 / 2 * (0.09 + 0.25))


def test_the_printed_coefficients_by_hand() -> None:
    """L = 2, μ = 1, λ = 3, ρ = 4, B = 3, G = 5, q = 7, τ s = 2, κ = 1: eqs. (29)-(32) with the numbers put in."""
    clients = Heterogeneity(2.0, 4.0, 5.0, 3.0, np.ones(1), np.ones(1))
    setting = UpcycledRounds(1.0, np.array([3.0]), np.full((2, 1), 2.0), np.zeros(2), 0.0, 1, 7.0)
    found = printed_coefficients(setting, clients)
    assert found.c1 == pytest.approx(1 / 2 - 6 / 16)
    assert found.c2[0] == pytest.approx(1 / 4 * (1 + 2 * 2 * 3 * 6 / 16) * 35)
    assert found.c3[0] == pytest.approx(1 / 16 * 2 * (1 + 36 / 16) * 49)
    assert found.c4[0] == pytest.approx((2 * 1 + 3) / (2 * 4) * 36)


def test_the_printed_bound_falls_below_zero() -> None:
    """Every G ≥ ‖∇f‖ satisfies Assumption 4, but for μ > 2L the printed bound falls with G², below any gradient."""
    curvature = np.array([0.5, 1.0, 1.5])
    measured, setting, clients, gap = problem(curvature, 8.0, np.inf, 1.0, 0.0, 2.0, 60)
    looser = Heterogeneity(
        clients.smoothness, clients.convexity, 10 * clients.gradient_bound, clients.dissimilarity,
        clients.deviation, clients.weight,
    )  # fmt: skip
    printed = upcycled_bound(printed_coefficients(setting, looser), gap)
    assert np.all(printed < 0)
    assert np.all(measured >= 0)
    assert np.all(upcycled_bound(proven_coefficients(setting, looser), gap) > measured)


def test_lemma_2_does_not_hold() -> None:
    """F = (w ∓ 1)²/2: κ_i = 1, but at w = 0 no B makes E‖∇F_i‖² ≤ B² ‖∇f‖²."""
    gradients = np.array([0.0 - 1.0, 0.0 + 1.0])
    assert np.all(np.abs(gradients - gradients.mean()) <= 1)
    assert (gradients**2).mean() > 0 == gradients.mean() ** 2


def test_movement_covers_what_clients_send_and_noise() -> None:
    """Two clients with bounds 2 and 4, weights 1/4 and 3/4, τ s = 2, μ = 5, then noise of 0.1 in 4 dimensions."""
    q = upcycled_movement(np.array([2.0, 4.0]), np.array([0.25, 0.75]), np.full((1, 2), 2.0), 5.0, np.array([0.1]), 4)
    assert q**2 == pytest.approx(((0.25 * 2 + 0.75 * 4) / 2 / 5) ** 2 + 0.04)


def test_no_claim_without_a_positive_c1() -> None:
    clients = Heterogeneity(2.0, 1.0, 1.0, 1.0, np.zeros(1), np.ones(1))
    setting = UpcycledRounds(1.0, np.ones(3), np.ones((4, 1)), np.zeros(4), 0.0, 1, 1.0)
    for coefficients in (printed_coefficients(setting, clients), proven_coefficients(setting, clients)):
        assert np.all(np.isinf(upcycled_bound(coefficients, 1.0)))


def test_bad_input_is_refused() -> None:
    one = np.ones(1)
    with pytest.raises(ValueError, match="dissimilarity"):
        Heterogeneity(1.0, 1.0, 1.0, 0.5, one, one)
    with pytest.raises(ValueError, match="smoothness"):
        Heterogeneity(np.inf, 1.0, 1.0, 1.0, one, one)
    with pytest.raises(ValueError, match="add up"):
        Heterogeneity(1.0, 1.0, 1.0, 1.0, one, 2 * one)
    with pytest.raises(ValueError, match=r"\(n,\)"):
        Heterogeneity(1.0, 1.0, 1.0, 1.0, np.ones(2), one)
    with pytest.raises(ValueError, match="prox_mu"):
        UpcycledRounds(0.0, one, np.ones((2, 1)), np.zeros(2), 0.0, 1, 1.0)
    with pytest.raises(ValueError, match=r"M \+ 1"):
        UpcycledRounds(1.0, one, np.ones((1, 1)), np.zeros(2), 0.0, 1, 1.0)
    with pytest.raises(ValueError, match="back-off"):
        UpcycledRounds(1.0, one, np.zeros((2, 1)), np.zeros(2), 0.0, 1, 1.0)
    with pytest.raises(ValueError, match="movement"):
        UpcycledRounds(1.0, one, np.ones((2, 1)), np.zeros(2), 0.0, 1, -1.0)
    good = UpcycledRounds(1.0, one, np.ones((2, 1)), np.zeros(2), 0.0, 1, 1.0)
    with pytest.raises(ValueError, match="gap"):
        upcycled_bound(proven_coefficients(good, Heterogeneity(1.0, 9.0, 1.0, 1.0, one, one)), -1.0)
