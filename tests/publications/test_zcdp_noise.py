"""Noise and local steps on the zCDP page: Theorem 1 with masks, gradient norms, and the numbers in its prose."""

from __future__ import annotations

import math
from typing import Any

import pytest

from publications.catalogue import PAPERS
from publications.claims import Outcome, judge
from publications.effects import MissingRuns, average
from publications.files import read_rows
from publications.gradients import GRADIENT_NORM
from publications.joint_curves import CurveRow
from publications.results import size_folder
from publications.runner import load_designs
from publications.tables import RunRow, StudyTable, Tables
from publications.texts import epsilon
from publications.zcdp_curves import larger_gradient_norms
from publications.zcdp_noise import MASKED_COLUMN, NOISE_TABLES, masked_epsilon
from publications.zcdp_points import (
    CHOSEN,
    DELTA,
    KINDS,
    NOISE,
    PAPER_LEVELS,
    PAPER_NOISES,
    STEPS,
    convergence_point,
)
from tests.publications import test_zcdp_page as of_page
from tests.publications.test_zcdp_page import NAME, ROOT, points
from wirelessfl.api import make_plan
from wirelessfl.study.factors import values_at

STUDY = "convergence-network"
_BOTH = ("epsilon_published", "epsilon_accounted")


# The fixtures of the page's other tests
page, small, full = of_page.page, of_page.small, of_page.full


@pytest.mark.parametrize("rho", [0.01, 1.0, 30.0])
def test_masks_divide_rho_by_the_devices_of_a_round(rho: float) -> None:
    """By hand: ε = ρ + 2 √(ρ ln 1/δ)."""

    def converted(spent: float) -> float:
        return spent + 2 * math.sqrt(spent * math.log(1 / DELTA))

    assert masked_epsilon(converted(rho)) == pytest.approx(converted(rho / CHOSEN), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_round_has_as_many_devices_as_masks_are_counted_for(kind: str) -> None:
    """And the studies of Fig. 3 and 4 run without masks, so that what is stored is Theorem 1 with r = 1."""
    for size in ("small", "full"):
        design = load_designs(PAPERS[NAME], "small" if size == "small" else "full")[f"convergence-{kind}"]
        for run in design.runs:
            assert run.scenario.uplink.kind == "ideal"
            assert run.scenario.clients.selection.model_dump()["count"] == CHOSEN


@pytest.mark.slow
def test_the_library_publishes_the_same_with_masks(full: Tables) -> None:
    masks = {"kind": "secure_aggregation", "protocol": "pairwise_prf", "snr_db": 20, "clip": 100}
    design = load_designs(PAPERS[NAME], "full")[STUDY]
    for noise, steps in ((1e-2, 1), (0.03, 20)):
        run = next(
            one
            for one in design.runs
            if (values := values_at(design.factors, one.levels))[NOISE] == noise and values[STEPS] == steps
        )
        forecast = make_plan(run.scenario, overrides={"data.dataset.source": "synthetic", "uplink": masks}).forecast
        band = {name: full.band(*convergence_point("network", noise, steps), name).mean[0] for name in _BOTH}
        assert forecast.epsilon_published == pytest.approx(masked_epsilon(float(band[_BOTH[0]])), rel=1e-4)
        assert forecast.epsilon_accounted == pytest.approx(band[_BOTH[1]], rel=1e-4)  # no 1/r here


def with_norms(ends: dict[tuple[float, int], tuple[float, float]]) -> Tables:
    """Gradient norms after the last round, with their half widths, by σ and τ."""
    rows = {(repr(noise), str(steps)): end for (noise, steps), end in ends.items()}
    curves = [
        CurveRow({NOISE: noise, STEPS: steps}, 100, mean, half, 5, GRADIENT_NORM)
        for (noise, steps), (mean, half) in rows.items()
    ]
    runs = tuple(RunRow({NOISE: noise, STEPS: steps}, 1, 100, {}) for noise, steps in rows)
    return Tables({"size": "full"}, {STUDY: StudyTable(STUDY, (NOISE, STEPS), runs, tuple(curves))})


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [((1.0, 1.2), Outcome.CONFIRMED), ((-1.0, -1.2), Outcome.CONTRADICTED), ((1.0, -0.8), Outcome.UNDECIDED)],
)
def test_gradient_norms_are_compared_on_average_over_levels(ends: tuple[float, float], outcome: Outcome) -> None:
    """Half widths of 0.3 and 0.4 make 0.5 at each level, and 0.5 on average."""
    steps = (1, 5)
    tables = with_norms(
        {(1e-4, one): (2.0, 0.3) for one in steps}
        | {(1e-2, one): (2.0 + end, 0.4) for one, end in zip(steps, ends, strict=True)}
    )
    pairs: list[Any] = [
        (f"τ = {one}", convergence_point("network", 1e-2, one), convergence_point("network", 1e-4, one))
        for one in steps
    ]
    found = larger_gradient_norms(pairs, tables)
    assert found.outcome is outcome and found.effect is not None
    assert found.effect.value == pytest.approx(sum(ends) / 2)
    assert found.effect.high - found.effect.value == pytest.approx(0.5)
    assert f"τ = 5: 2 ± 0.3 → {2 + ends[1]:.3g} ± 0.4" in found.numbers
    missing: list[Any] = [("τ = 10", convergence_point("network", 1e-2, 10), pairs[0][2])]
    with pytest.raises(MissingRuns):
        larger_gradient_norms(missing, tables)


