"""Mao, Yin, Yener, Liu: differential privacy for federated learning over the air, by power control and a jammer."""

from __future__ import annotations

from publications.bound_pages import OTA_BOUND_FIGURE, OTA_BOUND_STUDY
from publications.ota_claims import CLAIMS
from publications.ota_page import (
    calibration_rows,
    clip_order_rows,
    cost_rows,
    draw_clip,
    draw_cost,
    draw_drift,
    draw_iid,
    draw_iid_losses,
    draw_losses,
    draw_with_jammer,
    draw_without_jammer,
    progress_rows,
)
from publications.ota_points import (
    ALGORITHM,
    ALONE,
    CALIBRATION,
    CLIP,
    DELTA,
    DRIFT,
    EPSILON,
    EQUAL,
    IID,
    JAMMED,
    JAMMER,
    JAMMER_EPSILON,
    NOISELESS,
    POLICY,
    STEP,
    SWEEP,
    UNIT,
)
from publications.ota_setting import COVERAGE, SETTING
from publications.paper import Paper, PaperFigure, PaperTable
from publications.repetition import REPETITION_FIGURE
from publications.studies import AtEqualEpsilon, AuditOf, PaperStudy, Point
from publications.tuning_runs import tuned_studies

WORDS = {
    ALGORITHM: "algorithm",
    POLICY: "power control",
    EPSILON: "target ε",
    DELTA: "δ",
    JAMMER_EPSILON: "target ε",
    CALIBRATION: "calibration",
    CLIP: "clip norm τ",
    UNIT: "unit",
    JAMMER: "jammer",
    "upcycled": "Upcycled-FL",
    "fedprox": "FedProx",
    "fedavg": "FedAvg",
    "cross_layer": "cross-layer",
    "privacy_for_free": "baseline [13]",
    "1e-05": "1e-5",
    "null": "none",
    "{epsilon: 0.15, calibration: exact, noise: real}": "exact, whole updates",
}


def _alone_to_equal(point: Point) -> Point | None:
    """Where the noise of a run without a jammer is set for the true sensitivity; not for the baseline, nor for 4.4."""
    if point[POLICY] != "cross_layer" or point[EPSILON] != "6.52":
        return None
    return {ALGORITHM: point[ALGORITHM], JAMMER_EPSILON: 6.52, UNIT: "sample"}


def _jammed_to_equal(point: Point) -> Point | None:
    return {ALGORITHM: point[ALGORITHM], JAMMER_EPSILON: float(point[JAMMER_EPSILON]), UNIT: "sample"}


def _iid_to_equal(point: Point) -> Point | None:
    cross_layer = point[POLICY] == "cross_layer" and point[JAMMER] == "null"
    return {JAMMER: {"epsilon": 0.15, "calibration": "exact", "noise": "real"}} if cross_layer else None


STUDIES = (
    PaperStudy(
        ALONE,
        "Four algorithms on receiver noise alone (Fig. 2-5)",
        equal=AtEqualEpsilon(EQUAL, _alone_to_equal),
        audits=(AuditOf({ALGORITHM: "fedavg", POLICY: "cross_layer", EPSILON: 6.52}, trials=40),),
        words=WORDS,
    ),
    PaperStudy(
        DRIFT, "The same with the paper's 20 local epochs, on fewer samples and rounds", sizes=("small",), words=WORDS
    ),
    PaperStudy(
        JAMMED,
        "Three algorithms with the jammer, seven times the theorem's gain (Fig. 6-8)",
        equal=AtEqualEpsilon(EQUAL, _jammed_to_equal),
        audits=(AuditOf({ALGORITHM: "fedavg", JAMMER_EPSILON: 1}, trials=40),),
        words=WORDS,
    ),
    PaperStudy(
        IID,
        "FedAvg on iid data at (0.15, 0.01) (Fig. 9-10)",
        equal=AtEqualEpsilon(IID, _iid_to_equal),
        words=WORDS,
    ),
    PaperStudy(
        EQUAL,
        "Jamming for the sensitivity of whole updates: the stated ε is the accounted one",
        audits=(
            AuditOf({ALGORITHM: "fedavg", JAMMER_EPSILON: 1, UNIT: "sample"}, trials=200),
            AuditOf({ALGORITHM: "fedavg", JAMMER_EPSILON: 1, UNIT: "client"}, trials=200),
        ),
        words=WORDS,
    ),
    PaperStudy(
        STEP,
        "One step of per-sample-clipped gradients a round, where the theorem's sensitivity holds",
        audits=(
            AuditOf({JAMMER_EPSILON: 6.52, CALIBRATION: "theorem"}, trials=200),
            AuditOf({JAMMER_EPSILON: 1, CALIBRATION: "exact"}, trials=200),
        ),
        words=WORDS,
    ),
    PaperStudy(NOISELESS, "The three algorithms without noise and without privacy, for comparison", words=WORDS),
    PaperStudy(
        SWEEP,
        "The clip norm of an update, which the paper does not give, at 20 local epochs",
        sizes=("full",),
        words=WORDS,
    ),
)

OTA = Paper(
    name="ota-cross-layer-dp",
    title="Providing Differential Privacy for Federated Learning Over Wireless: A Cross-layer Framework",
    reference="Mao, Yin, Yener, Liu, 2024",
    studies=(*STUDIES, *tuned_studies("ota-cross-layer-dp"), OTA_BOUND_STUDY),
    claims=CLAIMS,
    setting=SETTING,
    coverage=COVERAGE,
    figures=(
        PaperFigure(
            "without-jammer",
            "Receiver noise alone, after Fig. 2 and 4: test accuracy over the rounds, mean and 95 % band over seeds. "
            "Both pairs of ε and δ belong to one and the same noise.",
            draw_without_jammer,
        ),
        PaperFigure(
            "losses",
            "Training loss over the rounds, after Fig. 3 and 5: mean and 95 % band over seeds, logarithmic.",
            draw_losses,
        ),
        PaperFigure("iid-losses", "Training loss on iid data at ε = 0.15, δ = 0.01, after Fig. 10.", draw_iid_losses),
        PaperFigure(
            "clip-sweep",
            "Test accuracy in the first and in the last quarter of the rounds against the clip norm τ, mean and 95 % "
            "interval.",
            draw_clip,
        ),
        PaperFigure(
            "twenty-epochs",
            "The same with the paper's 20 local epochs, on fewer samples and rounds.",
            draw_drift,
        ),
        PaperFigure(
            "with-jammer",
            "With the jammer at seven times the gain of Theorems 2 and 4, after Fig. 6, 7 and 8.",
            draw_with_jammer,
        ),
        PaperFigure("iid-synthetic", "iid synthetic data at ε = 0.15, δ = 0.01, after Fig. 9.", draw_iid),
        PaperFigure(
            "cost",
            "What an ε costs FedAvg: as published (not a guarantee), and where the accounted ε is the one stated.",
            draw_cost,
        ),
        OTA_BOUND_FIGURE,
        REPETITION_FIGURE,
    ),
    tables=(
        PaperTable("progress", "Accuracy after some rounds, on receiver noise alone and without noise", progress_rows),
        PaperTable("clip-order", "Which algorithm leads, by the clip norm", clip_order_rows),
        PaperTable("cost", "What an ε costs FedAvg in accuracy", cost_rows),
        PaperTable("calibration", "The jammer by Theorem 2 and exactly calibrated", calibration_rows),
    ),
)
