"""Settings, coverage and the forest plot; and the largest size that a page shows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from publications import parts
from publications.catalogue import PAPERS
from publications.claims import Claim, Outcome, Verdict, verdict
from publications.effects import Effect, MissingRuns, ratio
from publications.figures import COLOURS, GREY, draw_curves, draw_paper, draw_reference
from publications.forest import draw_forest
from publications.markers import fill
from publications.page import CLAIMS, origin_text, write_page
from publications.paper import Paper, Setting
from publications.results import Judgement, judge_all, read_results
from publications.studies import STUDIES
from publications.tables import Tables
from tests.publications.example import ABOUT, EXAMPLE, RULE, TABLES
from tests.speed import rest_slow
from wirelessfl.summary.style import CYCLE, ROLES

DOCS = Path(__file__).resolve().parents[2] / "docs" / "papers"


@pytest.mark.slow
def test_a_claim_is_judged_at_the_largest_size_that_has_it(both: Path) -> None:
    judged = judge_all(EXAMPLE, read_results(EXAMPLE, both))
    assert [(one.size, one.at_paper_size) for one in judged[:3]] == [
        ("full", "yes"),
        ("full", "yes"),
        ("small", "no: small"),  # of one point in full the last seed is missing
    ]
    assert judged[0].others["small"].outcome is Outcome.CONFIRMED
    assert judged[4].size is None


@pytest.mark.slow
def test_one_seed_of_a_larger_size_does_not_replace_an_interval(tmp_path: Path) -> None:
    first = TABLES.study("first")
    table = replace(first, runs=tuple(run for run in first.runs if run.seed == 1), stored=3)
    about = {**ABOUT, "size": "full", "seeds": {"first": [1]}, "runs": {"first": 3}}
    write_page(EXAMPLE, Tables(about, {"first": table}), tmp_path)
    write_page(EXAMPLE, Tables({**ABOUT, "runs": {}}, {}), tmp_path)
    (alone, *_) = judge_all(EXAMPLE, read_results(EXAMPLE, tmp_path))
    assert (alone.size, alone.verdict.outcome) == ("full", Outcome.UNDECIDED)
    assert "+20 points | yes |" in fill("{{ claims }}", tmp_path, EXAMPLE)
    write_page(EXAMPLE, TABLES, tmp_path)
    (both, *_) = judge_all(EXAMPLE, read_results(EXAMPLE, tmp_path))
    assert (both.size, both.verdict.outcome) == ("small", Outcome.CONFIRMED)
    assert "| no: small (full: one seed, +20 points) |" in fill("{{ claims }}", tmp_path, EXAMPLE)


def test_a_theorem_that_is_judged_without_runs_is_of_no_size(both: Path) -> None:
    theorem = Claim("It follows.", "Theorem 1", lambda tables: verdict(True, "", ""), everywhere=True)
    measured = replace(EXAMPLE.claims[0], everywhere=True)
    found = judge_all(replace(EXAMPLE, claims=(theorem, measured)), read_results(EXAMPLE, both))
    assert [(one.size, one.at_paper_size) for one in found] == [(None, "any size"), ("full", "yes")]
    assert judge_all(EXAMPLE, read_results(EXAMPLE, both))[5].at_paper_size == ""  # not tested


def test_the_forest_plot_goes_when_no_claim_has_an_effect(both: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(both, tmp_path / "both")) / "papers" / EXAMPLE.name
    assert (folder / "claims.png").exists()
    write_page(replace(EXAMPLE, claims=EXAMPLE.claims[4:]), TABLES, tmp_path / "both")
    assert not list(folder.glob("claims*.svg")) and not (folder / "claims.png").exists()


@pytest.mark.slow
def test_the_page_shows_the_largest_size_and_the_small_one_folded(both: Path) -> None:
    text = fill("{{ table first }}\n\n{{ figure curves }}\n\n{{ claims }}\n\n{{ about }}", both, EXAMPLE)
    title = EXAMPLE.study("first").title
    assert f"*{title[0].upper()}{title[1:]}. Size `full`, 8 of 9 runs; points that lack one are left out.*" in text
    assert '??? note "The same in size small"' in text
    assert "(example/full/curves.svg#only-light)" in text
    assert "(example/claims-dark.svg#only-dark)" in text
    assert "| yes (small: confirmed) |" in text
    assert "Size `full`: 3 seeds a point, 8 of 9 runs; wirelessfl 0, commit `0123456789ab`, stream version 1" in text
    assert "Size `full`" not in fill("{{ table first small }}", both, EXAMPLE)
    with pytest.raises(ValueError, match="found size huge"):
        fill("{{ table first huge }}", both, EXAMPLE)


def test_null_is_put_into_words() -> None:
    moo = PAPERS["moo-adaptive-clipping"]
    lines = (Setting("samples", "60,000", "data.limit", "moo"), Setting("epochs", "E", "training.epochs", "moo"))
    samples, epochs = parts.setting_rows(replace(moo, setting=lines))
    assert samples["here, `full`"] == "all" and epochs["here, `small`"] == "–"


def test_the_index_names_what_has_not_run(both: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("publications.markers.PAPERS", {EXAMPLE.name: EXAMPLE})
    medium = replace(EXAMPLE.studies[1], sizes=("medium",))
    lines = fill("{{ cost }}", both, None).splitlines()
    assert [line.split(" | ")[-1] for line in lines[2:]] == ["– |", "first (1) |"]
    assert [line.split(" | ")[1] for line in lines[2:]] == ["small", "full"]
    monkeypatch.setattr(
        "publications.markers.PAPERS", {"example": replace(EXAMPLE, studies=(medium, *EXAMPLE.studies))}
    )
    assert (
        fill("{{ cost }}", both, None).splitlines()[3].endswith("| medium | none | not run | – | – | – | – | second |")
    )


def test_our_setting_is_read_from_the_study_files() -> None:
    ota = PAPERS["ota-cross-layer-dp"]
    lines = (
        Setting("rounds", "80", "rounds"),
        Setting("users", "50", "clients.count", "with-jammer"),
        Setting("data", "EMNIST", ours={"small": "a part of it"}),
    )
    rounds, users, data = parts.setting_rows(replace(ota, setting=lines))
    assert rounds["here, `full`"] == "80" and rounds["here, `small`"] != "80"
    assert users["paper"] == users["here, `full`"] == "50"
    assert (data["here, `small`"], data["here, `full`"]) == ("a part of it", "–")
    with pytest.raises(ValueError, match=r"names the key clients\.size"):
        parts.setting_rows(replace(ota, setting=(Setting("users", "50", "clients.size"),)))


@pytest.mark.parametrize("paper", rest_slow(PAPERS.values()), ids=list(PAPERS))
def test_what_a_paper_declares_is_there(paper: Paper) -> None:
    """Its settings have their keys, its coverage its headings, and its sizes their files."""
    assert len(parts.setting_rows(paper)) == len(paper.setting)
    slugify = pytest.importorskip("markdown.extensions.toc").slugify
    headings = [line.lstrip("# ") for line in (DOCS / f"{paper.name}.md").read_text().splitlines() if line[:1] == "#"]
    anchors = {f"#{slugify(heading, '-')}" for heading in headings}
    for one in paper.coverage:
        assert one.where in anchors or (not one.where and one.reason), one
    for size in ("small", "medium", "full"):
        files = {file.stem for file in (STUDIES / paper.name / size).glob("*.yaml")}
        assert files == {study.name for study in paper.studies if size in study.sizes}


def test_coverage_says_where_or_why_not() -> None:
    first, second = parts.coverage_rows(EXAMPLE)
    assert first["here"] == "[on this page](#curves)"
    assert (second["here"], second["remark"]) == ("not here", "nothing to run")


def test_the_forest_plot_has_every_claim_with_an_effect(both: Path) -> None:
    judged = judge_all(EXAMPLE, read_results(EXAMPLE, both))
    (axes,) = draw_forest(judged).axes
    assert [label.get_text().split(".")[0] for label in axes.get_yticklabels()] == ["1", "2", "3", "4"]
    colours = [line.get_color() for line in axes.lines if line.get_marker() == "o"]
    assert colours == [ROLES[name] for name in ("participated", "crashed", "recorded", "crashed")]
    faces = [line.get_markerfacecolor() for line in axes.lines if line.get_marker() == "o"]
    assert faces[2] == "none" and "none" not in faces[:2]  # the third is from the small size


def judged_as(*effects: Effect) -> list[Judgement]:
    """Claims that are confirmed at the paper's size, with these effects."""
    claim = Claim("It is so.", "I", lambda tables: verdict(True, "", ""))
    return [Judgement(claim, Verdict(Outcome.CONFIRMED, "", "", one), "full", {}) for one in effects]