def test_one_seed_decides_nothing_about_gradient_norms() -> None:
    tables = with_norms({(1e-4, 1): (1.0, math.nan), (1e-2, 1): (3.0, math.nan)})
    pairs: list[Any] = [("τ = 1", convergence_point("network", 1e-2, 1), convergence_point("network", 1e-4, 1))]
    assert larger_gradient_norms(pairs, tables).outcome is Outcome.UNDECIDED


def test_gradient_norms_of_the_network(page: str, full: Tables) -> None:
    ends = {
        (noise, steps): full.study(STUDY).curve({NOISE: noise, STEPS: steps}, GRADIENT_NORM)[-1]
        for noise in (1e-4, 1e-2)
        for steps in (1, 20)
    }
    told = {at: f"{one.mean:.3g} ± {one.half_width:.2g}" for at, one in ends.items()}
    assert f"with τ = 20 it ends smaller, at {told[1e-2, 20]} and not {told[1e-4, 20]}" in page
    assert f"(at σ = 10⁻⁴ {told[1e-4, 20]} with τ = 20 and {told[1e-4, 1]} with τ = 1)" in page
    noise, steps = (
        judge(next(one for one in PAPERS[NAME].claims if text in one.text and "gradient norm" in one.text), full)
        for text in ("larger σ", "larger τ")
    )
    assert noise.outcome is Outcome.UNDECIDED and steps.outcome is Outcome.UNDECIDED
    assert steps.remark == "at one rate for all" and steps.effect is not None and steps.effect.high < 0
    assert noise.effect is not None
    half = noise.effect.high - noise.effect.value
    assert f"is open on average over τ ({noise.effect.value:.3f} ± {half:.2g})".replace("-", "−") in page
    assert "and at a smaller gradient norm, which Fig. 4 shows" in page
    fall = ends[1e-4, 20].mean - ends[1e-2, 20].mean
    assert fall > 1.56 * math.hypot(*(ends[one, 20].half_width for one in (1e-4, 1e-2)))  # one τ of four: t at 98.75 %


def test_noise_in_the_papers_range(page: str, full: Tables) -> None:
    moved, least = [], []
    for kind, ((low, high), steps) in PAPER_LEVELS.items():
        mean = average(
            [full.difference(convergence_point(kind, low, one), convergence_point(kind, high, one)) for one in steps]
        )
        moved.append(points(mean).removeprefix("+"))
        stated = [full.band(*convergence_point(kind, high, one), "epsilon_published").mean[0] for one in steps]
        least.append(float(min(stated)))
    assert f"by {moved[0]} points (logistic regression) and {moved[1]} (network)" in page
    masked = [epsilon(masked_epsilon(one)) for one in least]
    assert f"Theorem 1 with r = {CHOSEN} puts at {masked[0]} and {masked[1]} at least" in page
    assert f"({epsilon(least[0])} and {epsilon(least[1])} without masks" in page
    where = convergence_point("network", 1e-2, 1)
    assert full.band(*where, "epsilon_published").mean[0] == least[1] and masked_epsilon(least[1]) < 10
    ledger = epsilon(float(full.band(*where, "epsilon_accounted").mean[0]))
    assert f"a single digit at σ = 10⁻² and τ = 1 already, where the ledger has {ledger};" in page


