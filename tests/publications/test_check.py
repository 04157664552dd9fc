"""Results of a paper are compared with what follows from them, and with runs made anew."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import wirelessfl as wfl
from publications import catalogue, check
from publications.check import check_claims, check_page, check_runs
from publications.collect import point_at, run_row
from publications.page import write_page
from publications.paper import Paper
from publications.provenance import UNKNOWN, Provenance
from publications.results import read_results, read_tables, size_folder
from publications.studies import PaperStudy
from publications.tables import LEARNT, METRICS, StudyTable, Tables
from tests.publications.example import ABOUT, EXAMPLE, TABLES
from wirelessfl.cli import main
from wirelessfl.processor import processor_name
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
    folder = write_page(EXAMPLE, TABLES, tmp_path)
    assert check_page(EXAMPLE, read_tables(EXAMPLE, folder), folder) == []
    assert check_claims(EXAMPLE, read_results(EXAMPLE, tmp_path), folder) == []
    assert command("example", "--out", str(tmp_path)) == 0
    claims = folder / "claims.csv"
    claims.write_text(claims.read_text(encoding="utf-8").replace("undecided", "confirmed"), encoding="utf-8")
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
    torch = version("torch").partition("+")[0]
    origin = Provenance("0123456789ab", "0", "1", torch, processor=processor_name())
    row = run_row({KEY: "2"}, run.scenario.seed, run.id, result.to_dataframe(), result.summary, origin)
    table = StudyTable("one", (KEY,), (row,))
    told: list[str] = []
    assert check_runs(PAPER, Tables({**ABOUT, "overrides": []}, {"one": table}), 3, tmp_path, told.append) == []
    how = f"recorded at 0123456789ab, wirelessfl 0, torch {origin.torch}"
    assert told == [f"one, {design.describe(run)}: the same ({how})"]

    def again(factor: float, origin: Provenance) -> list[str]:
        other = replace(row, numbers={**row.numbers, "test_loss": factor * row.numbers["test_loss"]}, provenance=origin)
        altered = Tables({**ABOUT, "overrides": []}, {"one": replace(table, runs=(other,))})
        return check_runs(PAPER, altered, 1, tmp_path / f"{factor}-{origin.torch}-{origin.processor}")

    last_digit = 1 + 2.3e-16
    (line,) = again(last_digit, origin)
    assert line.startswith(f"one, {design.describe(run)} ({how}): test_loss is ") and "accuracy" not in line
    assert again(last_digit, UNKNOWN) == []  # six digits were stored
    assert len(again(1.0001, UNKNOWN)) == 1
    for other in (replace(origin, torch="1.0"), replace(origin, processor="Z80"), replace(origin, processor="")):
        assert again(1.005, other) == []
    (line,) = again(1.02, replace(origin, processor="Z80"))
    assert "on Z80: compared within 1%" in line
    older = replace(origin, torch="1.0")
    (line,) = again(1.02, older)
    assert f"torch 1.0, now {origin.torch}: compared within 1%" in line


def test_a_run_of_another_processor_may_drift_by_less_than_its_seeds_differ(
    design: StudyDesign, tmp_path: Path
) -> None:
    run, origin = design.runs[-1], Provenance("0123456789ab", "0", "1", "1.0")
    result = wfl.simulate(run.scenario, tmp_path / "before", pictures=False)
    row = run_row({KEY: "2"}, run.scenario.seed, run.id, result.to_dataframe(), result.summary, origin)
    loss = row.numbers["test_loss"]

    def again(drift: float, *seeds: float, here: bool = False) -> list[str]:
        """With losses of this and other seeds of the point; another point differs more."""
        kept = replace(origin, torch=version("torch").partition("+")[0], processor=processor_name()) if here else origin
        mine = replace(row, numbers={**row.numbers, "test_loss": loss + drift}, provenance=kept)
        others = [replace(row, seed=50 + at, numbers={**row.numbers, "test_loss": x}) for at, x in enumerate(seeds)]
        elsewhere = replace(row, point={KEY: "1"}, numbers={**row.numbers, "test_loss": 100 * loss})
        table = StudyTable("one", (KEY,), (elsewhere, *others, mine))
        spread = check.spreads(table, mine)
        return check.compare_run(design, run, mine, tmp_path / f"{drift}-{seeds}-{here}", spread)

    drift = 0.1 * loss  # a quarter of the deviation of two numbers that are 4 √2 = 5.7 times as far apart
    assert len(again(drift)) == 1
    assert len(again(drift, loss + 6.5 * drift)) == 1
    assert again(drift, loss + 7 * drift) == []
    assert len(again(drift, loss + 7 * drift, here=True)) == 1


def test_the_spread_of_what_is_learnt_and_finite() -> None:
    (example, *_) = next(iter(TABLES.studies.values())).runs
    rows = tuple(
        replace(example, seed=seed, numbers={**dict.fromkeys(METRICS, at), "train_loss": math.nan})
        for seed, at in enumerate((1.0, 3.0))
    )
    found = check.spreads(StudyTable("one", (), rows), rows[0])
    assert {metric for metric, spread in found.items() if spread == math.sqrt(2)} == set(LEARNT) - {"train_loss"}
    assert set(found) == set(METRICS) and sum(map(bool, found.values())) == len(LEARNT) - 1
    assert not any(check.spreads(StudyTable("one", (), rows[:1]), rows[0]).values())


def test_a_run_of_a_gpu_is_made_again_on_a_cpu_where_there_is_none(
    design: StudyDesign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rounds otherwise, and no more: the noise on both is the same."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    run = design.runs[0]
    result = wfl.simulate(run.scenario, tmp_path / "before", pictures=False)
    torch = version("torch").partition("+")[0]
    origin = Provenance("0123456789ab", "0", "1", torch, "cuda, 2 threads", f"{processor_name()}; a GPU")
    row = run_row({KEY: "1"}, run.scenario.seed, run.id, result.to_dataframe(), result.summary, origin)

    def again(factor: float) -> list[str]:
        numbers = {**row.numbers, "test_loss": factor * row.numbers["test_loss"]}
        table = StudyTable("one", (KEY,), (replace(row, numbers=numbers),))
        return check_runs(PAPER, Tables({**ABOUT, "overrides": []}, {"one": table}), 1, tmp_path / str(factor))

    assert again(1.005) == []
    (line,) = again(1.02)
    assert "; a GPU: compared within 1%" in line


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.PAPERS)
def test_a_stored_run_of_each_paper_comes_out_the_same(
    name: str, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that took the least time, of this kind of processor if there is one: then to the last digit."""
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    paper = catalogue.PAPERS[name]
    folder = size_folder(Path(__file__).resolve().parents[2] / "results", paper, "small")
    if not (folder / "about.json").exists():
        pytest.skip("no results in this checkout")
    stored = read_tables(paper, folder, unfinished=True)
    known = [one for one in check.recorded_runs(paper, stored) if one[3].provenance.kept]
    if not known:
        pytest.skip("recorded before versions were kept: to be run again")
    here = [one for one in known if one[3].provenance.processor == processor_name()]
    study, design, run, before = min(here or known, key=lambda one: one[3].provenance.seconds)
    assert check.compare_run(design, run, before, tmp_path, check.spreads(stored.studies[study], before)) == []
