"""The over-the-air paper: speed and end judged apart, and what is drawn of studies that are not done."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from publications import ota_page
from publications.catalogue import PAPERS
from publications.claims import Outcome, judge
from publications.effects import average
from publications.figures import draw_curves, new_figure
from publications.joint_curves import CurveRow
from publications.ota_checks import (
    EARLY,
    METRIC,
    SIGNIFICANT,
    at_one_clip_norm,
    even_iterations_are_free,
    iid_beats_baseline,
    ordered,
    over_baseline,
    power_of_exact,
    power_saving,
    with_jammer,
)
from publications.ota_points import (
    ALGORITHM,
    ALGORITHMS,
    ALONE,
    CLIP,
    CLIPS,
    DELTA,
    EPSILON,
    EPSILONS,
    JAMMED,
    JAMMED_EPSILONS,
    JAMMER_EPSILON,
    NOISELESS,
    PAIRS,
    POLICY,
    SWEEP,
    alone,
    equal,
    iid,
    jammed,
    step,
)
from publications.results import read_results
from publications.tables import METRICS, RunRow, StudyTable, Tables, value_of

ROUNDS = 40
LEAD = {
    EARLY: {"upcycled": 0.02, "fedprox": 0.01, "fedavg": 0.0},
    METRIC: {"upcycled": 0.01, "fedprox": 0.0, "fedavg": 0.02},
}
"""At first in the order of the paper, at the end not."""


def runs(point: dict[str, str], algorithm: str, sign: float = 1) -> list[RunRow]:
    numbers = dict.fromkeys(METRICS, 0.5)
    return [
        RunRow(
            point,
            seed,
            ROUNDS,
            numbers | {name: 0.7 + sign * lead[algorithm] + 1e-4 * seed for name, lead in LEAD.items()},
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
    """With the jammer and beside the baseline; of one τ alone nothing is decided on algorithms."""
    checks = {
        metric: (with_jammer(metric), over_baseline(metric), ordered("upcycled", "fedavg", metric=metric))
        for metric in (EARLY, METRIC)
    }
    first, last = ([check(tables) for check in checks[metric]] for metric in (EARLY, METRIC))

    assert first[0].outcome is Outcome.CONFIRMED
    assert first[1].outcome is Outcome.UNDECIDED  # FedAvg is the baseline's own algorithm
    assert [found.outcome for found in last[:2]] == [Outcome.CONTRADICTED] * 2
    for one, sign in ((first[2], 1), (last[2], -1)):
        assert one.outcome is Outcome.UNDECIDED and one.reason.startswith("τ = 1 alone has run")
        assert one.effect is not None and one.effect.value * sign > 0
    for checked, metric in itertools.product((with_jammer, over_baseline), (EARLY, METRIC)):
        found = at_one_clip_norm(checked(metric))(tables)
        assert found.outcome is Outcome.UNDECIDED and found.effect == checked(metric)(tables).effect


def test_progress_lists_the_rounds_that_there_are_and_the_last(tables: Tables) -> None:
    rows = ota_page.progress_rows(tables)

    assert [row["algorithm"] for row in rows][3:5] == ["baseline [13]", "Upcycled-FL, no noise"]
    assert rows[0]["after 5 rounds"] == "80.00 ± 1.00 %"
    assert rows[0]["after the last"] == "88.75 ± 1.00 %"
    short = StudyTable(ALONE, tables.studies[ALONE].keys, tables.studies[ALONE].runs, tuple(curve_until(tables, 15)))
    cut = ota_page.progress_rows(Tables(tables.about, {ALONE: short}))
    assert len(cut) == 4
    assert [head for head in cut[0] if head.startswith("after")] == ["after 5 rounds", "after the last"]


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


def test_an_order_that_changes_with_the_clip_norm_depends_on_it(tables: Tables) -> None:
    points = [{CLIP: value_of(norm), ALGORITHM: name} for norm in CLIPS if norm != 1 for name in ALGORITHMS]

    def swept(sign_at: dict[float, float]) -> Tables:
        """With a sweep in which the leads have another sign at some clip norms."""
        rows = [row for point in points for row in runs(point, point[ALGORITHM], sign_at.get(float(point[CLIP]), 1))]
        return replace(tables, studies={**tables.studies, SWEEP: StudyTable(SWEEP, tuple(points[0]), tuple(rows))})

    check = ordered("upcycled", "fedavg", metric=EARLY)
    assert check(tables).remark == "at τ = 1 alone"
    assert check(swept({})).outcome is Outcome.CONFIRMED
    found = check(swept({4.0: -1}))
    assert (found.outcome, found.remark) == (Outcome.UNDECIDED, "it depends on τ")
    assert found.reason.endswith("confirmed at τ = 0.5, τ = 1, τ = 2; contradicted at τ = 4")
    assert found.effect is not None and len(found.effect.parts) == len(CLIPS)


def test_a_lead_below_our_reading_of_significant_is_not_one(tables: Tables) -> None:
    both = ordered("upcycled", "fedprox", "fedavg", metric=EARLY, least=SIGNIFICANT / 2)
    assert "each mean effect over 5 seeds lies on the claimed side" in both(tables).reason
    beyond = ordered("upcycled", "fedprox", "fedavg", metric=EARLY, least=1.5 * SIGNIFICANT)(tables)
    assert "lies wholly on the other side" in beyond.reason and beyond.effect is not None
    assert beyond.effect.name == "over FedProx"


# --- what is stored, and what the page says of it ----------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stored() -> Tables:
    return read_results(PAPERS["ota-cross-layer-dp"], ROOT / "results")["full"]


def test_the_order_of_the_stored_runs_depends_on_the_clip_norm(stored: Tables) -> None:
    judged = {claim.text: judge(claim, stored) for claim in PAPERS["ota-cross-layer-dp"].claims[:6]}
    assert [one.remark for one in judged.values()] == ["", "", "", *["it depends on τ"] * 3]
    assert [one.outcome for one in judged.values()] == [*[Outcome.CONFIRMED] * 3, *[Outcome.UNDECIDED] * 3]


def test_even_iterations_and_jamming_energy_are_the_same_in_every_seed(stored: Tables) -> None:
    free = even_iterations_are_free(stored)
    assert free.outcome is Outcome.CONFIRMED and free.effect is not None
    assert free.effect.value == pytest.approx(1, abs=1e-9)
    savings = [list(power_saving(stored, epsilon).by_seed.values()) for epsilon in JAMMED_EPSILONS]
    assert all(some == pytest.approx([some[0]] * len(some), abs=1e-12) for some in savings)
    energy = power_of_exact(stored)
    assert energy.effect is not None and energy.effect.value == pytest.approx(1 - min(some[0] for some in savings))
    dearer = replace(stored.study("gradient-step"), runs=tuple(map(swapped, stored.study("gradient-step").runs)))
    assert power_of_exact(replace(stored, studies={"gradient-step": dearer})).outcome is Outcome.CONTRADICTED


def swapped(run: RunRow) -> RunRow:
    """A run that goes for one of the other calibration."""
    other = {"exact": "theorem", "theorem": "exact"}
    return replace(run, point={key: other.get(value, value) for key, value in run.point.items()})


def test_the_numbers_that_the_page_types_are_those_that_are_stored(stored: Tables) -> None:
    page = " ".join((ROOT / "docs/papers/ota-cross-layer-dp.md").read_text(encoding="utf-8").split())

    def accuracy(place: tuple[str, Mapping[str, object]]) -> float:
        return 100 * float(stored.band(*place).mean[0])

    def ends(values: Iterable[float]) -> str:
        known = sorted(values)
        return f"{known[0]:.1f} to {known[-1]:.1f} %"

    lead = over_baseline(EARLY)(stored).effect
    on_iid, significant = iid_beats_baseline()(stored).effect, iid_beats_baseline(SIGNIFICANT)(stored)
    assert lead is not None and on_iid is not None and significant.outcome is Outcome.UNDECIDED
    assert significant.remark == "at one rate and τ = 1 alone"
    loss = stored.difference(iid("cross_layer"), iid("privacy_for_free"), "train_loss")
    late = ordered("upcycled", "fedprox", "fedavg", metric=METRIC)(stored).effect
    assert late is not None and max(part.value for part in late.parts) < 0.01
    exact = [accuracy(step(epsilon, "exact")) for epsilon in (1, 0.5, 0.1)]
    whole = [accuracy(equal(name, epsilon)) for name in ALGORITHMS for epsilon in EPSILONS if epsilon <= 1]
    saved = [100 * power_saving(stored, epsilon).mean for epsilon in JAMMED_EPSILONS]
    jammer = {
        metric: average(
            [stored.difference(jammed("upcycled", e), jammed("fedprox", e), metric) for e in JAMMED_EPSILONS]
        )
        for metric in (EARLY, METRIC)
    }
    sentences = (
        f"by {-100 * jammer[EARLY].mean:.2f} ± {100 * jammer[EARLY].half_width:.2f} points, and ahead of it in the "
        f"last, by {100 * jammer[METRIC].mean:.2f} ± {100 * jammer[METRIC].half_width:.2f}",
        f"costs {100 * lead.value:.2f} points in the first quarter, and in the last less than the seeds can show",
        f"leads it by {100 * lead.value:.2f} points in the first quarter",
        f"FedAvg ends {-loss.mean:.4f} ± {loss.half_width:.4f} below that of the baseline",
        f"by {100 * on_iid.value:.2f} points (95 % interval {100 * on_iid.low:.2f} to {100 * on_iid.high:.2f})",
        f"falls from {accuracy(alone('fedavg', PAIRS[0])):.1f} to {accuracy(equal('fedavg', 6.52)):.1f} % at ε = 6.52",
        f"all three are at {max(whole):.1f} % or below at ε = 1 and less",
        f"reaches {exact[0]:.1f} % at a true ε of 1, {exact[1]:.1f} % at 0.5 and {exact[2]:.1f} % at 0.1",
        f"needs {ends(saved).removesuffix(' %')} % less energy",
    )
    assert [one for one in sentences if one not in page] == []
    published = {epsilon: accuracy(jammed("fedavg", epsilon)) for epsilon in (1, 0.5)}
    assert all(accuracy(step(epsilon, "exact")) > value for epsilon, value in published.items())
    band, other = stored.band(*jammed("fedavg", 0.1)), stored.band(*step(0.1, "exact"))
    assert abs(float(band.mean[0] - other.mean[0])) < float(band.half_width[0])