def test_what_larger_noise_costs(page: str, full: Tables) -> None:
    rows = read_rows(size_folder(ROOT / "results", PAPERS[NAME], "full") / "noise-cost.csv")
    costs = {row["ε published"]: (row["accuracy"].split(" ")[0], row[MASKED_COLUMN], row["τ"]) for row in rows}
    told = {one: (f"{-float(cost):.1f}", masked) for one, (cost, masked, _) in costs.items()}
    assert [costs[one][2] for one in ("14.4", "2.35", "27.9", "6.4")] == ["40", "40", "20", "20"]
    cost, masked = ({one: pair[at] for one, pair in told.items()} for at in (0, 1))
    assert (
        f"with τ = 40 a published ε of 14.4 ({masked['14.4']} with masks) costs {cost['14.4']} points and one of 2.35 "
        f"({masked['2.35']}) costs {cost['2.35']}; for the network with τ = 20 one of 27.9 ({masked['27.9']}) costs "
        f"{cost['27.9']} points and one of 6.4 ({masked['6.4']}) costs {cost['6.4']}."
    ) in page
    digit = [row for row in rows if float(row[MASKED_COLUMN].replace(",", "")) < 10]
    most = max(-float(row["accuracy"].split(" ")[0]) for row in digit)
    assert f"[below](#noise-larger-than-the-papers): up to {most:.1f} points" in page
    for kind, (low, _), _ in ((kind, *levels) for kind, levels in PAPER_LEVELS.items()):
        ledger = full.study(f"convergence-{kind}")
        assert all(
            ledger.band("epsilon_accounted", {NOISE: low, STEPS: one}).mean[0] > 800_000
            for one in PAPER_LEVELS[kind][1]
        )


def test_stored_tables_are_those_of_the_stored_runs(small: Tables, full: Tables) -> None:
    for size, tables in (("small", small), ("full", full)):
        folder = size_folder(ROOT / "results", PAPERS[NAME], "small" if size == "small" else "full")
        for table in NOISE_TABLES:
            made = [{key: str(value) for key, value in row.items()} for row in table.make(tables)]
            assert read_rows(folder / f"{table.name}.csv") == made


def test_more_local_steps(page: str, full: Tables) -> None:
    early, loss = [], []
    for kind in KINDS:
        few, many = PAPER_LEVELS[kind][1][0], PAPER_LEVELS[kind][1][-1]
        pairs = [
            (convergence_point(kind, one, many), convergence_point(kind, one, few))
            for one in PAPER_NOISES["full", kind]
        ]
        early.append(average([full.difference(*pair, "early_accuracy") for pair in pairs]))
        loss.append(average([full.difference(*pair, "test_loss") for pair in pairs]))
    assert f"({points(early[0])} and {points(early[1])} points over the first quarter of the rounds)" in page
    told = [f"({one.mean:+.3f} ± {one.half_width:.3f})".replace("-", "−") for one in loss]
    assert (
        f"for logistic regression {told[0]}; with the network, at rate 2 and G = 1, they end at a smaller one {told[1]}"
        in page
    )
    for row in read_rows(size_folder(ROOT / "results", PAPERS[NAME], "full") / "local-steps.csv"):
        mean, half = (float(one) for one in row["test loss, end"].split(" ± "))
        assert (mean - half > 0) == (float(row["times the paper's largest σ"]) > 1)


def test_one_local_step_has_not_settled(page: str, full: Tables) -> None:
    for noise in PAPER_NOISES["full", "logistic"]:
        curve = full.study("convergence-logistic").curve({NOISE: noise, STEPS: 1}, "test_loss")
        assert min(curve, key=lambda row: row.mean).round == 100
    for noise in PAPER_NOISES["full", "network"]:
        curve = full.study("convergence-network").curve({NOISE: noise, STEPS: 1}, "test_loss")
        assert min(curve, key=lambda row: row.mean).round < 50
    assert "τ = 1 is at no stationary point" in page


def test_more_noise_costs_the_network_some_loss(page: str, full: Tables) -> None:
    (low, high), steps = PAPER_LEVELS["network"]
    pairs = [(convergence_point("network", high, one), convergence_point("network", low, one)) for one in steps]
    mean = average([full.difference(*pair, "test_loss") for pair in pairs])
    assert f"test loss is larger by {mean.mean:.3f} ± {mean.half_width:.3f}" in page
