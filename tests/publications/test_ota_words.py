"""Numbers and comparisons in the text of the over-the-air page, and settings in words, follow from what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from publications.catalogue import find_paper, study_file
from publications.files import number, read_rows
from publications.ota_checks import EARLY, METRIC
from publications.ota_points import (
    ALGORITHMS,
    ALONE,
    CLIP,
    CLIPS,
    JAMMED,
    PAIRS,
    POLICY,
    Place,
    alone,
    clipped,
    jammed,
)
from publications.ota_setting import COVERAGE, SETTING
from publications.parts import setting_rows
from publications.results import read_results, size_folder
from publications.studies import Size
from publications.sweep_keys import BATCH, LR, MU
from publications.sweeps import find_sweep
from publications.tables import Tables
from publications.tuning import scores, winner
from publications.tuning_runs import read_trials, tuned_point
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.power_control import CrossLayer
from wirelessfl.scenario.uplink import OverTheAir
from wirelessfl.study import load_study

ROOT = Path(__file__).resolve().parents[2]
PAPER = find_paper("ota-cross-layer-dp")
RESULTS = read_results(PAPER, ROOT / "results")
TEXT = " ".join((ROOT / "docs/papers/ota-cross-layer-dp.md").read_text(encoding="utf-8").split())
STEP_CLIP = 1.0
"""Clip norm of a gradient in the tuned single steps."""


def points(places: Iterable[tuple[Place, Place]], metric: str, tables: Tables) -> list[float]:
    """Mean differences in points, the least first."""
    return sorted(100 * tables.difference(one, other, metric).mean for one, other in places)


# --- the three algorithms ------------------------------------------------------------------------------------------


def test_the_order_at_each_clip_norm_is_as_the_page_begins() -> None:
    full = RESULTS["full"]

    def lead(first: str, second: str, metric: str) -> dict[float, float]:
        return {norm: full.difference(clipped(first, norm), clipped(second, norm), metric).mean for norm in CLIPS}

    over_prox = [100 * one for one in lead("upcycled", "fedprox", METRIC).values()]
    assert f"in the last quarter of the rounds by {min(over_prox):.2f} to {max(over_prox):.2f} points" in TEXT
    assert min(lead("upcycled", "fedprox", EARLY).values()) > 0
    assert min(lead("upcycled", "fedavg", EARLY).values()) > 0
    behind = {metric: lead("fedprox", "fedavg", metric) for metric in (EARLY, METRIC)}
    late = lead("upcycled", "fedavg", METRIC)
    assert {norm for norm in CLIPS if late[norm] > 0} == {norm for norm in CLIPS if behind[METRIC][norm] > 0} == {0.5}
    assert behind[EARLY][0.5] > 0  # the paper's order in both quarters


def test_accuracy_at_the_smallest_jammed_epsilon_is_far_below_and_rises_to_the_end() -> None:
    full = RESULTS["full"]
    low = points([(jammed(name, 1), jammed(name, 0.1)) for name in ALGORITHMS], METRIC, full)
    assert f"accuracy is {low[0]:.1f} to {low[-1]:.1f} points below that at ε = 1 in the last quarter" in TEXT
    for name in ALGORITHMS:
        curve = [row.mean for row in full.study(JAMMED).curve(jammed(name, 0.1)[1])]
        before, last = (sum(part) / len(part) for part in (curve[40:60], curve[60:]))
        assert curve[-1] > last > before


def test_the_least_training_loss_is_that_of_the_page() -> None:
    def least(tables: Tables, pair: tuple[float, float]) -> list[str]:
        curves = {
            name: [row.mean for row in tables.study(ALONE).curve(alone(name, pair)[1], "train_loss")]
            for name in ALGORITHMS
        }
        return [min(curves, key=lambda name: curves[name][at]) for at in range(len(curves["fedavg"]))]

    for pair in PAIRS:
        assert set(least(RESULTS["full"], pair)) == {"fedavg"}
        assert set(least(RESULTS["small"], pair)[1:]) == {"upcycled"}


# --- the baseline --------------------------------------------------------------------------------------------------


def baseline(metric: str, pair: tuple[float, float], size: Size) -> dict[int, float]:
    """A number of the baseline's runs, by seed."""
    study, where = alone("fedavg", pair, "privacy_for_free")
    return RESULTS[size].study(study).by_seed(metric, where)


