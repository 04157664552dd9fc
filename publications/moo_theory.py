"""What the paper on multi-objective clipping proves about its clipping norm, against functions of one variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from publications.claims import Claim, Verdict, verdict
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
from publications.descent_pages import one_round_claims
from publications.effects import margin
from publications.figures import COLOURS, new_figure
from publications.paper import PaperFigure
from publications.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

STEPS = np.linspace(0.05, 2.0, 40)
"""η in units of 1/L: all of the interval that Lemma 2 allows."""

COUNT = np.arange(0, 31)
"""Numbers of steps that are looked at."""

EXAMPLE_STEP = 0.75
"""η L of the example by hand."""


def _lemma_2(tables: Tables) -> Verdict:
    one, exact = (float(law(1, EXAMPLE_STEP, 1.0, 0.0, 1.0)) for law in (printed_norm_bound, quadratic_gap))
    broken = [step for step in STEPS if quadratic_gap(1, step, 1.0, 0.0, 1.0) > printed_norm_bound(1, step, 1, 0, 1)]
    longest = quadratic_gap(COUNT, 2.0, 1.0, 0.0, 1.0)
    floor, left = (float(law(1, 0.25, 4.0, 1.0, 0.0)) for law in (printed_norm_bound, quadratic_gap))
    return verdict(
        not broken and left <= floor,
        f"ℒ = L(C − C*)²/2, no noise, η = {EXAMPLE_STEP}/L: one step multiplies the gap by {exact:.4g}, the lemma says "
        f"{one:.2g}; broken after one step for {len(broken)} of {len(STEPS)} step sizes up to 2/L; at η = 2/L the gap "
        f"after {COUNT[-1]} steps is {longest[-1]:.3g} of that at the start; μ = L = 4, η = 1/4, σ_g = 1 from the "
        f"minimum: gap {left:.4g} after one step, the lemma says {floor:.4g}",
        "the term Lη²/2 of eq. (30) was lost, and a factor L of the floor",
        margin(one - exact, f"factor on the gap, the lemma's less the exact one at η = {EXAMPLE_STEP}/L"),
    )


def _mended_lemma_2(tables: Tables) -> Verdict:
    excess = []
    for step in STEPS[STEPS < 2]:
        for variance in (0.0, 1.0):
            bound = norm_bound(COUNT, float(step), 1.0, 1.0, variance, 1.0)
            excess.append(float((quadratic_gap(COUNT, float(step), 1.0, variance, 1.0) - bound).max()))
    norm, wavy = 9.0, []
    bound = norm_bound(COUNT, 0.05, WAVY_SMOOTHNESS, WAVY_GROWTH, 0.0, float(wavy_loss(norm)))
    for limit in bound:
        wavy.append(float(wavy_loss(norm)) - float(limit))
        norm -= 0.05 * float(wavy_slope(norm))
    return verdict(
        max(*excess, *wavy) <= 1e-12,
        f"gap less bound: {max(excess):.2g} at most on quadratics ({len(excess)} settings, attained), "
        f"{max(wavy[1:]):.2g} on a PL function that is not convex",
        "factor 1 − μη(2 − Lη) and floor Lησ_g²/(2μ(2 − Lη)), for 0 < η < 2/L",
        margin(-max(*excess, *wavy), "bound less gap, the least (rounding)"),
    )


WAVY_SMOOTHNESS, WAVY_GROWTH = 8.0, 1 / 32
"""L and μ of `wavy_loss` (Karimi, Nutini, Schmidt 2016)."""

GRID = np.linspace(0.01, 8.0, 7991)
"""Clipping norms."""


def growth_of_the_wavy_loss() -> float:
    """The least ½ℒ'²/(ℒ − ℒ*) on the grid: PL holds with every μ up to it."""
    loss = wavy_loss(GRID)
    away = loss > 1e-9
    return float((0.5 * wavy_slope(GRID[away]) ** 2 / loss[away]).min())


def minimisers(kappa: float) -> Array:
    """Grid points at which ℒ_model + κC is least, to within 10⁻⁵, one for each valley."""
    loss = wavy_loss(GRID) + kappa * GRID
    inner = (loss[1:-1] < loss[:-2]) & (loss[1:-1] <= loss[2:])
    valleys = np.flatnonzero(inner) + 1
    return np.asarray(GRID[valleys[loss[valleys] <= loss.min() + 1e-5]])