def test_effects_of_unlike_size_stand_on_a_logarithmic_axis() -> None:
    small, large = Effect(0.0003, 0.0001, 0.0005), Effect(0.5, 0.4, 0.6)
    (axes,) = draw_forest(judged_as(small, large)).axes
    assert axes.get_xscale() == "symlog" and "logarithmic beyond ±0.1" in axes.get_xlabel()
    (alike,) = draw_forest(judged_as(Effect(0.3, 0.1, 0.5), large)).axes
    assert alike.get_xscale() == "linear"


def test_a_row_says_which_quotient_it_has_and_one_of_a_setting_has_every_value() -> None:
    parts = tuple(Effect(value, value - 0.1, value + 0.1, name=f"τ = {at}, over b") for at, value in ((1, 0.2), (2, 0)))
    points, quotients = draw_forest(judged_as(replace(parts[1], parts=parts), ratio(2.0, "true over stated"))).axes
    assert points.get_yticklabels()[0].get_text().endswith("(from τ = 1 above to τ = 2 below)")
    markers = [line for line in points.lines if line.get_marker() == "o"]
    assert [np.asarray(line.get_xdata()).tolist() for line in markers] == [[20.0], [0.0]]
    assert float(np.asarray(markers[0].get_ydata())[0]) < float(np.asarray(markers[1].get_ydata())[0])
    assert quotients.get_yticklabels()[0].get_text().endswith("(true over stated)")