def test_the_baseline_spends_its_budget_in_the_full_size_alone() -> None:
    first, second = ([baseline("epsilon_published", pair, size) for pair in PAIRS] for size in ("full", "small"))
    for (target, _), spent, left in zip(PAIRS, first, second, strict=True):
        assert list(spent.values()) == pytest.approx([target] * len(spent))
        assert max(left.values()) < 0.75 * target
    told = [sum(one.values()) / len(one) for one in second]
    assert f"it publishes {told[0]:.1f} and {told[1]:.2f} instead of 6.52 and 4.4" in TEXT
    for metric in ("test_accuracy", "effective_noise_std", "server_gain"):  # the weakest channel alone decides
        assert baseline(metric, PAIRS[0], "small") == baseline(metric, PAIRS[1], "small")
    design = load_study(study_file(PAPER, "small", PAPER.study(ALONE)))
    assert f"all of the {design.runs[0].scenario.rounds} rounds" in TEXT


def test_the_noise_of_the_baseline_is_twice_that_of_the_theorem_for_one_sample_more() -> None:
    full = RESULTS["full"]
    for pair in PAIRS:
        ours = full.study(ALONE).by_seed("effective_noise_std", alone("fedavg", pair)[1])
        theirs = baseline("effective_noise_std", pair, "full")
        assert all(1.8 < theirs[seed] / ours[seed] < 2.1 for seed in ours)
        counted = full.study(ALONE).by_seed("epsilon_accounted", alone("fedavg", pair)[1])
        assert all(3 < counted[seed] / one < 4 for seed, one in baseline("epsilon_accounted", pair, "full").items())


# --- tuned ---------------------------------------------------------------------------------------------------------


def test_the_tuned_step_has_another_rate_than_its_clip_norm() -> None:
    runs = [run for run in RESULTS["small"].study("tuned-algorithms").runs if run.point["training.steps"] == "1"]
    ((rate, norm),) = {(float(run.point[LR]), float(run.point[CLIP])) for run in runs}
    counted = sum(run.numbers["epsilon_accounted"] for run in runs) / len(runs)
    assert (
        f"chose the rate {rate:g} with τ = {norm:g}, so that τ clips no update: its norm is {rate * STEP_CLIP:g} at"
        in TEXT
    )
    assert rate * STEP_CLIP < norm
    assert f"{counted:,.0f} is no more than an upper bound" in TEXT
    assert f"one sample moves this one by {rate * STEP_CLIP / norm:g}τ/n_i at most" in TEXT
    tried = read_rows(ROOT / "results/papers/ota-cross-layer-dp/tuning-algorithms.csv")
    steps = [row for row in tried if row["method"] == "one gradient step"]
    known = {number(row["epsilon_accounted"]) for row in steps if number(row[LR]) * STEP_CLIP == number(row[CLIP])}
    others = [number(row["epsilon_accounted"]) for row in steps if number(row[LR]) * STEP_CLIP != number(row[CLIP])]
    assert {f"an accounted ε of {one:.3g}" in TEXT for one in known} == {True}
    assert min(others) > 1000 * max(known)


