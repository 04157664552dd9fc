"""Ranaweera et al.: DP-SGD and DP-FedAvg with noise on Haar wavelet coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from publications.descent_pages import ONE_ROUND_FIGURE
from publications.figures import accuracy_axis, legend_below, new_figure
from publications.haar_section import SECTION_TABLE
from publications.levels import DATASET, Method, draw_levels, levels_of
from publications.paper import Paper, PaperFigure, PaperTable
from publications.spectrum import draw_spectra, spectrum_rows
from publications.studies import AtEqualEpsilon, AuditOf, PaperStudy, Point
from publications.tables import Tables
from publications.tuning_runs import tuned_studies
from publications.wavelet_claims import CLAIMS
from publications.wavelet_methods import (
    DP_SGD,
    DYNAMIC,
    FEDAVG,
    FEDAVG_DYNAMIC,
    FEDAVG_WAV,
    FEDAVG_WEIGHTED,
    KEYS,
    MECHANISM,
    OPTIMIZER,
    PLAIN,
    PLAIN_WAV,
    PLAIN_WEIGHTED,
    SIGMA,
    WAV,
    WEIGHTED,
    WORDS,
    gain_rows,
)
from publications.wavelet_numbers import stated_epsilon_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _accuracy(tables: Tables) -> Figure:
    figure, panels = new_figure(2, 2)
    panes = (
        ("SGD, a sample's privacy", (DP_SGD, DYNAMIC, WAV, WEIGHTED)),
        ("Adam, a sample's privacy", (PLAIN["adam"], None, PLAIN_WAV["adam"], PLAIN_WEIGHTED["adam"])),
        ("AdaGrad, a sample's privacy", (PLAIN["adagrad"], None, PLAIN_WAV["adagrad"], PLAIN_WEIGHTED["adagrad"])),
        ("FedAvg, a client's privacy", (FEDAVG, FEDAVG_DYNAMIC, FEDAVG_WAV, FEDAVG_WEIGHTED)),
    )
    labels = ("plain", "dynamic", "wavelets, as published", "wavelets at equal accounted ε")
    for axes, (title, methods) in zip((*panels[0], *panels[1]), panes, strict=True):
        lines = [(label, method or Method("")) for label, method in zip(labels, methods, strict=True)]
        draw_levels(axes, tables, lines, levels_of(tables, WAV, KEYS))
        axes.set_ylim(0, 100)
        axes.set_title(title, fontsize=8)
    for axes in panels[:, 0]:
        accuracy_axis(axes)
    for axes in panels[1]:
        axes.set_xlabel("noise multiplier σ", fontsize=8)
    legend_below(figure, panels[0][0], columns=2)
    return figure


def _spectrum(tables: Tables) -> Figure:
    figure, panels = new_figure(2, share_y=False)
    draw_spectra(panels[0][0], panels[0][1])
    legend_below(figure, panels[0][0], columns=2)
    return figure


def _at_mnist(study: str, *keys: str) -> AtEqualEpsilon:
    """The weighted run at the same level, for wavelets only: plain noise is at equal accounted ε already."""

    def place(point: Point) -> Point | None:
        return {key: point[key] for key in (*KEYS, *keys)} if point.get(MECHANISM) == "wavelet" else None

    return AtEqualEpsilon(study, place)


TRIALS = 60
AUDIT_ONE = (AuditOf({DATASET: "mnist", SIGMA: 1}, TRIALS),)
AUDIT_BOTH = tuple(AuditOf({**AUDIT_ONE[0].point, MECHANISM: noise}, TRIALS) for noise in ("gaussian", "wavelet"))

WAVELET = Paper(
    name="wavelet-dp-fl",
    title="Federated Learning with Differential Privacy: An Utility-Enhanced Approach",
    reference="Ranaweera, Nguyen, Pathirana, Smith, Ding, Rakotoarivelo, Seneviratne, 2025",
    studies=(
        PaperStudy("baseline", "without privacy", words=WORDS),
        PaperStudy(
            "sample",
            "DP-SGD and DP-SGD-WAV as published (Fig. 7-9)",
            equal=_at_mnist("weighted"),
            audits=AUDIT_BOTH,
            words=WORDS,
        ),
        PaperStudy("dynamic", "Dyn-DP-SGD (Fig. 7-9)", audits=AUDIT_ONE, words=WORDS),
        PaperStudy(
            "optimizers",
            "DP-Adam and DP-AdaGrad with and without wavelets (Table 3)",
            equal=_at_mnist("weighted-optimizers", OPTIMIZER),
            words=WORDS,
        ),
        PaperStudy(
            "client",
            "DP-FedAvg and DP-FedAvg-WAV as published (Fig. 10-12)",
            equal=_at_mnist("weighted-client"),
            audits=AUDIT_BOTH,
            words=WORDS,
        ),
        PaperStudy("client-dynamic", "Dyn-DP-FedAvg (Fig. 10-12)", words=WORDS),
        PaperStudy("weighted", "DP-SGD-WAV at equal accounted ε", audits=AUDIT_ONE, words=WORDS),
        PaperStudy("weighted-optimizers", "DP-Adam-WAV and DP-AdaGrad-WAV at equal accounted ε", words=WORDS),
        PaperStudy("weighted-client", "DP-FedAvg-WAV at equal accounted ε", audits=AUDIT_ONE, words=WORDS),
        PaperStudy("dynamic-equal", "Dyn-DP-SGD at equal accounted ε", sizes=("small",), words=WORDS),
        PaperStudy("third", "DP-SGD with a third of the multiplier and √3 times the norm", words=WORDS),
        PaperStudy("fifth", "DP-SGD with a fifth of the multiplier and twice the norm", words=WORDS),
        *tuned_studies("wavelet-dp-fl"),
    ),
    claims=CLAIMS,
    figures=(
        PaperFigure(
            "accuracy",
            "Test accuracy after the last round, 95 % intervals over seeds, by noise multiplier and data set.",
            _accuracy,
        ),
        PaperFigure(
            "spectrum",
            "Left: on which level of the Haar transform the squared norm of a sample's gradient lies. Right: the noise "
            "energy that follows, over that of flat noise at equal accounted ε and equally large gradients.",
            _spectrum,
        ),
        ONE_ROUND_FIGURE,
    ),
    tables=(
        PaperTable("gains", "What wavelets gain: in the paper, and here", gain_rows),
        PaperTable("spectrum", "When the transform helps at equal accounted ε", spectrum_rows),
        PaperTable("stated-epsilons", "What the stated ε imply", lambda tables: stated_epsilon_rows()),
        SECTION_TABLE,
    ),
)
