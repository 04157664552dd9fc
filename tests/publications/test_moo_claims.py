"""Verdicts on multi-objective clipping: rates that are not tuned, runs that diverged, and what audits show."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from publications.catalogue import find_paper, study_file
from publications.claims import Outcome, judge
from publications.joint_curves import CurveRow
from publications.levels import DATASET, all_better
from publications.moo import MULTI_OBJECTIVE
from publications.moo_claims import OTHER_RATES, OTHERS, RATE
from publications.moo_guarantees import DYNAMIC_GUARANTEE
from publications.moo_methods import DP_SGD, EPSILON, KEYS, METHODS, MOO, WAV
from publications.moo_numbers import DATA, EPSILONS, TABLE_III, stated_lead
from publications.moo_page import draw_learning, draw_norms
from publications.moo_rates import NORM
from publications.moo_table import all_numbers_rows, diverged_text, table_iii_rows
from publications.moo_tuned import chosen_rates, has_least_rate
from publications.studies import SIZES, Size
from publications.tables import AuditRow, RunRow, StudyTable, Tables
from tests.publications.moo_runs import made_up_tables
from wirelessfl.study import load_study

BY_TEXT = {claim.text: claim for claim in MULTI_OBJECTIVE.claims}
WAVELETS = BY_TEXT["DP-SGD-WAV is more accurate than DP-SGD."]
FALLS = BY_TEXT["From ε = 6.38 to 1.64 every method loses accuracy."]
AHEAD = BY_TEXT["MOO is more accurate than DP-SGD with the same starting norm."]


def test_the_rate_is_the_one_that_ran() -> None:
    paper = find_paper("moo-adaptive-clipping")
    for size in SIZES:
        for name in ("sample", "dynamic", "tempered", "moo", "moo-private"):
            runs = load_study(study_file(paper, size, paper.study(name))).runs
            assert {run.scenario.training.optimizer.lr for run in runs} == {RATE}, (size, name)
        clients = load_study(study_file(paper, size, paper.study("client"))).runs
        assert {run.scenario.training.optimizer.lr for run in clients} == {OTHER_RATES[0][2]}, size


@pytest.mark.parametrize("size", SIZES)
def test_one_rate_for_all_keeps_the_effect_and_decides_nothing(size: Size) -> None:
    tables = made_up_tables(size)
    decided, found = all_better(((WAV, DP_SGD),), KEYS, "ε")(tables), judge(WAVELETS, tables)
    assert decided.outcome is Outcome.CONFIRMED
    assert found.outcome is Outcome.UNDECIDED and not found.one_seed
    assert decided.effect is not None and found.effect is not None
    assert (found.effect.value, found.effect.low) == (decided.effect.value, decided.effect.low)
    told = {"small": "and tuning chose 0.25 to 1", "medium": "and tuning chose 0.25", "full": "not tuned at this size"}
    assert chosen_rates(size, (WAV, DP_SGD)) == {"small": [0.25, 1.0], "medium": [0.25, 0.25], "full": []}[size]
    assert found.effect.text().endswith(f"learning rate 0.5, {told[size]}")
    assert found.numbers == decided.numbers
    why = f"0.5 for all, {told[size]}, so that nothing is decided about the methods; at it: {decided.reason}"
    assert why in found.reason
    assert "“All tuned alike, at published ε = 3.61, DP-SGD-WAV is more accurate than DP-SGD”" in found.reason


def test_a_method_beside_itself_is_decided_at_any_rate() -> None:
    found = judge(FALLS, made_up_tables("medium"))
    assert found.outcome is Outcome.CONFIRMED and found.effect is not None
    assert "learning rate 0.5 (DP-FedAvg 0.1), and tuning chose" in found.effect.text()


@pytest.mark.parametrize("size", SIZES)
def test_no_claim_on_accuracy_is_decided_at_one_rate(size: str) -> None:
    tables = made_up_tables(size)
    found = {claim.text: judge(claim, tables).outcome for claim in MULTI_OBJECTIVE.claims if not claim.everywhere}
    assert found.pop(FALLS.text) is Outcome.CONFIRMED  # each method beside itself
    assert set(found.values()) <= {Outcome.UNDECIDED, Outcome.NOT_TESTED}
    assert sum(outcome is Outcome.UNDECIDED for outcome in found.values()) >= 10


def test_the_best_method_is_not_asked_for_where_the_paper_has_another_ahead() -> None:
    """MOO far behind on CIFAR-10 at 6.38 alone changes nothing; on Fashion-MNIST it does."""
    tables = made_up_tables("small")
    (claim,) = (one for one in MULTI_OBJECTIVE.claims if one.text.startswith("DP-FL with MOO is the most accurate"))

    def effect(data: str) -> float:
        studies = {
            name: replace(table, runs=(*table.runs, *more(table, data))) for name, table in tables.studies.items()
        }
        about = {**tables.about, "runs": {name: len(table.runs) for name, table in studies.items()}}
        found = judge(claim, Tables(about, studies))
        assert found.effect is not None
        return found.effect.value

    def more(table: StudyTable, data: str) -> list[RunRow]:
        lower = -0.5 if table.name == "moo" else 0.0
        return [
            replace(
                run,
                point={**run.point, DATASET: data},
                numbers={**run.numbers, "test_accuracy": run.numbers["test_accuracy"] + lower},
            )
            for run in table.runs
            if run.point.get(EPSILON) == "6.38"
        ]

    before = judge(claim, tables).effect
    assert before is not None
    assert effect("cifar10") == pytest.approx(before.value) and effect("fashion_mnist") < before.value - 0.1


def test_one_seed_of_an_untuned_size_still_counts_as_one() -> None:
    tables = made_up_tables("full")
    alone = {
        name: replace(table, runs=tuple(run for run in table.runs if run.seed == 1))
        for name, table in tables.studies.items()
    }
    about = {**tables.about, "runs": {name: len(table.runs) for name, table in alone.items()}}
    assert judge(WAVELETS, Tables(about, alone)).one_seed


# --- runs that diverged ----------------------------------------------------------------------------------------------


def with_diverged(tables: Tables) -> Tables:
    """MOO's runs at ε = 1.64 diverge."""

    def end(run: RunRow) -> RunRow:
        lost = run.point[EPSILON] == "1.64"
        return replace(run, numbers={**run.numbers, "test_accuracy": 0.0, "test_loss": math.nan}) if lost else run

    moo = replace(tables.studies["moo"], runs=tuple(end(run) for run in tables.studies["moo"].runs))
    return replace(tables, studies={**tables.studies, "moo": moo})


