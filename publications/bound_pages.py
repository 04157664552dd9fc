"""Convergence theorems on the pages: a study, a picture and two claims for each of two papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from publications.bounds import local_sgd_curve, local_sgd_setting, upcycled_curve, upcycled_setting
from publications.claims import Claim, Verdict, verdict
from publications.convergence import (
    local_sgd_bound,
    printed_coefficients,
    printed_local_sgd_bound,
    proven_coefficients,
    upcycled_bound,
)
from publications.effects import MissingRuns, ratio
from publications.figures import legend_below, new_figure
from publications.paper import PaperFigure
from publications.studies import STUDIES, PaperStudy, Point
from publications.tables import StudyTable, Tables, run_at
from wirelessfl.scenario import Scenario
from wirelessfl.study import load_study

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure


Array = NDArray[np.float64]

STUDY = "convergence-bound"
FOLLOWED = "squared_gradient_norm"
_NOTHING = 1e-9
"""Below this a squared gradient is 0 but for rounding, and has no place on a logarithmic axis."""

DATA, LAMBDA, STEPS = "data.dataset.name", "training.algorithm.lambda", "training.steps"


class Overlay(NamedTuple):
    """What a panel shows, each (rounds,), after 1, 2, … rounds.

    Attributes:
        measured: What the theorem bounds, of the mean over seeds.
        half_width: Of its 95 % interval, at most.
        printed: The bound as printed.
        proven: The bound that holds.
        trivial: G², which needs no theorem; None where no G is needed.
    """

    measured: Array
    half_width: Array
    printed: Array
    proven: Array
    trivial: float | None = None


def _curve(table: StudyTable, where: Point) -> tuple[Array, Array]:
    rows = table.curve(where, FOLLOWED)
    return np.array([row.mean for row in rows]), np.array([row.half_width for row in rows])


def _scenario(paper: str, where: Point) -> Scenario:
    """The scenario of a point, with its first seed."""
    design = load_study(STUDIES / paper / "small" / f"{STUDY}.yaml")
    run = run_at(design, where)
    if run is None:
        raise MissingRuns(f"{STUDY}: no run at {dict(where)}")
    return run.scenario


def local_sgd_overlay(tables: Tables, where: Point) -> Overlay:
    """Theorem 2 of the zCDP paper: the mean of ‖∇f‖² over the rounds so far."""
    mean, half = _curve(tables.study(STUDY), where)
    count = np.arange(1, len(mean) + 1)
    run, problem = local_sgd_setting(_scenario("zcdp-secure-aggregation", where))
    return Overlay(
        mean,
        np.nan_to_num(half),
        printed_local_sgd_bound(count, run, problem),
        local_sgd_bound(count, run, problem),
    )


def upcycled_overlay(tables: Tables, where: Point) -> Overlay:
    """Theorem 5 of the over-the-air paper: the least ‖∇f‖² so far."""
    table = tables.study(STUDY)
    mean, half = _curve(table, where)
    best = np.array([int(np.argmin(mean[: at + 1])) for at in range(len(mean))])
    noise = float(np.mean(list(table.by_seed("effective_noise_std", where).values())))
    rounds, clients, gap = upcycled_setting(_scenario("ota-cross-layer-dp", where), noise)
    printed, proven = printed_coefficients(rounds, clients), proven_coefficients(rounds, clients)
    first = slice(0, len(mean))
    return Overlay(
        mean[best],
        np.nan_to_num(half)[best],
        upcycled_bound(printed, gap)[first],
        upcycled_bound(proven, gap)[first],
        clients.gradient_bound**2,
    )


ZCDP_POINTS: Mapping[str, Point] = {
    "1 of 8 devices, f least at the start": {DATA: "publications.clouds:contradicting"},
    "all 8 devices, τ = 1": {DATA: "publications.clouds:overlapping", STEPS: 1},
    "all 8 devices, τ = 5": {DATA: "publications.clouds:overlapping", STEPS: 5},
}
OTA_POINTS: Mapping[str, Point] = {"λ = μ": {LAMBDA: 20}, "λ = 99 μ": {LAMBDA: 1980}}


def draw_overlays(overlays: Mapping[str, Overlay], measured: str, quantity: str = "squared gradient norm") -> Figure:
    """A panel for each case: what was measured, and the bounds, over the rounds."""
    figure, panels = new_figure(len(overlays))
    for axes, (title, one) in zip(panels[0], overlays.items(), strict=True):
        count = np.arange(1, len(one.measured) + 1)
        shown = one.measured > _NOTHING
        axes.plot(count[shown], one.measured[shown], color="C0", linewidth=1.4, label=measured)
        low, high = np.maximum(one.measured - one.half_width, one.measured / 10), one.measured + one.half_width
        axes.fill_between(count[shown], low[shown], high[shown], color="C0", alpha=0.2, linewidth=0)
        axes.plot(count, one.proven, color="C2", linewidth=1.4, label="bound, corrected and proven")
        if np.any(one.printed > 0):
            axes.plot(count, one.printed, color="C3", linewidth=1.4, linestyle="--", label="bound as printed")
        if one.trivial is not None:
            axes.axhline(one.trivial, color="0.5", linewidth=0.9, linestyle=":", label="G², without any theorem")
        axes.set_yscale("log")
        axes.set_xscale("log")
        axes.set_xlabel("rounds", fontsize=8)
        axes.set_title(title, fontsize=8)
        if np.all(one.printed <= 0):
            words = f"bound as printed: {one.printed[-1]:.3g},\n{_off_axis(one.printed[-1])}"
            # In the corner that the measured curve leaves free: it falls to the right, or starts low on the left.
            place, side = (0.03, "left") if one.measured[-1] < one.measured[0] else (0.97, "right")
            axes.text(place, 0.03, words, transform=axes.transAxes, va="bottom", ha=side, fontsize=7)
    panels[0][0].set_ylabel(quantity, fontsize=8)
    legend_below(figure, max(panels[0], key=lambda axes: len(axes.get_legend_handles_labels()[1])), columns=2)
    return figure


def _off_axis(bound: float) -> str:
    return "not on this axis" if bound == 0 else "below zero and off this axis"


def _draw_zcdp(tables: Tables) -> Figure:
    overlays = {title: local_sgd_overlay(tables, where) for title, where in ZCDP_POINTS.items()}
    return draw_overlays(overlays, "measured mean of ‖∇f‖² so far")


def _draw_ota(tables: Tables) -> Figure:
    overlays = {title: upcycled_overlay(tables, where) for title, where in OTA_POINTS.items()}
    return draw_overlays(overlays, "measured least E‖∇f‖² so far")


def _excess(one: Overlay, bound: Array) -> float:
    """The largest quotient of what was measured and its bound; infinite above a bound that is not above 0."""
    above = one.measured > _NOTHING
    if np.any(above & (bound <= 0)):
        return float("inf")
    return float(np.max(one.measured[above] / bound[above], initial=0.0))


def _judge(
    overlay: Callable[[Tables, Point], Overlay], points: Mapping[str, Point], kind: str
) -> Callable[[Tables], Verdict]:
    """Whether a bound lies above what was measured, after every number of rounds."""

    def check(tables: Tables) -> Verdict:
        told, broken, factors = [], [], []
        for title, where in points.items():
            one = overlay(tables, where)
            bound = one.printed if kind == "printed" else one.proven
            surely_above = one.measured - one.half_width > bound
            told.append(f"{title}: bound {bound[-1]:.3g}, measured {one.measured[-1]:.3g} ± {one.half_width[-1]:.2g}")
            factors.append(_excess(one, bound))
            if surely_above.any():
                broken.append(f"{title} (in {int(surely_above.sum())} of {len(bound)} rounds)")
        effect = ratio(max(factors), "measured over bound")
        if broken:
            return verdict(
                False,
                "; ".join(told),
                f"measured lies above the bound, by more than its interval, for {', '.join(broken)}",
                effect,
            )
        reason = "measured never lies above the bound by more than its 95 % interval"
        return verdict(True, "; ".join(told), reason, effect)

    return check


ZCDP_BOUND_STUDY = PaperStudy(
    STUDY,
    "Theorem 2 on softmax regression with known constants",
    sizes=("small",),
    curves={FOLLOWED: local_sgd_curve},
    words={DATA: "data", STEPS: "τ", "clients.selection.count": "r", "training.optimizer.lr": "η"},
)
ZCDP_BOUND_FIGURE = PaperFigure(
    STUDY,
    "Theorem 2: squared gradient norm, its bound as printed, and the bound that can be proven.",
    _draw_zcdp,
)
ZCDP_BOUND_CLAIMS = (
    Claim(
        "Theorem 2, as printed, bounds the mean squared gradient norm.",
        "VI, eq. (14)",
        _judge(local_sgd_overlay, ZCDP_POINTS, "printed"),
        everywhere=True,
    ),
    Claim(
        "With the devices' heterogeneity and the missing factor of two in it, the bound holds.",
        "ours",
        _judge(local_sgd_overlay, ZCDP_POINTS, "proven"),
        everywhere=True,
    ),
)

OTA_BOUND_STUDY = PaperStudy(
    STUDY,
    "Theorem 5 on softmax regression with known constants",
    sizes=("small",),
    curves={FOLLOWED: upcycled_curve},
    words={LAMBDA: "λ"},
)
OTA_BOUND_FIGURE = PaperFigure(
    STUDY,
    "Theorem 5: least squared gradient norm, the bound that can be proven, and G²; as printed the bound is negative.",
    _draw_ota,
)
OTA_BOUND_CLAIMS = (
    Claim(
        "Theorem 5, as printed, bounds the least squared gradient norm.",
        "IV, eqs. (28)-(34)",
        _judge(upcycled_overlay, OTA_POINTS, "printed"),
        everywhere=True,
    ),
    Claim(
        "With L², B² and the clamped C_4 of a corrected proof, the bound holds.",
        "ours, publications.convergence.upcycled",
        _judge(upcycled_overlay, OTA_POINTS, "proven"),
        everywhere=True,
    ),
)
