"""Hu, Guo, Gong: concentrated differential privacy with secure aggregation, on Adult."""

from __future__ import annotations

from collections.abc import Mapping

from publications.bound_pages import ZCDP_BOUND_FIGURE, ZCDP_BOUND_STUDY
from publications.gradients import GRADIENT_NORM, gradient_norms
from publications.paper import Paper, PaperTable
from publications.studies import AtEqualEpsilon, AuditOf, FollowedNumber, PaperStudy, Point
from publications.tables import value_of
from publications.tuning_runs import tuned_studies
from publications.zcdp_claims import CLAIMS
from publications.zcdp_measured import MEASURED
from publications.zcdp_noise import NOISE_TABLES
from publications.zcdp_page import COVERAGE, FIGURES, SETTING
from publications.zcdp_points import EPSILON, EPSILONS, KINDS, STEPS, WORDS, trade_off_point
from publications.zcdp_sum import sum_rows
from publications.zcdp_theory import THEORY_FIGURE, THEORY_TABLE

CURVES: Mapping[str, Mapping[str, FollowedNumber]] = {"logistic": {}, "network": {GRADIENT_NORM: gradient_norms}}
"""What Figures 4 and 6 show beside accuracy, by kind of model."""


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
            f"convergence-{kind}",
            f"{words} against σ and τ (Fig. {figure[kind][0]})",
            words=WORDS,
            curves=CURVES[kind],
            measured=MEASURED[kind],
        )
        for kind, words in KINDS.items()
    ]
    title = "Logistic regression on features as they stand in the files (Fig. 3)"
    studies.append(PaperStudy("unscaled-logistic", title, sizes=("full",), words=WORDS, measured=MEASURED["logistic"]))
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
    figures=(*FIGURES, ZCDP_BOUND_FIGURE, THEORY_FIGURE),
    tables=(
        PaperTable("sum-alone", "What an exact sum tells of a sample", lambda tables: sum_rows()),
        THEORY_TABLE,
        *NOISE_TABLES,
    ),
    setting=SETTING,
    coverage=COVERAGE,
)