def test_a_picture_that_shows_no_runs_has_no_size(both: Path) -> None:
    curves = EXAMPLE.figures[0]
    of_no_runs = replace(EXAMPLE, figures=(replace(curves, runs=False),))
    assert "*Curves. Size `full`.*" in fill("{{ figure curves }}", both, EXAMPLE)
    assert "*Curves.*" in fill("{{ figure curves }}", both, of_no_runs)


def test_many_commits_are_counted(both: Path) -> None:
    tables = read_results(EXAMPLE, both)["full"]
    first = tables.study("first")
    runs = tuple(
        replace(run, provenance=replace(run.provenance, commit=f"{at:012d}", version="0"))
        for at, run in enumerate(first.runs)
    )
    told = origin_text(replace(tables, studies={"first": replace(first, runs=runs)}))
    assert f"wirelessfl 0, {len(runs)} commits, " in told


def test_on_a_narrow_screen_the_forest_plot_scrolls_at_a_readable_width(both: Path) -> None:
    style = (DOCS.parent / "style.css").read_text(encoding="utf-8")
    narrow = style.split("The plot of a paper's claims")[1]
    assert f'img[src*="/{CLAIMS}"]' in narrow and "overflow-x: auto" in narrow and "width: 36rem" in narrow
    assert f"(example/{CLAIMS}.svg#only-light)" in fill("{{ claims }}", both, EXAMPLE)


def test_curves_follow_losses_too_with_a_dashed_reference_and_the_papers_numbers() -> None:
    first = TABLES.study("first")
    losses = tuple(replace(row, metric="train_loss", mean=1.0) for row in first.curves)
    table = replace(first, curves=(*first.curves, *losses))
    axes = Figure().subplots()
    draw_curves(axes, table, [("good", {RULE: "good"})], "train_loss")
    draw_reference(axes, table, "bad", {RULE: "bad"}, "train_loss")
    draw_reference(axes, table, "absent", {RULE: "bad"}, "gradient_norm")
    draw_paper(axes, [2], [1.1])
    assert axes.get_legend_handles_labels()[1] == ["good", "bad", "paper"]
    good, bad, paper = axes.lines
    assert np.asarray(good.get_ydata()).tolist() == [1.0, 1.0]  # not in percent
    assert (bad.get_linestyle(), bad.get_color(), paper.get_marker()) == ("--", GREY, "D")
    with pytest.raises(MissingRuns, match="gradient_norm was not followed"):
        draw_curves(axes, table, [("good", {RULE: "good"})], "gradient_norm")
    assert COLOURS == CYCLE
