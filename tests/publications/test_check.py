"""Results of a paper are compared with what follows from them, and with runs made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import wirelessfl as wfl
from publications import catalogue, check
from publications.check import check_page, check_runs
from publications.collect import point_at, run_row
from publications.page import paper_folder, write_page
from publications.paper import Paper
from publications.studies import PaperStudy
from publications.tables import StudyTable, Tables
from tests.publications.example import ABOUT, EXAMPLE, TABLES
from wirelessfl.cli import main
from wirelessfl.study import StudyDesign, load_study

KEY = "training.epochs"
STUDY = f"base: quickstart\nset: {{rounds: 2, clients.count: 5}}\ngrid: {{{KEY}: [1, 2]}}\nseeds: 2\n"
PAPER = Paper("tiny", "Tiny", "Nobody", (PaperStudy("one", "One"),), ())


def command(*words: str) -> int:
    """The exit code of ``wirelessfl papers check``."""
    with pytest.raises(SystemExit) as caught:
        main.main(["papers", "check", *words])
    code = caught.value.code
    assert isinstance(code, int)
    return code


def test_a_verdict_that_does_not_follow_from_the_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(catalogue.PAPERS, "example", EXAMPLE)
    folder = paper_folder(tmp_path, EXAMPLE, "small")
    write_page(EXAMPLE, TABLES, folder)
    assert check_page(EXAMPLE, TABLES, folder) == []
    assert command("example", "--out", str(tmp_path)) == 0
    claims = folder / "claims.csv"
    claims.write_text(claims.read_text(encoding="utf-8").replace("not confirmed", "confirmed"), encoding="utf-8")
    assert command("example", "--out", str(tmp_path)) == 4
    assert "claims.csv: does not follow from the runs" in capsys.readouterr().err


@pytest.fixture
def design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyDesign:
    file = tmp_path / "one.yaml"
    file.write_text(STUDY, encoding="utf-8")
    found = load_study(file)
    monkeypatch.setattr(check, "load_designs", lambda paper, size, overrides: {"one": found})
    return found


def test_a_run_is_made_again_and_compared_number_by_number(design: StudyDesign, tmp_path: Path) -> None:
    run = design.runs[-1]
    assert point_at(design, run.levels) == {KEY: "2"}
    assert design.values(run.levels) == {KEY: run.scenario.training.epochs}
    result = wfl.simulate(run.scenario, tmp_path / "before", pictures=False)
    row = run_row({KEY: "2"}, run.scenario.seed, run.id, result.to_dataframe(), result.summary)
    table = StudyTable("one", (KEY,), (row,))
    told: list[str] = []
    assert check_runs(PAPER, Tables({**ABOUT, "overrides": []}, {"one": table}), 3, tmp_path, told.append) == []
    assert told == [f"one, {design.describe(run)}: the same"]

    other = replace(row, numbers={**row.numbers, "test_loss": 1.01 * row.numbers["test_loss"]})
    altered = Tables({**ABOUT, "overrides": []}, {"one": replace(table, runs=(other,))})
    (line,) = check_runs(PAPER, altered, 1, tmp_path / "again")
    assert line.startswith(f"one, {design.describe(run)}: test_loss is ") and "accuracy" not in line