def test_diverged_runs_are_told_where_their_number_stands() -> None:
    tables = with_diverged(made_up_tables())
    words = "5 runs of moo diverged and count as 0 % (MNIST ε = 1.64)"
    assert diverged_text(tables, [MOO, *(published for published, _ in OTHERS.values())]) == words
    assert diverged_text(made_up_tables(), [MOO]) == ""
    effect = judge(AHEAD, tables).effect
    assert effect is not None and f", {words}; learning rate" in effect.text()
    cells = {
        (row["method"], row["ε"]): row["here, at equal published ε"]
        for row in table_iii_rows(tables)
        if "diverged" in row["here, at equal published ε"]
    }
    assert cells == {("DP-FL w/ MOO", "1.64"): "0.0 ± 0.0 % (5 runs diverged)"}


def test_norms_of_diverged_runs_leave_the_axis_and_are_told() -> None:
    tables = with_diverged(made_up_tables())
    rows = tuple(
        CurveRow({DATASET: "mnist", EPSILON: epsilon}, at, norm, 0.1, 5, metric)
        for epsilon, norms in (("6.38", (1.0, 0.8, 0.6)), ("1.64", (1.0, 2e24)))
        for at, norm in enumerate(norms, start=1)
        for metric in (NORM, "largest_clipping_norm")
    )
    moo = replace(tables.studies["moo"], curves=rows)
    figure = draw_norms(replace(tables, studies={"moo": moo}))
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == ["ε = 6.38"]
        assert axes.get_yscale() == "linear" and axes.get_ylim()[1] < 2
        assert [text.get_text() for text in axes.texts] == ["diverged, C beyond the axis:\nε = 1.64: $10^{24}$"]


def test_each_number_of_the_paper_has_the_colour_of_its_method() -> None:
    tables = made_up_tables()
    points = [{DATASET: "mnist", EPSILON: epsilon} for epsilon in EPSILONS]
    studies = {}
    for name, table in tables.studies.items():
        extra = [key for key in table.keys if key not in KEYS]
        words = [{extra[0]: word} for word in ("gaussian", "wavelet")] if extra else [{}]
        more = [{**point, **word} for point in points for word in words]
        studies[name] = replace(table, curves=tuple(CurveRow(point, 5, 0.5, 0.6, 5) for point in more))
    for axes in draw_learning(replace(tables, studies=studies)).axes:
        lines = {line.get_label(): line.get_color() for line in axes.lines if line.get_marker() != "D"}
        diamonds = [line for line in axes.lines if line.get_marker() == "D" and np.size(line.get_xdata()) == 1]
        assert [line.get_markeredgecolor() for line in diamonds[: len(METHODS)]] == [lines[name] for name in METHODS]
        places = [np.asarray(line.get_xdata(), dtype=float).item() for line in diamonds]
        assert len(set(places)) == len(places) == len(METHODS) + 1
        assert max(axes.get_xticks()) <= 5


# --- what the paper states -------------------------------------------------------------------------------------------


