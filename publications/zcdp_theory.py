"""Lemma 5, Theorem 1 and Lemma 6 of the zCDP paper, against cases that can be worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from publications.bound_pages import Overlay, draw_overlays
from publications.claims import Claim, Verdict, verdict
from publications.convergence import (
    LocalSgd,
    Quadratics,
    Smoothness,
    expected_gaps,
    optimality_bound,
    printed_local_sgd_bound,
    printed_optimality_bound,
)
from publications.effects import ratio
from publications.paper import PaperFigure, PaperTable
from publications.tables import Tables
from publications.zcdp_sum import DELTA, DEVICES, epsilon_of_sum, published_epsilon
from publications.zcdp_uploads import UPLOADS, upload_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


class Case(NamedTuple):
    """Local SGD on quadratics.

    Attributes:
        run: The algorithm's settings.
        problem: The devices' objectives.
        start: θ^0.
    """

    run: LocalSgd
    problem: Quadratics
    start: float = 0.0

    def measured(self, rounds: int) -> Array:
        """(T,) exact mean of E f(θ̂^k) − f* over the iterations of the first 1, 2, … rounds."""
        gaps = expected_gaps(self.problem, self.run, self.start, rounds).reshape(rounds, self.run.local_steps)
        return np.asarray(np.cumsum(gaps.mean(axis=1)) / np.arange(1, rounds + 1))

    def printed(self, rounds: int) -> Array:
        """(T,) Lemma 6 as printed."""
        known = Smoothness(max(self.problem.curvature), self.problem.gap(self.start))
        return printed_optimality_bound(np.arange(1, rounds + 1), self.run, known, self.problem.convexity)

    def received(self, rounds: int) -> Array:
        """(T,) exact mean over the models that devices receive, θ^0 … θ^{T − 1}: what the mended bound is about."""
        gaps = expected_gaps(self.problem, self.run, self.start, rounds)[:: self.run.local_steps]
        return np.asarray(np.cumsum(gaps) / np.arange(1, rounds + 1))

    def proven(self, rounds: int) -> Array:
        """(T,) the bound that holds; infinite where gradients of devices differ without bound."""
        count = np.arange(1, rounds + 1)
        if len(set(self.problem.curvature)) > 1:
            return np.full(rounds, np.inf)
        return optimality_bound(count, self.run, self.problem.constants(self.start), self.problem.convexity)


ROUNDS = 400
"""How many are looked at."""

_OPPOSITE, _UNLIKE, _ALONE = (
    Quadratics((1.0, 1.0), (1.0, -1.0)),
    Quadratics((1.0, 2.0), (2.0, -1.0)),
    Quadratics((1.0,), (0.0,)),
)

FROM_THE_MINIMUM = {
    "1 of 2 devices, no noise, τ = 1": Case(LocalSgd(0.1, 1, 2, 1, 1, 1), _OPPOSITE),
    "2 of 2 devices, no noise, τ = 2": Case(LocalSgd(0.05, 2, 2, 2, 1, 1), _UNLIKE),
    "1 device, σ = 1, τ = 1": Case(LocalSgd(0.15, 1, 1, 1, 1, 1, noise_std=1.0), _ALONE),
}
"""Only the terms of noise and batches are left in the bound. 5 η L + 3 τ² η² L² ≤ 1 in each."""

ROUNDING = 1e-15
"""What floating point may add to a gap of 0."""

ALIKE = tuple(
    Case(LocalSgd(step, steps, 3, chosen, 1, 1), Quadratics((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), 2.0)
    for step in (0.01, 0.05, 0.1)
    for steps in (1, 2, 4)
    for chosen in (1, 3)
)
"""Devices with one and the same objective, without noise."""


# --- checks ----------------------------------------------------------------------------------------------------------


def _excess(measured: Array, bound: Array) -> float:
    """The largest quotient of what is exact and its bound; infinite where the bound is 0 and the gap is not."""
    above = measured > ROUNDING
    with np.errstate(divide="ignore"):
        return float((measured[above] / bound[above]).max(initial=0.0))


def _lemma_6(tables: Tables) -> Verdict:
    told, broken, factors = [], [], []
    for name, case in FROM_THE_MINIMUM.items():
        measured, printed = case.measured(ROUNDS), case.printed(ROUNDS)
        factors.append(_excess(measured, printed))
        above = np.flatnonzero(measured > printed + ROUNDING)
        told.append(f"{name}: bound {printed[-1]:.3g}, exact {measured[-1]:.3g} after {ROUNDS} rounds")
        if len(above):
            broken.append(f"{name} (from round {above[0] + 1} on)")
    return verdict(
        not broken,
        "from the minimum: " + "; ".join(told),
        f"exact expectations, without runs; the gap lies above the bound for {', '.join(broken) or 'none'}",
        ratio(max(factors), f"exact gap over bound; with noise × {factors[-1]:.3g}"),
    )


def _lemma_6_where_devices_are_alike(tables: Tables) -> Verdict:
    cases = [case for case in ALIKE if np.isfinite(case.printed(1)[0])]
    largest = max(float((case.measured(ROUNDS) / case.printed(ROUNDS)).max()) for case in cases)
    return verdict(
        largest <= 1,
        f"exact gap over printed bound: {largest:.3g} at most; {len(cases)} settings of η, τ and r, {ROUNDS} rounds",
        "gradient descent on one quadratic contracts the gap by (1 − ηλ)² a step, and what it adds up to, "
        "1/(ηλ(2 − ηλ)), is below (1 − ηλ)/(ηλ) for ηλ below 0.38",
        ratio(largest, "exact gap over bound"),
    )


def _mended_lemma_6(tables: Tables) -> Verdict:
    cases = {name: one for name, one in FROM_THE_MINIMUM.items() if np.isfinite(one.proven(1)[0])}
    told, holds, factors = [], [], []
    for name, case in cases.items():
        received, proven = case.received(ROUNDS), case.proven(ROUNDS)
        factors.append(_excess(received, proven))
        holds.append(bool(np.all(received <= proven * (1 + 1e-12))))
        told.append(f"{name}: bound {proven[-1]:.3g}, exact {received[-1]:.3g}")
    return verdict(
        all(holds),
        "; ".join(told),
        "the mended Theorem 2 over 2 λ, for the models that devices receive; it takes gradients that differ by a "
        "bounded ζ, and those of devices of unlike curvature do not",
        ratio(max(factors), "exact gap over bound"),
    )


def _rate_bound(devices: int, iterations: float, variance: float, noise_std: float) -> float:
    """√(nK) times eq. (14) for τ = 1, η = √(n/K), L = f(θ⁰) − f* = γ = d = 1 and all n devices in every round."""
    run = LocalSgd(float(np.sqrt(devices / iterations)), 1, devices, devices, 1, 1, noise_std=noise_std)
    bound = printed_local_sgd_bound(iterations, run, Smoothness(1.0, 1.0, gradient_variance=variance))
    return float(bound) * float(np.sqrt(devices * iterations))


def _rate(tables: Tables) -> Verdict:
    """Eq. (14) at the step that is to give the rate: a constant if the rate holds, for τ = 1 has no other term."""
    iterations, few, many = 1e8, 100, 10_000
    batches = [_rate_bound(devices, iterations, 1.0, 0.0) for devices in (few, many)]
    # At a fixed ε Theorem 1 has σ² proportional to C τ, hence to K
    noises = [_rate_bound(few, iterations * more, 0.0, float(np.sqrt(more))) for more in (1, 100)]
    growth = batches[1] / batches[0]
    return verdict(
        growth <= 1,
        f"√(nK) times eq. (14): {batches[0]:.3g} for {few} devices, {batches[1]:,.0f} for {many:,} with β² = 1 and no "
        f"noise; {noises[0]:.3g} at K and {noises[1]:.3g} at 100 K with σ² ∝ K, as a fixed ε demands by Theorem 1",
        "the term η L β²/(2γ) of eq. (14) has no 1/r and becomes √(n/K); η L d σ²/(2r) falls like the first term, not "
        "like 1/K, so that at a fixed ε the bound does not go to 0",
        ratio(growth, "growth of √(nK) times the bound as n grows a hundredfold"),
    )


def _lemma_5(tables: Tables) -> Verdict:
    told = [
        f"m = γ = {one.samples}, τ = {one.steps}: at most {one.lemma_5:g} ηG, in truth {one.moved:g} ηG"
        for one in UPLOADS
    ]
    return verdict(
        all(one.moved <= one.lemma_5 for one in UPLOADS),
        "; ".join(told),
        "the proof compares gradients at one and the same models; after the first step the models differ, and "
        "so do the gradients of all other samples",
        ratio(max(one.moved / one.lemma_5 for one in UPLOADS), "true over printed reach"),
    )


def _theorem_1(tables: Tables) -> Verdict:
    """By sums alone, whose masks hold and whose arithmetic is exact: nothing here depends on who sees what else."""
    told = [
        f"m = γ = {one.samples}, τ = {one.steps}: published {one.published_epsilon:.3g}, "
        f"exactly {one.exact_epsilon:.3g}"
        for one in UPLOADS
    ]
    holds = [one.exact_epsilon <= one.published_epsilon for one in UPLOADS]
    devices = DEVICES[1]
    published, least = published_epsilon(devices), epsilon_of_sum(devices)
    told.append(f"m = τ = 100, γ = 1, {devices:,} devices: published {published:.3g}, at least {least:.3g}")
    return verdict(
        all((*holds, least <= published)),
        f"ε of the sum at δ = {DELTA:g}: " + "; ".join(told),
        "whole passes as the theorem asks, honest devices, an exact sum and nothing but the sum; the error is "
        "in Lemma 5",
        ratio(
            max(least / published, *(one.exact_epsilon / one.published_epsilon for one in UPLOADS)),
            "true over published ε",
        ),
    )


# --- for the page ----------------------------------------------------------------------------------------------------

THEOREM_1_CLAIM = Claim("Each device has the (ε, δ) of Theorem 1.", "V, Theorem 1", _theorem_1, everywhere=True)

THEORY_CLAIMS = (
    Claim(
        "By eq. (14), η = √(n/K) gives the rate O(1/√(nK)) + O(τ²σ²/K), that of training without privacy.",
        "VI, after Theorem 2",
        _rate,
        everywhere=True,
    ),
    Claim("Exchanging one sample moves an upload by 2ητG/γ at most.", "V, Lemma 5", _lemma_5, everywhere=True),
    Claim("Lemma 6, as printed, bounds the mean optimality gap.", "VI, eq. (15)", _lemma_6, everywhere=True),
    Claim(
        "Lemma 6 holds for devices that are alike, without noise.",
        "ours; VI, eq. (15), on quadratics",
        _lemma_6_where_devices_are_alike,
        everywhere=True,
    ),
    Claim(
        "With the devices' heterogeneity and the missing factor of two in it, the bound of Lemma 6 holds.",
        "ours",
        _mended_lemma_6,
        everywhere=True,
    ),
)

THEORY_TABLE = PaperTable("uploads", "What one sample does to an upload", lambda tables: upload_rows())


def _draw(tables: Tables) -> Figure:
    overlays = {
        name: Overlay(case.measured(ROUNDS), np.zeros(ROUNDS), case.printed(ROUNDS), case.proven(ROUNDS))
        for name, case in FROM_THE_MINIMUM.items()
    }
    return draw_overlays(overlays, "exact mean of E f − f* so far", "optimality gap")


THEORY_FIGURE = PaperFigure(
    "optimality-gap",
    "Lemma 6: the exact optimality gap of three cases that start at the minimum, the bound as printed (0 in the first "
    "two), and the bound that can be proven, which devices of unlike curvature do not have.",
    _draw,
    runs=False,
)
