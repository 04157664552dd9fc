"""Ranaweera et al.: DP-SGD and DP-FedAvg with noise on Haar wavelet coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from publications.descent_pages import ONE_ROUND_FIGURE
from publications.figures import legend_below, new_figure
from publications.haar_section import SECTION_TABLE
from publications.levels import DATASET
from publications.paper import Paper, PaperFigure, PaperTable
from publications.spectrum import draw_spectra, spectrum_rows
from publications.studies import SIZES, AtEqualEpsilon, AuditOf, PaperStudy, Point
from publications.tables import Tables
from publications.tuning_runs import tuned_studies
from publications.wavelet_claims import CLAIMS
from publications.wavelet_convergence import convergence_rows
from publications.wavelet_lemmas import BOUND_TABLE, DENSITY_FIGURE
from publications.wavelet_methods import CLIENT_WORDS, KEYS, MECHANISM, OPTIMIZER, SIGMA, WORDS, gain_rows
from publications.wavelet_numbers import stated_epsilon_rows
from publications.wavelet_pictures import PICTURES
from publications.wavelet_setting import COVERAGE, SETTING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        PaperStudy("baseline", "without privacy (Fig. 7-9)", sizes=SIZES, words=WORDS),
        PaperStudy(
            "client-baseline", "clients of a client's privacy, without it (Fig. 10-12)", sizes=SIZES, words=WORDS
        ),
        PaperStudy(
            "sample",
            "DP-SGD and DP-SGD-WAV as published (Fig. 7-9)",
            equal=_at_mnist("weighted"),
            audits=AUDIT_BOTH,
            sizes=SIZES,
            words=WORDS,
        ),
        PaperStudy("dynamic", "Dyn-DP-SGD (Fig. 7-9)", audits=AUDIT_ONE, sizes=SIZES, words=WORDS),
        PaperStudy(
            "optimizers",
            "DP-Adam and DP-AdaGrad with and without wavelets (Table 3)",
            equal=_at_mnist("weighted-optimizers", OPTIMIZER),
            sizes=SIZES,
            words=WORDS,
        ),
        PaperStudy(
            "client",
            "DP-FedAvg and DP-FedAvg-WAV as published (Fig. 10-12)",
            equal=_at_mnist("weighted-client"),
            audits=AUDIT_BOTH,
            sizes=SIZES,
            words=CLIENT_WORDS,
        ),
        PaperStudy("client-dynamic", "Dyn-DP-FedAvg (Fig. 10-12)", sizes=SIZES, words=CLIENT_WORDS),
        PaperStudy(
            "client-gradients",
            "DP-FedAvg and DP-FedAvg-WAV, gradients clipped (Algorithm 2)",
            sizes=SIZES,
            words=CLIENT_WORDS,
        ),
        PaperStudy("client-unclipped", "DP-FedAvg-WAV without any clipping", words=CLIENT_WORDS),
        PaperStudy("median", "DP-SGD and DP-SGD-WAV with the median norm (section 6.1)", sizes=SIZES, words=WORDS),
        PaperStudy("client-clip", "DP-FedAvg-WAV at equal accounted ε, by C", sizes=("small",), words=CLIENT_WORDS),
        PaperStudy("weighted", "DP-SGD-WAV at equal accounted ε", audits=AUDIT_ONE, words=WORDS),
        PaperStudy("weighted-optimizers", "DP-Adam-WAV and DP-AdaGrad-WAV at equal accounted ε", words=WORDS),
        PaperStudy("weighted-client", "DP-FedAvg-WAV at equal accounted ε", audits=AUDIT_ONE, words=CLIENT_WORDS),
        PaperStudy("dynamic-equal", "Dyn-DP-SGD at equal accounted ε", sizes=("small",), words=WORDS),
        PaperStudy("third", "DP-SGD with a third of the multiplier and √3 times the norm", words=WORDS),
        PaperStudy("fifth", "DP-SGD with a fifth of the multiplier and twice the norm", words=WORDS),
        *tuned_studies("wavelet-dp-fl"),
    ),
    claims=CLAIMS,
    figures=(
        *PICTURES,
        PaperFigure(
            "spectrum",
            "Left: on which level of the Haar transform the squared norm of a sample's gradient lies. Right: the noise "
            "energy that follows, over that of flat noise at equal accounted ε and equally large gradients.",
            _spectrum,
            runs=False,
        ),
        DENSITY_FIGURE,
        ONE_ROUND_FIGURE,
    ),
    tables=(
        PaperTable("gains", "What wavelets gain: in the paper, and here", gain_rows),
        PaperTable("spectrum", "When the transform helps at equal accounted ε", spectrum_rows),
        PaperTable("stated-epsilons", "What the stated ε imply", lambda tables: stated_epsilon_rows()),
        SECTION_TABLE,
        BOUND_TABLE,
        PaperTable("convergence", "When accuracies are reached", convergence_rows),
    ),
    setting=SETTING,
    coverage=COVERAGE,
)
