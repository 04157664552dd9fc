"""Lemmas 1 and 2 of the wavelet paper, the noise that its Fig. 4 draws, and what the clipping of Algorithm 2 bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from publications.claims import Claim, Verdict, verdict
from publications.collect import point_at
from publications.effects import MissingRuns, ratio
from publications.figures import COLOURS, GREY, legend_below, new_figure
from publications.levels import DATASET
from publications.paper import PaperFigure, PaperTable
from publications.studies import STUDIES
from publications.tables import Tables, matches
from publications.texts import epsilon
from publications.wavelet_methods import MECHANISM, SIGMA
from wirelessfl.privacy import element_noise_variance, gaussian_epsilon, haar_weights, inverse_haar, lemma_1_variance
from wirelessfl.scenario import Scenario
from wirelessfl.study import load_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LENGTH = 8192
"""m of the small size's network, whose 7,960 parameters are padded to it."""

CLIENTS, LOT_SHARE = 100, 1 / 30
"""K of the paper, and q_c of lots of 20 of a client's 600 samples: the one is printed, the other follows."""


def _variance(tables: Tables) -> Verdict:
    element, lemma = element_noise_variance(LENGTH), lemma_1_variance(LENGTH)
    return verdict(
        abs(element - lemma) < 1e-6,
        f"m = {LENGTH}: {element:.4f} σ² per element, Lemma 1 says {lemma:g} σ²",
        "Lemma 1 bounds the variance of a sum over a range of elements; exactly computed, without runs",
        ratio(lemma / element, "stated over exact variance"),
    )


def derived_sigma(length: int) -> float:
    """σ_Haar by the first line of eq. (12): that of eq. (11) over √((2 + log₂ m)/2); over c₂ √(T log(1/q_c))/ε."""
    return LOT_SHARE / math.sqrt(lemma_1_variance(length))


def printed_sigma(length: int) -> float:
    """The second line, which is Lemma 2, in the same unit: K in place of q_c."""
    return CLIENTS * math.sqrt(2 / (2 + math.log2(length)))


def _formula(tables: Tables) -> Verdict:
    factor = printed_sigma(LENGTH) / derived_sigma(LENGTH)
    return verdict(
        math.isclose(factor, 1),
        f"K = {CLIENTS}, q_c = 1/{1 / LOT_SHARE:.0f}: printed {printed_sigma(LENGTH):.4g}, derived "
        f"{derived_sigma(LENGTH):.4g}, both over c₂ √(T log(1/q_c))/ε",
        "q_c of the first line of eq. (12) is K in its second line and in the lemma; log(1/q_c) is log(1/δ) in the "
        "theorem on DP-SGD that eq. (11) cites",
        ratio(factor, "printed over derived σ_Haar"),
    )


def saved(length: int) -> float:
    """The standard deviation of plain noise on an element over that of wavelets at the same σ."""
    return 1 / math.sqrt(element_noise_variance(length))


def _factor(tables: Tables) -> Verdict:
    lengths = (2, 16, LENGTH)
    stated = {length: math.sqrt(lemma_1_variance(length)) for length in lengths}
    told = ", ".join(f"m = {length}: stated {stated[length]:.4g}, exact {saved(length):.4g}" for length in lengths)
    return verdict(
        all(stated[length] <= saved(length) for length in lengths),
        told,
        "the stated factor is that of a sum over a range of elements and grows with m; the exact one stays below √3",
        ratio(stated[LENGTH] / saved(LENGTH), f"stated over exact factor, m = {LENGTH}"),
    )


LEMMA_CLAIMS = (
    Claim(
        "The noise of a reconstructed gradient has the variance (2 + log₂ m)/2 σ².",
        "5.1, Lemma 1",
        _variance,
        everywhere=True,
    ),
    Claim("σ_Haar of Lemma 2 follows from eq. (11) and Lemma 1.", "5.2, eq. (12)", _formula, everywhere=True),
    Claim(
        "At the same σ wavelets save a factor √((2 + log₂ m)/2) of noise.",
        "5.2, Lemma 2; 6.3",
        _factor,
        everywhere=True,
    ),
)


# --- Fig. 4 ------------------------------------------------------------------------------------------------------


def element_noise(length: int, sigma: float, draws: int = 64) -> NDArray[np.float64]:
    """Noise of gradient elements: N(0, (σ/W)²) on Haar coefficients, transformed back as private training does (C = 1).

    Args:
        length: m.
        sigma: σ.
        draws: How many gradients.
    """
    coefficients = np.random.default_rng(4).standard_normal((draws, length)) * (sigma / haar_weights(length))
    return np.asarray(inverse_haar(coefficients), dtype=np.float64).ravel()


