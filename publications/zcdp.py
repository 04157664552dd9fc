"""Hu, Guo, Gong: concentrated differential privacy with secure aggregation, on Adult."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from publications.bound_pages import ZCDP_BOUND_FIGURE, ZCDP_BOUND_STUDY
from publications.figures import accuracy_axis, draw_curves, legend_below, new_figure, note
from publications.gradients import GRADIENT_NORM, gradient_norms
from publications.paper import Paper, PaperFigure, PaperTable
from publications.studies import AtEqualEpsilon, AuditOf, FollowedNumber, PaperStudy, Point
from publications.tables import Tables, value_of
from publications.tuning_runs import tuned_studies
from publications.zcdp_claims import CLAIMS
from publications.zcdp_points import (
    EPSILON,
    EPSILONS,
    KINDS,
    LEVELS,
    METHODS,
    STEPS,
    WORDS,
    convergence_point,
    method_point,
    trade_off_point,
)
from publications.zcdp_sum import sum_rows
from publications.zcdp_theory import THEORY_FIGURE, THEORY_TABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES: Mapping[str, Mapping[str, FollowedNumber]] = {"logistic": {}, "network": {GRADIENT_NORM: gradient_norms}}
"""What Figures 4 and 6 show beside accuracy, by kind of model."""

TRADE_OFF_LINES = ("masked, published ε", "plain, published ε", "masked, accounted ε")


def _draw_convergence(tables: Tables) -> Figure:
    figure, panels = new_figure(2, 2, share_y=False)
    for row, (kind, (noises, steps)) in zip(panels, LEVELS.items(), strict=True):
        for axes, tau in zip(row, steps, strict=True):
            names = ("smallest σ", "middle σ", "largest σ")
            lines = [(name, convergence_point(kind, noise, tau)[1]) for name, noise in zip(names, noises, strict=True)]
            draw_curves(axes, tables.study(f"convergence-{kind}"), lines)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(f"{KINDS[kind]}, τ = {tau}, σ = {', '.join(map(str, noises))}", fontsize=6.5)
        accuracy_axis(row[0])
    legend_below(figure, panels[0][0])
    return figure


def _draw_against(tables: Tables) -> Figure:
    figure, panels = new_figure(len(KINDS), share_y=False)
    for axes, (kind, words) in zip(panels[0], KINDS.items(), strict=True):
        lines = [(name, method_point(str(tables.about["size"]), kind, method)) for method, name in enumerate(METHODS)]
        draw_curves(axes, tables.study(f"against-dp-sgd-{kind}"), lines)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title(words, fontsize=8)
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0], columns=2)
    return figure


def _draw_trade_off(tables: Tables) -> Figure:
    figure, panels = new_figure(len(KINDS), share_y=False)
    size = str(tables.about["size"])
    for axes, (kind, words) in zip(panels[0], KINDS.items(), strict=True):
        points: tuple[list[tuple[str, Point]], ...] = (
            [(f"trade-off-{kind}", trade_off_point(size, kind, e, "secure_aggregation")) for e in EPSILONS],
            [(f"trade-off-{kind}", trade_off_point(size, kind, e, "ideal")) for e in EPSILONS],
            [(f"equal-{kind}", {EPSILON: e}) for e in EPSILONS],
        )
        for at, (label, line) in enumerate(zip(TRADE_OFF_LINES, points, strict=True)):
            bands = [tables.band(*point) for point in line]
            axes.errorbar(
                np.array(EPSILONS) * 1.08 ** (at - 1),
                [100 * float(band.mean[0]) for band in bands],
                yerr=[100 * float(np.nan_to_num(band.half_width[0])) for band in bands],
                label=label,
                color=f"C{at}",
                marker="osD"[at],
                markersize=4,
                linewidth=1.0,
                linestyle=("-", "--", ":")[at],
                capsize=2,
            )
        axes.set_xscale("log")
        axes.set_xlabel("ε", fontsize=8)
        note(axes, words)
        axes.margins(y=0.15)
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


def _equal(kind: str) -> AtEqualEpsilon:
    """The run at the accounted ε that a point of the trade-off publishes."""
    published = {
        tuple((key, value_of(value)) for key, value in sorted(point.items())): epsilon
        for size in ("small", "full")
        for epsilon in EPSILONS
        for uplink in ("secure_aggregation", "ideal")
        for point in (trade_off_point(size, kind, epsilon, uplink),)
    }

    def place(point: Point) -> Point:
        return {EPSILON: published[tuple((key, value_of(value)) for key, value in sorted(point.items()))]}

    return AtEqualEpsilon(f"equal-{kind}", place)


def _studies() -> tuple[PaperStudy, ...]:
    figure = {"logistic": ("3", "5", "7"), "network": ("4", "6", "8")}
    studies = [
        PaperStudy(
            f"convergence-{kind}", f"{words} against σ and τ (Fig. {figure[kind][0]})", words=WORDS, curves=CURVES[kind]
        )
        for kind, words in KINDS.items()
    ]
    title = "Logistic regression on features as they stand in the files (Fig. 3)"
    studies.append(PaperStudy("unscaled-logistic", title, sizes=("full",), words=WORDS))
    for kind, words in KINDS.items():
        audits = (AuditOf({STEPS: 10}, trials=40), AuditOf({STEPS: 1}, trials=40)) if kind == "logistic" else ()
        title = f"{words}: the scheme against DP-SGD at ε = 10 (Fig. {figure[kind][1]})"
        studies.append(PaperStudy(f"against-dp-sgd-{kind}", title, audits=audits, words=WORDS, curves=CURVES[kind]))
    for kind, words in KINDS.items():
        title = f"{words}: with and without masks over ε (Fig. {figure[kind][2]})"
        studies.append(PaperStudy(f"trade-off-{kind}", title, equal=_equal(kind), words=WORDS))
    for kind, words in KINDS.items():
        studies.append(PaperStudy(f"equal-{kind}", f"{words} at equal accounted ε", words=WORDS))
    return (*studies, *tuned_studies("zcdp-secure-aggregation"), ZCDP_BOUND_STUDY)


ZCDP = Paper(
    name="zcdp-secure-aggregation",
    title="Concentrated Differentially Private and Utility Preserving Federated Learning",
    reference="Hu, Guo, Gong, 2020",
    studies=_studies(),
    claims=CLAIMS,
    figures=(
        PaperFigure("convergence", "Test accuracy against σ and τ, after Fig. 3 and 4.", _draw_convergence),
        PaperFigure("against-dp-sgd", "The scheme against DP-SGD at ε = 10, after Fig. 5 and 6.", _draw_against),
        PaperFigure("trade-off", "Accuracy over ε with and without masks, after Fig. 7 and 8.", _draw_trade_off),
        ZCDP_BOUND_FIGURE,
        THEORY_FIGURE,
    ),
    tables=(PaperTable("sum-alone", "What an exact sum gives away", lambda tables: sum_rows()), THEORY_TABLE),
)
