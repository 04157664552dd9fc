"""Lemmas 1 and 2 of the wavelet paper, its Fig. 4, and what the clipping of Algorithm 2 bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wirelessfl as wfl
from publications.claims import Outcome, judge
from publications.joint_curves import CurveRow
from publications.levels import DATASET
from publications.tables import RunRow, StudyTable, Tables
from publications.wavelet_convergence import convergence_rows, reached
from publications.wavelet_lemmas import LEMMA_CLAIMS, bound_rows, draw_density, element_noise, saved
from publications.wavelet_methods import MECHANISM, SIGMA
from wirelessfl.privacy import gaussian_epsilon, haar, haar_weights

NO_RUNS = Tables({"size": "small"}, {})


def test_lemmas_are_contradicted_by_the_factors_that_follow_by_hand() -> None:
    """At m = 8192: (2 + 13)/2 over a third; K over q_c = 100 · 30; √7.5 over √3."""
    found = [judge(claim, NO_RUNS) for claim in LEMMA_CLAIMS]
    assert {one.outcome for one in found} == {Outcome.CONTRADICTED}
    effects = [one.effect.value for one in found if one.effect]
    assert effects == pytest.approx([22.5, 3000, math.sqrt(2.5)], rel=1e-6)


@pytest.mark.parametrize(("length", "variance"), [(2, 1 / 2), (4, 3 / 8), (8, 11 / 32)])
def test_what_is_saved_by_hand(length: int, variance: float) -> None:
    """1/m² + 1/4 + … + 1/m²."""
    assert saved(length) == pytest.approx(1 / math.sqrt(variance))
    assert saved(length) < math.sqrt(3)


@pytest.mark.parametrize("length", [2, 8, 64])
def test_drawn_noise_has_the_variance_of_the_closed_form(length: int) -> None:
    drawn = element_noise(length, 2.0, draws=200_000 // length)
    assert drawn.var() == pytest.approx(4 / saved(length) ** 2, rel=0.03)
    coefficients = np.asarray(haar(drawn.reshape(-1, length))) * haar_weights(length)
    assert coefficients.std(axis=0) == pytest.approx(np.full(length, 2.0), rel=0.05)


def test_densities_of_both_forms_are_drawn() -> None:
    left, right = draw_density(NO_RUNS).axes
    heights = [{str(line.get_label()): np.max(line.get_ydata()) for line in axes.lines} for axes in (left, right)]
    plain, wavelets = "plain, σ = 1", "wavelets, closed form"
    assert heights[0][wavelets] == pytest.approx(math.sqrt(3) * heights[0][plain], rel=1e-3)  # narrower by √3
    assert heights[1][wavelets] == pytest.approx(heights[1][plain] / (8 * math.sqrt(11 / 32)), rel=1e-3)


def client_runs(size: str, d: float, samples: float) -> Tables:
    point = {MECHANISM: "gaussian", DATASET: "mnist", SIGMA: "1"}
    runs = tuple(RunRow(point, seed, 10, {"d": d, "samples": samples}) for seed in (1, 2))
    return Tables({"size": size}, {"client": StudyTable("client", tuple(point), runs)})


def test_what_clipped_gradients_bound_by_hand() -> None:
    """Small: η = 0.1, 4 steps, 20 samples a client, m = 8192. Medium: 5 epochs of 30 batches, 600 samples, 2¹⁵."""
    printed, printed_wav, ours, ours_wav = bound_rows(client_runs("small", 7960, 2000))
    assert {row["a client moves its update by"] for row in (printed, printed_wav, ours, ours_wav)} == {"0.4 C at most"}
    assert [printed["true multiplier"], ours["true multiplier"]] == ["z/8", "z/0.4"]
    assert [printed_wav["true multiplier"], ours_wav["true multiplier"]] == ["z/724", "z/36.2"]
    spent = float(gaussian_epsilon(math.sqrt(10) * 0.4, 1e-5))
    assert ours["ε, z = 1"] == wfl.epsilon_text(spent)
    printed, _, ours, ours_wav = bound_rows(client_runs("medium", 18842, 60_000))
    assert [row["η"] for row in (printed, ours, ours_wav)] == ["6.4", "6.4", "1.6"]
    assert [ours["true multiplier"], printed["true multiplier"]] == ["z/960", "z/576,000"]
    assert ours_wav["true multiplier"] == "z/43,445"  # 240 √2¹⁵
    assert ours["ε, z = 1"] == "∞"


def test_rounds_until_convergence() -> None:
    """Plain noise has 95 % of its 0.8 after round 6; wavelets of their 0.9 after 4, and 0.8 after 2."""
    means = {"gaussian": (0.4, 0.7, 0.78, 0.8), "wavelet": (0.82, 0.86, 0.88, 0.9)}
    points = {one: {MECHANISM: one, DATASET: "mnist", SIGMA: "1"} for one in means}
    runs = tuple(RunRow(point, 1, 8, {"test_accuracy": 0.5}) for point in points.values())
    curves = tuple(
        CurveRow(points[one], 2 * at, mean, 0.01, 5) for one in means for at, mean in enumerate(means[one], start=1)
    )
    table = StudyTable("sample", (MECHANISM, DATASET, SIGMA), runs, curves)
    (row,) = convergence_rows(Tables({"size": "small"}, {"sample": table}))
    assert list(row.values()) == ["DP-SGD", "MNIST", "1", "6", "4", "2", "8"]
    assert reached(curves[:2], 0.9) == "–"
