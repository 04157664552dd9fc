"""Mao, Yin, Yener, Liu: differential privacy for federated learning over the air, by power control and a jammer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirelessfl.papers.claims import Claim, Comparison, greater
from wirelessfl.papers.figures import accuracy_axis, draw_curves, legend_below, new_figure, note
from wirelessfl.papers.paper import Paper, PaperFigure, PaperStudy, Point
from wirelessfl.papers.tables import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHM, POLICY = "training.algorithm.name", "uplink.power_control.policy"
EPSILON, DELTA = "uplink.power_control.epsilon", "privacy.delta"

WORDS = {
    ALGORITHM: "algorithm",
    POLICY: "power control",
    EPSILON: "target ε",
    DELTA: "δ",
    "upcycled": "Upcycled-FL",
    "fedprox": "FedProx",
    "fedavg": "FedAvg",
}
PAIRS = ((6.52, 1e-5), (4.4, 0.01))

ALONE = "without-jammer"


def _alone(algorithm: str, pair: tuple[float, float], policy: str = "cross_layer") -> tuple[str, Point]:
    return ALONE, {ALGORITHM: algorithm, POLICY: policy, EPSILON: pair[0], DELTA: pair[1]}


def _without_jammer(tables: Tables) -> Figure:
    figure, panels = new_figure(len(PAIRS))
    for axes, pair in zip(panels[0], PAIRS, strict=True):
        lines = [
            ("Upcycled-FL", _alone("upcycled", pair)[1]),
            ("FedProx", _alone("fedprox", pair)[1]),
            ("FedAvg", _alone("fedavg", pair)[1]),
            ("baseline [13]", _alone("fedavg", pair, "privacy_for_free")[1]),
        ]
        draw_curves(axes, tables.study(ALONE), lines)
        note(axes, f"ε = {pair[0]}, δ = {pair[1]:g}")
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


OTA = Paper(
    name="ota-cross-layer-dp",
    title="Providing Differential Privacy for Federated Learning Over Wireless: A Cross-layer Framework",
    reference="Mao, Yin, Yener, Liu, 2024",
    studies=(
        PaperStudy(ALONE, "four algorithms on receiver noise alone (Fig. 2-5)", words=WORDS),
        PaperStudy(
            "twenty-epochs",
            "the same with the paper's 20 local epochs, on fewer samples",
            words=WORDS,
            sizes=("small",),
        ),
        PaperStudy("with-jammer", "three algorithms with the jammer, margin 7 (Fig. 6-8)", words=WORDS),
        PaperStudy("iid-synthetic", "FedAvg on iid data at (0.15, 0.01) (Fig. 9-10)", words=WORDS),
        PaperStudy("equal-epsilon", "noise for the sensitivity of whole updates", words=WORDS),
        PaperStudy("gradient-step", "one step of clipped gradients: the theorem, and exact calibration", words=WORDS),
    ),
    claims=(
        Claim(
            "Upcycled-FL is more accurate than FedProx.",
            "V-A, Fig. 2 and 4",
            greater(
                *(Comparison(f"ε = {pair[0]}", _alone("upcycled", pair), _alone("fedprox", pair)) for pair in PAIRS)
            ),
        ),
    ),
    figures=(PaperFigure("without-jammer", "Test accuracy without a jammer, after Fig. 2 and 4.", _without_jammer),),
)