def _unique(tables: Tables) -> Verdict:
    found = minimisers(np.pi)
    slope = true_derivative(lambda norm: float(wavy_slope(norm)), float(np.pi))
    ends = [descend(slope, start, 0.05, 2000) for start in (0.5, 6.0)]
    return verdict(
        len(found) == 1,
        f"ℒ_model = (C − 4)² + 3 sin²(C − 4), PL with μ = {growth_of_the_wavy_loss():.3g} on the grid, κ = π: least at "
        f"C = {' and '.join(f'{one:.2f}' for one in found)}; gradient steps from 0.5 end at {ends[0]:.2f}, from 6 at "
        f"{ends[1]:.2f}",
        "a linear term destroys PL; with C = 4 − π/2 + y the loss is y² + 3 cos² y, which is even and largest between",
        margin(-abs(ends[1] - ends[0]), "0 less the distance between the ends of two descents"),
    )


CLIPPED_AT, KAPPA, FAR = 3.0, 0.5, 100.0
"""ℒ_model = (C − 3)²/2, least at 3; the price κ of a unit of C; and a norm that no loss here asks for."""


def _derivative(tables: Tables) -> Verdict:
    def slope(norm: float) -> float:
        return norm - CLIPPED_AT

    least = CLIPPED_AT - KAPPA
    stationary, fall = CLIPPED_AT / (1 - KAPPA), CLIPPED_AT / (1 + KAPPA)
    printed = printed_derivative(slope, KAPPA)
    low, high = (descend(printed, start, 0.1, 10_000, most=FAR) for start in (5.0, 7.0))
    kept = descend(true_derivative(slope, KAPPA), 5.0, 0.1, 1000)
    other = descend(printed_derivative(lambda norm: -slope(norm), KAPPA), 5.0, 0.1, 1000)
    return verdict(
        abs(printed(least)) < 1e-9 and abs(stationary - least) < 1e-9,
        f"ℒ_model = (C − 3)²/2, κ = 1/2: ℒ is least at C = {least:g}, where the derivative of (9) leads ({kept:.3g}); "
        f"eq. (19) gives {stationary:g}, from which eq. (11) leads away, from 5 to {low:g} and from 7 "
        f"{f'beyond {FAR:g}' if np.isinf(high) else f'to {high:g}'}; with the sign turned it gives {fall:g} "
        f"and leads to {other:.3g}",
        "the sign of ∂ℒ_model/∂C is turned and a factor 1/C is added; neither sign gives the minimiser of (9)",
        margin(-abs(printed(least)), "0 less the size of eq. (10) at the minimiser of (9)"),
    )


THEORY_CLAIMS = (
    Claim(
        "The clipping norm converges as Lemma 2 says, for every 0 < η ≤ 2/L.",
        "IV-C, Lemma 2, eq. (28)",
        _lemma_2,
        everywhere=True,
    ),
    Claim(
        "With the lost term and the lost factor L, Lemma 2 holds.",
        "ours",
        _mended_lemma_2,
        everywhere=True,
    ),
    Claim(
        "ℒ_model + κC has a unique minimiser, to which gradient steps lead.",
        "IV-B, eqs. (13)-(19)",
        _unique,
        everywhere=True,
    ),
    Claim(
        "Eq. (10) is the derivative of the composite loss of eq. (9).",
        "IV-A, IV-B, eqs. (10), (18)",
        _derivative,
        everywhere=True,
    ),
    *one_round_claims("Lemma 1", "IV-C, eq. (23)"),
)


def _draw(tables: Tables) -> Figure:
    figure, panels = new_figure(2, share_y=False)
    left, right = panels[0]
    left.plot(STEPS, (1 - STEPS) ** 2, color=COLOURS[0], label="exact, and the mended bound")
    left.plot(STEPS, 1 - 2 * STEPS, color=COLOURS[1], linestyle="--", label="Lemma 2 as printed")
    left.axhline(0, color="0.5", linewidth=0.7)
    left.set_xlabel("step size, η L", fontsize=8)
    left.set_ylabel("factor on the gap, one step", fontsize=8)
    left.set_title("ℒ = L(C − C*)²/2", fontsize=8)
    left.legend(fontsize=6.5)
    shown = GRID[(GRID > 0.4) & (GRID < 5.5)]
    right.plot(shown, wavy_loss(shown), color="0.5", linestyle=":", label="ℒ_model, PL")
    right.plot(shown, wavy_loss(shown) + np.pi * shown, color=COLOURS[2], label="ℒ_model + πC")
    least = minimisers(np.pi)
    right.plot(least, wavy_loss(least) + np.pi * least, "o", color=COLOURS[1], markersize=5, label="its minimisers")
    right.set_xlabel("clipping norm C", fontsize=8)
    right.set_ylabel("loss", fontsize=8)
    right.set_title("(C − 4)² + 3 sin²(C − 4)", fontsize=8)
    right.legend(fontsize=6.5)
    return figure


THEORY_FIGURE = PaperFigure(
    "clipping-norm",
    "Left: by what a step on C multiplies the gap of a quadratic, and what Lemma 2 says, which is below zero from "
    "η = 1/(2L) on. Right: a model loss with the PL inequality whose composite has two minimisers.",
    _draw,
    runs=False,
)
