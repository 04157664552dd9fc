"""Numbers of a paper's runs: points, intervals, paired differences, and files that say the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from publications.effects import Difference, MissingRuns
from publications.files import cell, exact, number, read_rows, read_study, write_rows, write_study
from publications.joint_curves import CurveRow
from publications.long_table import long_table
from publications.provenance import UNKNOWN
from publications.tables import StudyTable, matches, value_of
from tests.publications.example import EXAMPLE, ORIGIN, RULE, SNR, TABLES, at
from wirelessfl.study import band


def test_a_paired_difference_is_a_paired_t_interval() -> None:
    found = TABLES.difference(at("good"), at("bad"))
    differences = np.array([0.80 - 0.60, 0.70 - 0.51, 0.60 - 0.39])
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert [found.low, found.high] == pytest.approx([low, high])
    assert found.seeds == 3
    assert found.text() == f"+20 ± {100 * found.half_width:.2g} points"


def test_only_seeds_that_both_have_count() -> None:
    found = TABLES.difference(at("good"), ("second", {SNR: 5}))
    assert found.mean == pytest.approx(np.mean([0.5, 0.3, 0.1]))
    with pytest.raises(MissingRuns, match="no common seed"):
        Difference.of([])
    assert Difference.of([0.1]).text() == "+10 points"


def test_a_point_has_to_be_one() -> None:
    table = TABLES.study("first")
    with pytest.raises(ValueError, match="3 points agree"):
        table.by_seed("test_accuracy", {})
    with pytest.raises(ValueError, match=r"first varies training\.algorithm\.name, not nothing"):
        table.by_seed("test_accuracy", {"nothing": 1})
    with pytest.raises(MissingRuns, match="no run at"):
        table.by_seed("test_accuracy", {RULE: "else"})
    with pytest.raises(MissingRuns, match="the study absent has not run"):
        TABLES.study("absent")
    assert table.levels(RULE) == ["good", "bad", "same"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (0.5, "0.5"), (1e-5, "1e-05"), (True, "true"), (None, "null"), ("sgd", "sgd"), ([1], "[1]")],
)
def test_equal_values_have_equal_texts(value: object, text: str) -> None:
    assert value_of(value) == text
    assert matches({"a": text, "b": "1"}, {"a": value})
    assert not matches({"a": text + "0"}, {"a": value})


def test_the_files_say_what_the_runs_said(tmp_path: Path) -> None:
    table = TABLES.study("first")
    write_study(tmp_path, table)
    read = read_study(tmp_path, EXAMPLE.study("first"))
    assert read is not None
    assert read.keys == table.keys
    assert [run.point for run in read.runs] == [run.point for run in table.runs]
    assert read.by_seed("test_accuracy", {RULE: "bad"}) == table.by_seed("test_accuracy", {RULE: "bad"})
    assert np.isnan(read.runs[0].numbers["energy"])
    assert read.runs[0].provenance == ORIGIN
    assert (read.curves, read.audits) == (table.curves, table.audits)
    assert read_study(tmp_path, EXAMPLE.study("absent")) is None


def test_cells() -> None:
    assert [cell(value) for value in (None, float("nan"), float("inf"), 1 / 3, 2)] == ["", "", "inf", "0.333333", "2"]
    assert np.isnan(number("")) and number("inf") == np.inf


def test_numbers_of_runs_keep_their_bits(tmp_path: Path) -> None:
    """All digits are stored, but for runs of unknown origin, of which six are known."""
    table = TABLES.study("first")
    third = {**table.runs[0].numbers, "test_accuracy": 1 / 3}
    for origin, wanted in ((ORIGIN, "0.3333333333333333"), (UNKNOWN, "0.333333")):
        run = replace(table.runs[0], numbers=third, provenance=origin)
        write_study(tmp_path, replace(table, runs=(run,)))
        assert read_rows(tmp_path / "first.runs.csv")[0]["test_accuracy"] == wanted
    assert [float(exact(value)) for value in (0.1 + 0.2, 1e300, np.inf)] == [0.1 + 0.2, 1e300, np.inf]
    assert exact(np.nan) == ""


def test_points_that_lack_a_seed_are_stored_and_not_judged() -> None:
    table = TABLES.study("first")
    partly = replace(table, runs=table.runs[:-1])
    shown = partly.finished_points([1, 2, 3])
    assert [point[RULE] for point in shown.points()] == ["good", "bad"]
    assert (shown.stored, len(shown.runs)) == (8, 6)


def test_stored_runs_stay_where_their_traces_are_not_at_hand() -> None:
    table = TABLES.study("first")
    points = {run.run: run.point for run in table.runs}
    here = replace(table, runs=table.runs[:2], curves=(), audits=())
    both = here.with_stored(table, points)
    assert (both.runs, both.stored, both.audits) == (table.runs, 9, table.audits)
    assert here.with_stored(table, {run: points[run] for run in list(points)[:3]}).runs == table.runs[:3]
    anew = replace(
        here, runs=tuple(replace(run, provenance=replace(ORIGIN, commit="fedcba987654")) for run in here.runs)
    )
    point = here.runs[0].point
    after = anew.with_stored(table, points)
    assert table.audits[0].point == point and after.audits == ()  # an audit of the commit before
    assert {row.point[RULE] for row in after.curves} == {row.point[RULE] for row in table.curves} - {point[RULE]}
    unknown = replace(table, runs=tuple(replace(run, provenance=UNKNOWN) for run in table.runs))
    assert here.with_stored(unknown, points).runs == here.runs
    assert replace(here, runs=()).with_stored(unknown, points).runs == unknown.runs


def runs_of(seeds: dict[int, list[float]], *, commit: str = ORIGIN.commit, key: str = RULE) -> StudyTable:
    """A study of one point as its traces give it: accuracies over the rounds of some seeds."""
    origin, point = replace(ORIGIN, commit=commit), {key: "good"}
    runs = tuple(
        replace(TABLES.study("first").runs[0], point=point, seed=seed, run=f"good{seed}", provenance=origin)
        for seed in seeds
    )

    def rows(series: list[list[float]]) -> tuple[CurveRow, ...]:
        over = band(series)
        places = enumerate(zip(over.mean, over.half_width, strict=True), start=1)
        return tuple(CurveRow(point, at, mean, half_width, over.seeds) for at, (mean, half_width) in places)

    single = {f"good{seed}": rows([series]) for seed, series in seeds.items()}
    return StudyTable("first", (key,), runs, rows(list(seeds.values())), (), len(runs), single)


def without_traces(table: StudyTable) -> StudyTable:
    """The table as files have it."""
    return replace(table, series={})


SERIES = {seed: list(np.random.default_rng(seed).normal(0.5, 0.1, 6)) for seed in range(1, 8)}
POINTS = {f"good{seed}": {RULE: "good"} for seed in SERIES}
FROM_2 = {run: point for run, point in POINTS.items() if run != "good1"}
LATER = "ba9876543210"


def of(*seeds: int, commit: str = ORIGIN.commit) -> StudyTable:
    """Runs of some seeds of `SERIES`."""
    return runs_of({seed: SERIES[seed] for seed in seeds}, commit=commit)


def is_over(table: StudyTable, *seeds: int) -> bool:
    """Whether the curve of a table is that of these seeds, and is shown where they are all."""
    over, rows = band([SERIES[seed] for seed in seeds]), table.finished_points(seeds).curves
    assert {row.seeds for row in rows} == {over.seeds} and [row.round for row in rows] == [1, 2, 3, 4, 5, 6]
    means, widths = ([getattr(row, name) for row in rows] for name in ("mean", "half_width"))
    return means == pytest.approx(over.mean) and widths == pytest.approx(over.half_width)


@pytest.mark.parametrize(
    "parts", [((1,), (2,)), ((1,), (2, 3)), ((1, 2), (3,)), ((1, 2, 3), (4, 5, 6, 7)), ((3, 7), (1,))]
)
def test_mean_curves_of_seeds_that_ran_apart_are_those_of_all(parts: tuple[tuple[int, ...], ...]) -> None:
    """Mean and interval of the sample of all, from those of two parts; also where another commit ran the second."""
    found = of(*parts[1], commit=LATER).with_stored(without_traces(of(*parts[0])), POINTS)
    assert is_over(found, *parts[0], *parts[1])


def test_seeds_are_joined_one_after_the_other() -> None:
    """Each is stored as soon as it has ended; traces of the first ones are gone, those of the others are not."""
    stored = without_traces(of(1, 2))
    for last in (3, 4, 5):
        stored = without_traces(of(*range(3, last + 1)).with_stored(stored, POINTS))
        assert is_over(stored, *range(1, last + 1))
    assert is_over(of(4).with_stored(stored, POINTS), 1, 2, 3, 4, 5)
    assert is_over(of(1, 2, 3, 4, 5).with_stored(stored, POINTS), 1, 2, 3, 4, 5)


def test_curves_are_those_of_the_runs_that_stand_beside_them() -> None:
    """Nothing is shown as the mean of runs of which it is not: seeds that the study lost, runs that were made anew."""
    stored, anew = without_traces(of(1, 2, 3)), runs_of({2: SERIES[5]}, commit=LATER)
    for found, seeds in (
        (anew.with_stored(stored, POINTS), (1, 2, 3)),
        (of(4).with_stored(stored, FROM_2), (2, 3, 4)),
        (of().with_stored(stored, FROM_2), (2, 3)),
        (of(2).with_stored(stored, FROM_2), (2, 3)),
        (of(4).with_stored(replace(stored, curves=of(1, 2).curves), POINTS), (1, 2, 3, 4)),
    ):
        assert {run.seed for run in found.runs} == set(seeds) and found.finished_points(seeds).curves == ()
    assert of(1, 2).with_stored(stored, POINTS).finished_points([1, 2, 3, 4]).curves == ()


@pytest.mark.parametrize("was", [{RULE: "good", "b": "1"}, {"b": "1.0", RULE: "good"}, {RULE: "good"}, {"c": "1"}])
def test_stored_runs_stand_at_the_points_of_the_study_as_it_is(was: dict[str, str], tmp_path: Path) -> None:
    """Whatever the order, the texts and the number of the keys were: ids depend on none of them."""

    def at_point(table: StudyTable, point: dict[str, str]) -> StudyTable:
        runs = tuple(replace(run, point=point) for run in table.runs)
        curves = tuple(replace(row, point=point) for row in table.curves)
        audits = (replace(TABLES.study("first").audits[0], point=point),)
        return replace(table, keys=tuple(point), runs=runs, curves=curves, audits=audits)

    now = {"b": "1", RULE: "good"}
    stored = at_point(without_traces(of(1, 2)), was)
    for here, seeds in ((of(3), (1, 2, 3)), (of(1, 2), (1, 2)), (of(), (1, 2))):
        own = replace(at_point(here, now), audits=())
        found = own.with_stored(stored, dict.fromkeys(POINTS, now))
        assert is_over(found, *seeds) and found.points() == [now] and found.audits[0].point == now
        write_study(tmp_path, found)
        read = read_study(tmp_path, EXAMPLE.study("first"))
        assert read is not None and read.keys == ("b", RULE) and read.points({"b": 1}) == [now]


def test_a_point_without_a_stored_curve_shows_that_of_the_runs_here() -> None:
    stored = replace(without_traces(of(1, 2)), curves=())
    for here in (of(2, commit=LATER), of(3), of(2)):
        assert here.with_stored(stored, POINTS).curves == here.curves
        assert here.with_stored(stored, FROM_2).curves == here.curves
    assert is_over(of(1, 2).with_stored(stored, POINTS), 1, 2)


def test_a_run_with_other_numbers_was_made_anew_whatever_its_commit_says() -> None:
    """Two changed trees have one name."""
    stored = without_traces(of(1, 2))
    run, other = stored.runs[0], {**stored.runs[0].numbers, "test_accuracy": 0.123}
    for numbers, audits in ((other, 0), (run.numbers, 1), ({**run.numbers, "test_accuracy": np.nan}, 1)):
        here = replace(of(1), runs=(replace(run, numbers=numbers),))
        audited = replace(stored, audits=(replace(TABLES.study("first").audits[0], point={RULE: "good"}),))
        found = here.with_stored(audited, POINTS)
        assert len(found.audits) == audits and bool(found.finished_points([1, 2]).curves) == bool(audits)


def test_curves_of_points_that_a_study_no_longer_has_go() -> None:
    before = without_traces(runs_of({seed: SERIES[seed] for seed in (1, 2)}, key="other"))
    assert of(1, 2).with_stored(before, POINTS).curves == of(1, 2).curves


def test_means_that_are_not_finite_and_audits_of_other_seeds() -> None:
    huge = runs_of({2: [1e200, np.inf, np.inf]}, commit=LATER)
    joined = huge.with_stored(without_traces(runs_of({1: [1.0, 1.0, -np.inf]})), POINTS)
    assert [(row.round, row.mean) for row in joined.curves] == [(1, 5e199), (2, np.inf)]
    audits = tuple(replace(one, point={RULE: "good"}) for one in TABLES.study("first").audits)
    audited = replace(without_traces(of(1)), audits=audits)
    assert of(2).with_stored(audited, POINTS).audits == audits
    assert runs_of({1: SERIES[2]}, commit=LATER).with_stored(audited, POINTS).audits == ()


def test_no_rows_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_rows(path, [{"a": 1, "b": "x, y"}])
    assert read_rows(path) == [{"a": "1", "b": "x, y"}]
    write_rows(path, [])
    assert read_rows(path) == []
    assert not path.exists()


def test_the_long_table_has_everything_side_by_side() -> None:
    good, bad, _ = long_table(TABLES, EXAMPLE.study("first"))
    assert good["accuracy"] == pytest.approx(0.7)
    assert (good["paper_accuracy"], good["paper_source"]) == (0.75, "Table I")
    assert good["accuracy_equal_epsilon"] == pytest.approx(0.4)
    assert (good["epsilon_published"], good["epsilon_accounted"], good["epsilon_empirical"]) == (1.0, 10.0, 4.0)
    assert bad["paper_accuracy"] is None and bad["accuracy_equal_epsilon"] is None
    (only,) = long_table(TABLES, EXAMPLE.study("second"))
    assert "paper_accuracy" not in only and "accuracy_equal_epsilon" not in only