def test_what_tuning_chose() -> None:
    sweep = find_sweep(PAPER.name, "algorithms", "small")
    won = {one.name: tuned_point(PAPER.name, sweep.name, "small", one.name) for one in sweep.methods}
    assert {float(one[CLIP]) for one in won.values()} == {16}
    grid = sweep.methods[0].grid
    assert (min(grid[CLIP]), max(grid[CLIP])) == (0.5, 32) and "Of τ from 0.5 to 32 all four chose 16." in TEXT
    names = ("FedAvg", "FedProx", "Upcycled")
    assert [won[name][BATCH] for name in names] == [10, 5, 5]
    assert (min(grid[BATCH]), max(grid[BATCH])) == (5, 40)
    assert "Of batches from 5 to 40 FedProx and Upcycled-FL chose 5, the smallest, and FedAvg 10" in TEXT
    assert "with τ from 0.5 to 32 and batches from 5 to 40: all chose τ = 16." in TEXT
    trials = read_trials(size_folder(ROOT / "results", PAPER, "small"), sweep)
    tried = [scores(sweep, method, trials) for method in sweep.methods[:3]]

    def behind(batch: int) -> Iterable[float]:
        for some in tried:
            best = max(one.accuracy for one in some if one.values[BATCH] == batch)
            yield 100 * (winner(some).accuracy - best)

    told = "best with batches of 20 lie {:.2f}, {:.2f} and {:.2f} points behind those that won".format(*behind(20))
    assert (
        f"{told}, on validation samples, and those of 40 {{:.2f}}, {{:.2f}} and {{:.2f}}.".format(*behind(40)) in TEXT
    )
    tables, at = RESULTS["small"], {one: ("tuned-algorithms", won[one]) for one in names}
    prox, avg = (tables.difference(at["Upcycled"], at[other]) for other in ("FedProx", "FedAvg"))
    for verb in ("is", "ends"):  # where it is told, and at the head of the page
        told = f"{verb} {100 * prox.mean:.2f} points ahead of FedProx and {-100 * avg.mean:.2f} behind FedAvg"
        assert f"Upcycled-FL {told}, which five seeds do not tell from 0" in TEXT
    assert all(abs(one.mean) < one.half_width for one in (prox, avg))


def test_what_another_clip_norm_would_take() -> None:
    jam = RESULTS["full"].study(JAMMED).runs
    base = [run for run in RESULTS["full"].study(ALONE).runs if run.point[POLICY] == "privacy_for_free"]
    hours = sum(run.provenance.seconds for run in (*jam, *base)) / 3600
    assert len(base) == 10 and 3.7 < hours < 4.7 and "takes some four hours of a core" in TEXT


# --- settings in words ---------------------------------------------------------------------------------------------


def scenarios(study: str, size: Size) -> list[Scenario]:
    """Of all runs of a study."""
    return [run.scenario for run in load_study(study_file(PAPER, size, PAPER.study(study))).runs]


def words(name: str) -> Mapping[str, str]:
    """What the table says of a setting here, by size."""
    (row,) = (row for row in setting_rows(PAPER) if row["setting"] == name)
    return row


def test_settings_that_are_tuned_beside_the_studies_are_said_to_be() -> None:
    grid = find_sweep(PAPER.name, "algorithms", "small").methods[2].grid
    names = {"learning rate": LR, "batch size": BATCH, "clip norm τ": CLIP, "μ of FedProx and Upcycled-FL": MU}
    assert set(names.values()) == set(grid)
    for name, key in names.items():
        least, most = min(grid[key]), max(grid[key])
        assert words(name)["here, `small`"].endswith(f"; tuned beside it from {least:g} to {most:g}")
    for size in ("small", "full"):
        found = {(one.training.optimizer.lr, one.training.batch_size) for one in scenarios(ALONE, size)}
        assert found == {(0.05, 20)}
        told = [words(name)[f"here, `{size}`"].partition(";")[0] for name in ("learning rate", "batch size")]
        assert told == ["0.05", "20"]


@pytest.mark.parametrize("size", ("small", "full"))
def test_settings_in_words_are_those_of_the_studies(size: Size) -> None:
    for scenario in (*scenarios(ALONE, size), *scenarios(JAMMED, size)):
        assert not scenario.channel.csi.is_imperfect
        assert scenario.privacy.adjacency == "add_remove"
    for scenario in scenarios(JAMMED, size):  # α_u stays that of 6.52 whatever the jammer aims at
        assert isinstance(scenario.uplink, OverTheAir)
        control = scenario.uplink.power_control
        assert isinstance(control, CrossLayer)
        assert (control.epsilon, control.server_gain, control.rescale) == (6.52, "auto", "clip_norm")
        assert scenario.privacy.delta == 1e-5
    here = f"here, `{size}`"
    assert words("channel known to clients")[here] == "perfectly"
    assert words("downlink")[here] == "error_free"
    assert words("neighbouring data")[here] == "one added or removed"
    assert words("server's gain α_u")[here].endswith("with the jammer that of 6.52")
    assert words("δ, with the jammer")[here] == "1e-05"
    assert words("model, iid data")[here] == "logistic"


def test_every_part_of_the_paper_that_is_not_here_has_a_reason() -> None:
    assert all(one.reason for one in COVERAGE if not one.where)
    assert len({one.name for one in SETTING}) == len(SETTING)
