"""What Theorem 5 of the over-the-air paper, corrected, says for every λ: against ‖∇f‖² ≤ G², which needs no theorem.

After many rounds, without noise, jammer and back-off, the corrected bound is (C_2 + C_3 + C_4)/C_1. Since C_1 ≤ 1/(2μ),
C_2 ≥ μ/(μ + λ) q G and q ≥ G/μ (a local solution moves by up to G/μ), it is at least 2 G²/(1 + λ/μ): at least G² where
λ ≤ μ. That is all that can be said of λ alone: for μ far above L the bound comes as close to 2 G²/(1 + λ/μ) as one
likes, so that from λ > μ on it can say something.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from publications.claims import Claim, Verdict, verdict
from publications.clouds import separated
from publications.convergence import (
    Heterogeneity,
    SoftmaxRegression,
    UpcycledRounds,
    proven_coefficients,
    upcycled_movement,
)
from publications.effects import ratio
from publications.figures import COLOURS, legend_below, new_figure
from publications.paper import PaperFigure
from publications.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

PROX, OWN_PROX = (20.0, 100.0, 1000.0), 0.1
"""μ of the runs beside Theorem 5 and larger ones; and the paper's, in its section V-A."""

OF_THE_PAPER = (1.5, 4.0, 9.0, 19.0)
"""λ/μ: 0.15, 0.4, 0.9 and 1.9 over 0.1 (section V-A)."""


@cache
def clouds() -> SoftmaxRegression:
    """The clouds of the runs beside Theorem 5, by class on four clients with 20 samples each."""
    examples = separated().train
    order = np.argsort(examples.targets.numpy(), kind="stable")
    inputs = examples.inputs.numpy().astype(np.float64)[order]
    return SoftmaxRegression(inputs, examples.targets.numpy()[order], np.arange(len(order)) // 20, 2)


def over_trivial(mu: float, share: float) -> float:
    """The corrected bound after many rounds over G²; infinite where C_1 is not above 0.

    Args:
        mu: μ.
        share: λ/μ.
    """
    problem = clouds()
    bounds, weight = problem.gradient_bounds(), problem.weight
    scaled = np.ones((2, len(weight)))
    clients = Heterogeneity(
        smoothness=problem.smoothness(),
        convexity=mu,
        gradient_bound=float(bounds @ weight),
        dissimilarity=problem.dissimilarity(np.eye(problem.inputs.shape[1] + 1)[0]),
        deviation=problem.deviations(),
        weight=weight,
    )
    rounds = UpcycledRounds(
        prox_mu=mu,
        lam=np.array([share * mu]),
        scaled_backoff=scaled,
        jammer_noise_std=np.zeros(2),
        receiver_noise_std=0.0,
        dimension=problem.dimension,
        movement=upcycled_movement(bounds, weight, scaled, mu, np.zeros(2), problem.dimension),
    )
    one = proven_coefficients(rounds, clients)
    if one.c1 <= 0:
        return np.inf
    return float((one.c2 + one.c3 + one.c4 + one.c5)[0] / one.c1 / clients.gradient_bound**2)


def _small_ratios(tables: Tables) -> Verdict:
    found = {share: min(over_trivial(mu, share) for mu in PROX) for share in (0.01, 0.1, 0.5, 1.0)}
    return verdict(
        min(found.values()) >= 1,
        f"least bound over G², μ from {PROX[0]:g} to {PROX[-1]:g}: "
        + ", ".join(f"{value:.3g} at λ/μ = {share:g}" for share, value in found.items()),
        "C_2/C_1 alone is at least 2 G²/(1 + λ/μ)",
        ratio(1 / min(found.values()), "G² over bound, the largest"),
    )


def _ratios_of_the_paper(tables: Tables) -> Verdict:
    told, largest = [], []
    for mu in (OWN_PROX, *PROX):
        found = [over_trivial(mu, share) for share in OF_THE_PAPER]
        largest.append(max(found))
        told.append(f"μ = {mu:g}: " + ", ".join("∞" if np.isinf(one) else f"{one:.2g}" for one in found))
    return verdict(
        largest[-1] < 1,
        f"bound over G² at λ/μ = {', '.join(f'{one:g}' for one in OF_THE_PAPER)}; {'; '.join(told)}",
        "it depends on μ over L: for large μ the bound is 2 G²/(1 + λ/μ), below G² from λ > μ on; for the paper's own "
        "μ it is infinite on these data, as C_1 is not above 0",
        ratio(largest[-1], f"bound over G², the largest at μ = {PROX[-1]:g}"),
    )


REPETITION_CLAIMS = (
    Claim(
        "With λ ≤ μ and q = G/μ, which a local solution can move by, the corrected Theorem 5 says no more than "
        "‖∇f‖² ≤ G².",
        "ours, publications.repetition",
        _small_ratios,
        everywhere=True,
    ),
    Claim(
        "At the paper's λ/μ, from 1.5 to 19, it says more than that where μ is large against L.",
        "ours, publications.repetition",
        _ratios_of_the_paper,
        everywhere=True,
    ),
)


def _draw(tables: Tables) -> Figure:
    figure, panels = new_figure(1)
    axes = panels[0][0]
    ratios = np.geomspace(0.1, 200, 61)
    for at, mu in enumerate(PROX):
        bound = [over_trivial(mu, float(ratio)) for ratio in ratios]
        axes.plot(ratios, bound, color=COLOURS[at], linewidth=1.4, label=f"corrected bound, μ = {mu:g}")
    axes.plot(ratios, 2 / (1 + ratios), color="black", linewidth=0.9, linestyle="--", label="2/(1 + λ/μ)")
    axes.axhline(1, color="0.5", linewidth=0.9, linestyle=":", label="G², without any theorem")
    axes.axvspan(OF_THE_PAPER[0], OF_THE_PAPER[-1], color="0.5", alpha=0.12, linewidth=0)
    axes.text(np.sqrt(OF_THE_PAPER[0] * OF_THE_PAPER[-1]), 0.03, "the paper's", ha="center", fontsize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("λ/μ", fontsize=8)
    axes.set_ylabel("bound over G²", fontsize=8)
    legend_below(figure, axes, columns=2)
    return figure


REPETITION_FIGURE = PaperFigure(
    "repetition",
    "What the corrected Theorem 5 comes to after many rounds, over G², without noise, jammer and back-off.",
    _draw,
    runs=False,
)