def test_the_leads_of_section_v_c_follow_from_table_iii() -> None:
    """As the paper has them, in its order of data sets and ε."""
    found = [round(stated_lead(data, epsilon), 2) for data in DATA for epsilon in EPSILONS]
    assert found == [0.18, 0.19, 2.55, 0.67, 1.11, 2.41, -0.21, 1.74, 2.04]


def test_leads_are_compared_at_the_papers_size_alone() -> None:
    claim = next(one for one in MULTI_OBJECTIVE.claims if one.text.startswith("MOO leads the best other method"))
    small = judge(claim, made_up_tables("small"))
    assert (small.outcome, small.reason) == (Outcome.NOT_TESTED, "needs the paper's size with several seeds")
    found = judge(claim, made_up_tables("full"))
    assert found.effect is not None and found.effect.value == pytest.approx(-0.05 - 0.0255, abs=0.003)
    assert "2 surely outside" in found.numbers


def test_the_accuracies_of_one_seed_stand_in_the_reason() -> None:
    def once(name: str, off: float) -> StudyTable:
        rows = [
            RunRow({DATASET: "mnist", EPSILON: epsilon}, 1, 10, {"test_accuracy": (stated + off) / 100})
            for epsilon, stated in TABLE_III[{"moo-once": "DP-FL w/ MOO"}.get(name, "FL w/ DP-SGD")]["mnist"].items()
        ]
        return StudyTable(name, KEYS, tuple(rows))

    tables = Tables(
        {"size": "full", "runs": {}}, {"moo-once": once("moo-once", 1.5), "sample-once": once("sample-once", -2)}
    )
    found = judge(BY_TEXT["The accuracies are those of Table III."], tables)
    assert found.outcome is Outcome.NOT_TESTED
    assert "FL w/ DP-SGD -2.0, -2.0, -2.0 points; DP-FL w/ MOO +1.5, +1.5, +1.5 points" in found.reason


def test_moo_loses_least_where_its_fall_is_the_smallest() -> None:
    claim = next(one for one in MULTI_OBJECTIVE.claims if one.text.startswith("From ε = 6.38 to 1.64 MOO loses less"))
    tables = made_up_tables()
    lifted = [
        replace(run, numbers={**run.numbers, "test_accuracy": run.numbers["test_accuracy"] + 0.08})
        if run.point[EPSILON] == "1.64"
        else run
        for run in tables.studies["moo"].runs
    ]
    for runs, least in ((lifted, True), (tables.studies["moo"].runs, False)):
        moo = replace(tables.studies["moo"], runs=tuple(runs))
        found = judge(claim, replace(tables, studies={**tables.studies, "moo": moo}))
        assert found.outcome is Outcome.UNDECIDED  # at one rate for all
        assert found.effect is not None and (found.effect.low > 0) is least
        assert ("lies on the claimed side" in found.reason) is least


def test_every_number_of_table_iii_has_its_place() -> None:
    rows = all_numbers_rows(made_up_tables())
    assert [(row["method"], row["data"]) for row in rows[:3]] == [
        ("FL w/ DP-SGD", data) for data in ("MNIST", "Fashion-MNIST", "CIFAR-10")
    ]
    stated = [row[f"paper, ε = {epsilon}"] for row in rows for epsilon in EPSILONS]
    assert len(stated) == 54 and stated[-1] == "59.89 %"
    ours = [row[f"here, ε = {epsilon}"] for row in rows for epsilon in EPSILONS]
    assert ours.count("not run") == 54 - 2 * len(METHODS)


# --- audits, and tuning at the edge ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("empirical", "accounted", "outcome"),
    [
        (6.57, 8.24, Outcome.CONTRADICTED),
        (6.0, 8.24, Outcome.UNDECIDED),
        (6.0, 6.38, Outcome.CONFIRMED),
        (None, 8.24, Outcome.NOT_TESTED),
    ],
)
def test_the_published_epsilon_of_dynamic_dp(empirical: float | None, accounted: float, outcome: Outcome) -> None:
    tables = made_up_tables()
    point = {DATASET: "mnist", EPSILON: "6.38"}
    audits = () if empirical is None else (AuditRow(point, 1, 60, "sample", 6.38, empirical, accounted, 1e-5, ""),)
    dynamic = replace(tables.studies["dynamic"], audits=audits)
    found = judge(DYNAMIC_GUARANTEE, replace(tables, studies={**tables.studies, "dynamic": dynamic}))
    assert found.outcome is outcome
    if empirical is not None:
        assert found.effect is not None and found.effect.value == pytest.approx(empirical / 6.38)


@pytest.mark.parametrize("method", ["MOO", "MOO, private"])
def test_tuning_chose_the_least_rate_of_the_norm(method: str) -> None:
    size: Size = "small"
    assert has_least_rate(method, size)