def _densities(axes: Axes, length: int, sigma: float, draws: int, width: float) -> None:
    places = np.linspace(-width, width, 401)

    def density(variance: float) -> NDArray[np.float64]:
        return np.exp(-(places**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    axes.hist(
        element_noise(length, sigma, draws),
        bins=np.linspace(-width, width, 121).tolist(),
        density=True,
        color=COLOURS[2],
        alpha=0.35,
        label="wavelets, drawn",
    )
    axes.plot(
        places, density(sigma**2 * element_noise_variance(length)), color=COLOURS[2], label="wavelets, closed form"
    )
    axes.plot(places, density(1.0), color=COLOURS[0], label="plain, σ = 1")
    axes.plot(
        places,
        density(sigma**2 * lemma_1_variance(length)),
        color=GREY,
        linestyle="--",
        label="wavelets, with the variance of Lemma 1",
    )
    axes.set_xlabel("noise of an element, C = 1", fontsize=8)


def draw_density(tables: Tables) -> Figure:
    """After Fig. 4: the density of the noise on an element, at the same σ and at the same true multiplier."""
    figure, panels = new_figure(2, share_y=False)
    left, right = panels[0]
    _densities(left, LENGTH, 1.0, 64, 6.0)
    left.set_title("the same σ = 1, m = 8,192", fontsize=8)
    left.set_ylabel("density", fontsize=8)
    _densities(right, 8, 8.0, 40_000, 16.0)
    right.set_title("the same true multiplier 1, m = 8: σ = 8", fontsize=8)
    legend_below(figure, left, columns=2)
    return figure


DENSITY_FIGURE = PaperFigure(
    "noise-density",
    "After Fig. 4: the density of the noise on an element of the gradient. Left: at the same σ. Right: at the same "
    "true multiplier, for which Algorithm 1, which clips coefficients to C, needs m times the σ of plain noise.",
    draw_density,
    runs=False,
)


# --- Algorithm 2 -------------------------------------------------------------------------------------------------


_MOST = 1e6
"""A larger ε is shown as ∞, as everywhere on the page."""


def local_steps(scenario: Scenario, samples: int) -> int:
    """Steps of a client in a round."""
    training = scenario.training
    return training.steps or (training.epochs or 0) * math.ceil(samples / training.batch_size)


def bound_rows(tables: Tables) -> list[dict[str, Any]]:
    """``algorithm-2.csv``: what clipping gradients in local training bounds, and ε of it, on MNIST at z = 1.

    A step with the mean of gradients clipped to C moves a model by ηC at most, so N of them by ηNC. The server weighs
    that with d_k/(q_c d), 1/K here.
    """
    point = {DATASET: "mnist", SIGMA: 1}
    plain = tables.study("client").points({MECHANISM: "gaussian", **point})
    if not plain:
        raise MissingRuns("client: no run on MNIST at z = 1")
    numbers = {name: float(tables.study("client").band(name, plain[0]).mean[0]) for name in ("d", "samples")}
    spread = math.sqrt(1 << (round(numbers["d"]) - 1).bit_length())
    design, rows = load_study(STUDIES / "wavelet-dp-fl" / tables.about["size"] / "client-gradients.yaml"), []
    of_mnist = [(run.scenario, found) for run in design.runs if matches(found := point_at(design, run.levels), point)]
    scenarios = {found[MECHANISM]: scenario for scenario, found in of_mnist}
    for words, of_samples in (("zC/(q_c d), as printed", True), ("zC/(q_c K), as in the studies here", False)):
        for noise, mechanism, factor in (("plain", "gaussian", 1.0), ("wavelets", "wavelet", spread)):
            scenario = scenarios[mechanism]
            own = round(numbers["samples"]) // scenario.clients.count
            rate = scenario.training.optimizer.lr
            moved = rate * local_steps(scenario, own)
            largest = moved * factor * (own if of_samples else 1)
            spent = float(gaussian_epsilon(math.sqrt(scenario.rounds) * largest, scenario.privacy.delta))
            rows.append(
                {
                    "amount of noise": words,
                    "noise": noise,
                    "η": f"{rate:g}",
                    "a client moves its update by": f"{moved:.3g} C at most",
                    "true multiplier": f"z/{_plain_number(largest)}",
                    "ε, z = 1": epsilon(spent) if spent <= _MOST else "∞",
                }
            )
    return rows


def _plain_number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


BOUND_TABLE = PaperTable("algorithm-2", "What the clipping of Algorithm 2 bounds", bound_rows)
