"""The over-the-air paper: speed and end judged apart, and what is drawn of studies that are not done."""

from __future__ import annotations

import pytest

from publications import ota_page
from publications.claims import Outcome
from publications.figures import draw_curves, new_figure
from publications.ota_checks import EARLY, METRIC, ordered, over_baseline, with_jammer
from publications.ota_points import (
    ALGORITHM,
    ALGORITHMS,
    ALONE,
    DELTA,
    EPSILON,
    JAMMED,
    JAMMED_EPSILONS,
    JAMMER_EPSILON,
    NOISELESS,
    PAIRS,
    POLICY,
)
from publications.tables import METRICS, CurveRow, RunRow, StudyTable, Tables, value_of

ROUNDS = 40
LEAD = {
    EARLY: {"upcycled": 0.02, "fedprox": 0.01, "fedavg": 0.0},
    METRIC: {"upcycled": 0.01, "fedprox": 0.0, "fedavg": 0.02},
}
"""At first in the order of the paper, at the end not."""


def runs(point: dict[str, str], algorithm: str) -> list[RunRow]:
    numbers = dict.fromkeys(METRICS, 0.5)
    return [
        RunRow(
            point, seed, ROUNDS, numbers | {name: 0.7 + lead[algorithm] + 1e-4 * seed for name, lead in LEAD.items()}
        )
        for seed in range(1, 6)
    ]


def curve(point: dict[str, str]) -> list[CurveRow]:
    return [
        CurveRow(point, at, 0.9 - 0.5 / at, 0.01, 5, metric)
        for metric in ("test_accuracy", "train_loss")
        for at in range(1, ROUNDS + 1)
    ]


def study(name: str, points: list[dict[str, str]]) -> StudyTable:
    rows = [row for point in points for row in runs(point, point[ALGORITHM])]
    return StudyTable(name, tuple(points[0]), tuple(rows), tuple(row for point in points for row in curve(point)))


@pytest.fixture(scope="module")
def tables() -> Tables:
    ways = [*((name, "cross_layer") for name in ALGORITHMS), ("fedavg", "privacy_for_free")]
    alone = [
        {ALGORITHM: name, POLICY: policy, EPSILON: value_of(pair[0]), DELTA: value_of(pair[1])}
        for pair in PAIRS
        for name, policy in ways
    ]
    jammed = [{JAMMER_EPSILON: value_of(one), ALGORITHM: name} for one in JAMMED_EPSILONS for name in ALGORITHMS]
    noiseless = [{ALGORITHM: name} for name in ALGORITHMS]
    found = {ALONE: study(ALONE, alone), JAMMED: study(JAMMED, jammed), NOISELESS: study(NOISELESS, noiseless)}
    return Tables({"paper": "ota-cross-layer-dp"}, found)


def test_an_order_that_changes_is_confirmed_at_first_and_contradicted_at_the_end(tables: Tables) -> None:
    checks = {
        metric: (ordered("upcycled", "fedavg", metric), with_jammer(metric), over_baseline(metric))
        for metric in (EARLY, METRIC)
    }
    first, last = ([check(tables).outcome for check in checks[metric]] for metric in (EARLY, METRIC))

    assert first[:2] == [Outcome.CONFIRMED] * 2
    assert first[2] is Outcome.UNDECIDED  # FedAvg is the baseline's own algorithm
    assert last == [Outcome.CONTRADICTED] * 3


def test_progress_lists_the_rounds_that_there_are_and_the_last(tables: Tables) -> None:
    rows = ota_page.progress_rows(tables)

    assert [row["algorithm"] for row in rows][3:5] == ["baseline [13]", "Upcycled-FL, no noise"]
    assert rows[0]["after 5 rounds"] == "80.00 ± 1.00 %"
    assert rows[0]["after the last"] == "88.75 ± 1.00 %"
    short = StudyTable(ALONE, tables.studies[ALONE].keys, tables.studies[ALONE].runs, tuple(curve_until(tables, 15)))
    cut = ota_page.progress_rows(Tables(tables.about, {ALONE: short}))
    assert len(cut) == 4
    assert cut[0]["after 16 rounds"] == "–"


def curve_until(tables: Tables, last: int) -> list[CurveRow]:
    return [row for row in tables.studies[ALONE].curves if row.round <= last]


def test_a_point_that_has_not_run_has_no_entry_in_the_legend(tables: Tables) -> None:
    _, panels = new_figure(1)
    lines = [("there", {ALGORITHM: "fedavg"}), ("not there", {ALGORITHM: "scaffold"})]

    draw_curves(panels[0][0], tables.study(NOISELESS), lines)

    assert panels[0][0].get_legend_handles_labels()[1] == ["there"]


def test_losses_are_drawn_before_the_iid_study_has_run(tables: Tables) -> None:
    figure = ota_page.draw_losses(tables)
    without_noise = ota_page.draw_without_jammer(tables).axes[0].get_legend_handles_labels()[1]

    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log"]
    assert without_noise[-1] == "FedAvg, no noise"
