"""Pictures of the zCDP paper's page, its setting beside ours, and where its figures and theorems stand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from publications.figures import AXES_OF, accuracy_axis, draw_curves, legend_below, new_figure, note
from publications.gradients import GRADIENT_NORM
from publications.paper import Coverage, PaperFigure, Setting
from publications.studies import Point
from publications.tables import Tables
from publications.zcdp_points import (
    EPSILON,
    EPSILONS,
    KINDS,
    METHODS,
    NOISE,
    STEPS,
    method_point,
    trade_off_point,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRADE_OFF_LINES = ("masked, published ε", "plain, published ε", "masked, accounted ε")
SECOND = {"logistic": "train_loss", "network": GRADIENT_NORM}
"""What the paper shows beside accuracy, by kind of model."""


def _draw_convergence(study: str, second: str, tables: Tables) -> Figure:
    """Accuracy above, ``second`` below; a column for each τ, a line for each σ."""
    table = tables.study(study)
    noises, steps = table.levels(NOISE), table.levels(STEPS)
    figure, panels = new_figure(len(steps), 2)
    for row, metric in zip(panels, ("test_accuracy", second), strict=True):
        for axes, tau in zip(row, steps, strict=True):
            draw_curves(axes, table, [(f"σ = {float(one):g}", {NOISE: one, STEPS: tau}) for one in noises], metric)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(f"τ = {tau}", fontsize=8)
        accuracy_axis(row[0], metric)
    legend_below(figure, panels[0][0])
    return figure


def _draw_against(tables: Tables) -> Figure:
    """Accuracy above, training loss or gradient norm below; a column for each kind of model."""
    figure, panels = new_figure(len(KINDS), 2, share_y=False)
    for column, (kind, words) in zip(panels.T, KINDS.items(), strict=True):
        lines = [(name, method_point(str(tables.about["size"]), kind, method)) for method, name in enumerate(METHODS)]
        for axes, metric in zip(column, ("test_accuracy", SECOND[kind]), strict=True):
            draw_curves(axes, tables.study(f"against-dp-sgd-{kind}"), lines, metric)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_ylabel(AXES_OF[metric][0], fontsize=8)
        column[0].set_title(words, fontsize=8)
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


FIGURES = (
    PaperFigure(
        "convergence-logistic",
        "Logistic regression, after Fig. 3: test accuracy (above) and training loss (below) with 95 % bands.",
        partial(_draw_convergence, "convergence-logistic", "train_loss"),
    ),
    PaperFigure(
        "unscaled-logistic",
        "The same on features as they stand in the files.",
        partial(_draw_convergence, "unscaled-logistic", "train_loss"),
    ),
    PaperFigure(
        "convergence-network",
        "Network of three layers, after Fig. 4: test accuracy (above) and gradient norm (below) with 95 % bands.",
        partial(_draw_convergence, "convergence-network", GRADIENT_NORM),
    ),
    PaperFigure(
        "against-dp-sgd",
        "The scheme against DP-SGD at ε = 10, after Fig. 5 (left) and Fig. 6 (right), with 95 % bands.",
        _draw_against,
    ),
    PaperFigure("trade-off", "Accuracy over ε with and without masks, after Fig. 7 and 8.", _draw_trade_off),
)

# --- the paper's setting and its figures -----------------------------------------------------------------------------

_AGAINST, _NETWORK = "against-dp-sgd-logistic", "against-dp-sgd-network"

SETTING = (
    Setting("devices n", "16", "clients.count", _AGAINST),
    Setting("devices a round r", "10", "clients.selection.count", _AGAINST),
    Setting(
        "who takes part",
        "drawn uniformly; in VII-C all equally often (12.5 and 31.25 rounds)",
        "clients.selection.scheme",
        _AGAINST,
    ),
    Setting(
        "samples of a device",
        "3,052: 80 % to train on, 10 % validation, 10 % test",
        ours={
            "small": "500 to train on, the published test file",
            "full": "3,052: 2,442 to train on, 305 for validation, 305 for the test",
        },
    ),
    Setting("fnlwgt among the features", "yes, of 14", "data.dataset.fnlwgt", _AGAINST),
    Setting("scaling of the features", "not stated", "data.dataset.scaling", _AGAINST),
    Setting("hidden layers", "3-layer network, widths not stated", "model.hidden", _NETWORK),
    Setting("gradient norm G", "clipped, not stated", "training.privacy.clip", _AGAINST),
    Setting("learning rate, Fig. 3", "not stated", "training.optimizer.lr", "convergence-logistic"),
    Setting("learning rate, Fig. 4", "not stated", "training.optimizer.lr", "convergence-network"),
    Setting("learning rate, Fig. 5", "not stated", "training.optimizer.lr", _AGAINST),
    Setting("learning rate, Fig. 6", "not stated", "training.optimizer.lr", _NETWORK),
    Setting("learning rate, Fig. 7", "not stated", "training.optimizer.lr", "trade-off-logistic"),
    Setting("learning rate, Fig. 8", "not stated", "training.optimizer.lr", "trade-off-network"),
    Setting("batch γ, Fig. 3, for all τ", "not stated", "training.batch_size", "convergence-logistic"),
    Setting("batch γ, Fig. 4, for all τ", "not stated", "training.batch_size", "convergence-network"),
    Setting("batch γ, Fig. 5", "not stated", "training.batch_size", _AGAINST),
    Setting("batch γ, Fig. 6", "not stated", "training.batch_size", _NETWORK),
    Setting("batch γ, Fig. 7", "not stated", "training.batch_size", "trade-off-logistic"),
    Setting("batch γ, Fig. 8", "not stated", "training.batch_size", "trade-off-network"),
    Setting("δ", "10⁻⁴", "privacy.delta", _AGAINST),
    Setting("masks, Fig. 5 to 8", "from pairwise seeds, agreed once", "uplink.protocol", _AGAINST),
    Setting(
        "masks, Fig. 3, 4",
        "from pairwise seeds, agreed once",
        ours=dict.fromkeys(("small", "full"), "none: they change no sum"),
    ),
    Setting("Fig. 3: rounds", "100", "rounds", "convergence-logistic"),
    Setting("Fig. 3: σ", "10⁻⁵, 10⁻⁴, 5 × 10⁻⁴, 10⁻³", "training.privacy.noise_std", "convergence-logistic"),
    Setting("Fig. 3: τ", "1, 5, 10, 40", "training.steps", "convergence-logistic"),
    Setting("Fig. 4: rounds", "100", "rounds", "convergence-network"),
    Setting("Fig. 4: σ", "10⁻⁴, 10⁻³, 5 × 10⁻³, 10⁻²", "training.privacy.noise_std", "convergence-network"),
    Setting("Fig. 4: τ", "1, 5, 10, 20", "training.steps", "convergence-network"),
    Setting("Fig. 5: rounds", "20", "rounds", _AGAINST),
    Setting("Fig. 5: τ (DP-SGD: 1)", "10", "training.steps", _AGAINST),
    Setting("Fig. 6: rounds", "50", "rounds", _NETWORK),
    Setting("Fig. 6: τ (DP-SGD: 1)", "5", "training.steps", _NETWORK),
    Setting("Fig. 7: rounds", "20", "rounds", "trade-off-logistic"),
    Setting("Fig. 7: τ", "2", "training.steps", "trade-off-logistic"),
    Setting("Fig. 8: rounds", "50", "rounds", "trade-off-network"),
    Setting("Fig. 8: τ", "5", "training.steps", "trade-off-network"),
    Setting("Fig. 7, 8: ε", "a curve, values not named", "training.privacy.epsilon", "equal-logistic"),
    Setting("repetitions", "5", ours=dict.fromkeys(("small", "full"), "5 seeds")),
)

_KNOWN = "known results, which the library's own accountant uses"

COVERAGE = (
    Coverage("Fig. 1", "architecture", reason="a drawing without numbers"),
    Coverage(
        "Fig. 2",
        "protocol of the masks",
        reason="a protocol without numbers; [secure aggregation](../explanation/secure-aggregation.md): `pairwise_prf`",
    ),
    Coverage(
        "IV-B, eqs. (7)-(9)",
        "masks from seeds; little communication per round",
        reason="the masks cancel by definition; what their messages cost is not measured here",
    ),
    Coverage("Algorithm 1", "the scheme", "#against-dp-sgd", "mechanism `zcdp` with `uplink.kind: secure_aggregation`"),
    Coverage("Fig. 3", "accuracy and training loss of logistic regression", "#noise-and-local-steps"),
    Coverage("Fig. 4", "accuracy and gradient norm of the network", "#noise-and-local-steps"),
    Coverage(
        "VII-B, on Fig. 4",
        "accuracy falls at σ = 10⁻² and then rises",
        "#when-the-accuracy-falls",
    ),
    Coverage("VII-B, on Fig. 3", "the loss rises again; similar trends for the network", "#when-the-loss-rises"),
    Coverage("Fig. 5", "against DP-SGD: accuracy and training loss", "#against-dp-sgd"),
    Coverage("Fig. 6", "against DP-SGD: accuracy and gradient norm", "#against-dp-sgd"),
    Coverage("Fig. 7, 8", "accuracy over ε, with and without masks", "#privacy-against-accuracy"),
    Coverage("Lemmas 1-4", "zCDP, its composition and conversion", reason=_KNOWN),
    Coverage("Corollaries 1, 2", "reach of a mini-batch's gradient", reason="2G/γ holds; the ledger uses it"),
    Coverage("Lemma 5", "reach of an upload", "#theorem-1-and-the-sum"),
    Coverage(
        "V, before Lemma 5",
        "ρ of an upload without masks, 2τG²/(mγσ²)",
        "#privacy-against-accuracy",
        "as an upper bound, by the ledger",
    ),
    Coverage("Theorem 1", "ε of a device", "#theorem-1-and-the-sum"),
    Coverage(
        "I, contributions",
        "a tight loss of privacy, amplified by sampling, participation and masks",
        "#theorem-1-and-the-sum",
        "1/r fails for τ > 1; with τ = 1 the conversion to ε is not tight",
    ),
    Coverage("Theorem 2, Lemmas 7, 8", "convergence, any loss", "#theorem-2-beside-runs"),
    Coverage("I, VI: rate", "O(1/√(nK)) + O(τ²σ²/K), as without privacy", "#the-rate", "by eq. (14), without runs"),
    Coverage("Lemma 6", "convergence, strongly convex loss", "#lemma-6-by-hand"),
    Coverage(
        "I, contributions",
        "less noise than with (ε, δ)-DP and simple composition",
        reason="known: ε of k releases grows like √k by zCDP, and like k by simple composition",
    ),
    Coverage(
        "I, contributions",
        "only marginal degradation by noise",
        "#noise-larger-than-the-papers",
        "the paper gives no number; the least σ stands for training without noise",
    ),
)
