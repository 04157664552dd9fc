"""The one-round theorem that two papers share, on their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from publications.claims import Claim, Verdict, verdict
from publications.convergence import Federation, noisy_step_bound, printed_step_bound, quadratic_step
from publications.effects import margin, ratio
from publications.figures import COLOURS, legend_below, new_figure
from publications.paper import PaperFigure
from publications.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 0.5
"""η with M = μ = 1: the paper's own condition, λ M η (B_1 + K)/K < 1, is met."""

ALONE = Federation()
"""One client, alike with itself: K = 1, B_1 = B_2 = 0, λ = 1."""

DRIFTING = Federation(growth=0.5, dissimilarity=2.0, diversity=2.0, clients=2, local_steps=2)
"""f_1 = x²/2 and f_2 = 0, weighed alike: L = x²/4."""


def alone(gap: float, noise: float) -> tuple[float, float]:
    """Exact gap after a step of one client on ‖x‖²/2, and the bound as printed; S = ‖∇L‖² + d σ² = 2 gap + d σ²."""
    return quadratic_step(1.0, STEP, gap, noise), printed_step_bound(ALONE, STEP, gap, 2 * gap + noise)


def drifting(step: float) -> tuple[float, float]:
    """Exact gap after the second local step from x = 1 without noise, and the bound as printed."""
    first, second = 1 - step, 1.0
    mean = (first + second) / 2
    gradient = first / 2
    bound = printed_step_bound(DRIFTING, step, mean**2 / 4, gradient**2, earlier=1)
    return (mean - step * gradient) ** 2 / 4, bound


def _as_printed(tables: Tables) -> Verdict:
    at_minimum, bound = alone(0.0, 1.0)
    moved, asked = drifting(0.9)
    return verdict(
        at_minimum <= bound and moved <= asked,
        f"one client at the minimum, M = μ = 1, η = {STEP}, d σ² = 1: bound {bound:.3g}, exact gap {at_minimum:.3g}; "
        f"two clients x²/2 and 0, no noise, η = 0.9, second local step: bound {asked:.3g}, exact gap {moved:.3g}",
        "the proof treats noised gradients as Lipschitz and takes the last gradient for the earlier ones",
        margin(min(bound - at_minimum, asked - moved), "bound less exact gap, the least of two examples"),
    )


def _without_noise(tables: Tables) -> Verdict:
    steps, curvatures = np.linspace(0.05, 1.95, 20), np.linspace(0.1, 1.0, 10)
    excess = []
    for step in steps:
        for weakest in curvatures:  # L = (x² + w y²)/2 from (1, 1)
            gap, squared = (1 + weakest) / 2, 1 + weakest**2
            after = ((1 - step) ** 2 + weakest * (1 - step * weakest) ** 2) / 2
            known = Federation(growth=weakest)
            excess.append(after - printed_step_bound(known, float(step), float(gap), float(squared)))
    return verdict(
        max(excess) <= 1e-12,
        f"exact gap less bound: {max(excess):.3g} at most, {len(excess)} quadratics and step sizes below 2/M",
        "for K = 1 and σ = 0 the theorem is the descent lemma with the PL inequality",
        margin(-max(excess), "bound less exact gap, the least (rounding)"),
    )


def _more_noise(tables: Tables) -> Verdict:
    (_, quiet), (_, noisy) = alone(1.0, 0.0), alone(1.0, 1.0)
    (exact_quiet, _), (exact_noisy, _) = alone(1.0, 0.0), alone(1.0, 1.0)
    return verdict(
        noisy > quiet,
        f"d σ² from 0 to 1 at a gap of 1: bound {quiet:.3g} → {noisy:.3g}, exact gap {exact_quiet:.3g} → "
        f"{exact_noisy:.3g}",
        "σ² stands in eq. (13) in the squared gradient only, whose factor is negative under the condition that the "
        "paper names for convergence",
        margin(noisy - quiet, "bound at d σ² = 1 less that at 0"),
    )


def _mended(tables: Tables) -> Verdict:
    steps, noises = np.linspace(0.05, 1.95, 20), (0.0, 0.1, 1.0, 10.0)
    ratios = [
        quadratic_step(1.0, float(step), 1.0, noise) / noisy_step_bound(1.0, weakest, float(step), 1.0, noise)
        for step in steps
        for noise in noises
        for weakest in (0.2, 1.0)
    ]
    return verdict(
        max(ratios) <= 1 + 1e-12,
        f"exact gap over bound: {max(ratios):.3g} at most, {len(ratios)} settings; 1 is attained",
        "(1 − μη(2 − Mη)) gap + Mη²/2 · variance, for one local step of all clients and η < 2/M",
        ratio(max(ratios), "exact gap over bound, the largest"),
    )


def one_round_claims(name: str, source: str) -> tuple[Claim, ...]:
    """The claims about the theorem under the name and number that a paper gives it."""
    return (
        Claim(f"{name} bounds the optimality gap after a step.", source, _as_printed, everywhere=True),
        Claim(
            f"{name} holds for one client without noise.",
            f"ours; {source}, on quadratics",
            _without_noise,
            everywhere=True,
        ),
        Claim(
            f"With the noise's variance in it, and for one local step, {name} holds.",
            "ours, publications.convergence.one_round",
            _mended,
            everywhere=True,
        ),
    )


NOISE_CLAIM = Claim(
    "A larger σ² raises the bound, so less noise converges better.", "5.3, eq. (13)", _more_noise, everywhere=True
)


def _draw(tables: Tables) -> Figure:
    figure, panels = new_figure(2, share_y=False)
    left, right = panels[0]
    noise = np.linspace(0, 4, 41)
    exact, bound = np.array([alone(1.0, float(one)) for one in noise]).T
    held = [noisy_step_bound(1.0, 1.0, STEP, 1.0, float(one)) for one in noise]
    left.plot(noise, held, color=COLOURS[2], linewidth=3, alpha=0.5, label="bound, corrected and proven")
    left.plot(noise, exact, color=COLOURS[0], label="exact gap")
    left.plot(noise, bound, color=COLOURS[1], linestyle="--", label="bound as printed")
    left.axhline(0, color="0.5", linewidth=0.7)
    left.set_xlabel("variance of the noise, d σ²", fontsize=8)
    left.set_title("one client, η = 1/2, gap 1 before", fontsize=8)
    left.set_ylabel("optimality gap after a step", fontsize=8)
    steps = np.linspace(0.05, 1.0, 39)
    exact, bound = np.array([drifting(float(one)) for one in steps]).T
    right.plot(steps, exact, color=COLOURS[0])
    right.plot(steps, bound, color=COLOURS[1], linestyle="--")
    right.set_xlabel("η", fontsize=8)
    right.set_ylabel("optimality gap after the second step", fontsize=8)
    right.set_title("clients x²/2 and 0, no noise, second step", fontsize=8)
    legend_below(figure, left, columns=3)
    return figure


ONE_ROUND_FIGURE = PaperFigure(
    "one-round",
    "The theorem on one round. Left: as the noise grows, the gap after a step grows and the printed bound falls below "
    "zero. Right: without noise, where one of two clients moves and the other has no gradient; the printed bound falls "
    "below the gap at large η.",
    _draw,
    runs=False,
)
