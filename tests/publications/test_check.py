"""Results of a paper are compared with what follows from them, and with runs made anew."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import wirelessfl as wfl
from publications import catalogue, stored
from publications.check import KINDS, check_claims, check_page, check_runs
from publications.collect import point_at
from publications.page import write_page
from publications.provenance import UNKNOWN
from publications.results import read_results, read_tables, size_folder
from publications.runner import load_designs
from publications.stored import Stored, draw, drawn_text, is_short, spreads, stored_runs
from publications.studies import SIZES
from publications.tables import LEARNT, METRICS, RunRow, StudyTable, Tables
from tests.publications.example import ABOUT, EXAMPLE, TABLES
from tests.publications.rerun import ABROAD, KEY, PAPER, changed, command, origin_here, stored_as
from wirelessfl.processor import processor_name
from wirelessfl.study import StudyDesign


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


def test_a_run_is_made_again_and_compared_to_the_last_digit(design: StudyDesign, row: RunRow, tmp_path: Path) -> None:
    run, here = design.runs[-1], row.provenance
    assert point_at(design, run.levels) == {KEY: "2"}
    assert design.values(run.levels) == {KEY: run.scenario.training.epochs}
    told: list[str] = []
    assert check_runs([stored_as(row)], tmp_path / "same", told.append) == []
    how = f"recorded at 0123456789ab, wirelessfl {here.version}, torch {here.torch}"
    assert told == [f"small, one, {design.describe(run)}: the same ({how})"]

    last_digit = 1 + 2.3e-16
    (line,) = check_runs([changed(row, "test_loss", last_digit, here)], tmp_path / "digit")
    assert line.startswith(f"small, one, {design.describe(run)} ({how}): test_loss is ") and "accuracy" not in line
    assert check_runs([changed(row, "test_loss", last_digit, UNKNOWN)], tmp_path / "six") == []  # digits were stored
    assert len(check_runs([changed(row, "test_loss", 1.0001, UNKNOWN)], tmp_path / "not-six")) == 1


ELSEWHERE = [{"processor": "Z80"}, {"processor": ""}, {"version": "0"}, {"chunk": ""}]


@pytest.mark.parametrize("other", ELSEWHERE, ids=lambda other: "-".join(other))
def test_elsewhere_only_what_is_learnt_may_drift(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, str]
) -> None:
    """Made again once, whatever is stored of it."""
    monkeypatch.setattr(Stored, "made_again", lambda *_, **__: row.numbers)
    origin = origin_here(**other)
    for factor, count in ((1 + 9e-7, 0), (1 + 2e-6, 1)):
        assert len(check_runs([changed(row, "train_loss", factor, origin)], tmp_path)) == count
    for metric in ("sim_time", "d", "samples", "server_gain", "epsilon_accounted"):
        known = replace(row, numbers={**row.numbers, metric: 3.0})
        monkeypatch.setattr(Stored, "made_again", lambda *_, known=known, **__: known.numbers)
        assert check_runs([changed(known, metric, 1 + 1e-10, origin)], tmp_path) == []
        (line,) = check_runs([changed(known, metric, 1 + 2e-9, origin)], tmp_path)
        assert "what is learnt within 1e-06 or 1.5 samples of an accuracy" in line and f"): {metric} is " in line


@pytest.mark.parametrize(("off", "count"), [(1, 0), (2, 1)])
def test_one_sample_of_those_that_are_tested_may_turn(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: int, count: int
) -> None:
    """However many there are: digits has fewer than 10,000."""
    one = stored_as(row)
    data = wfl.load_population(one.run.scenario)
    assert one.tested("test_accuracy") == one.tested("late_accuracy") == len(data.test) < 1000
    assert one.tested("validation_accuracy") == stored.USUAL  # none are held out
    monkeypatch.setattr(Stored, "made_again", lambda *_, **__: row.numbers)
    accuracy = row.numbers["test_accuracy"]
    far = changed(row, "test_accuracy", 1 + off / len(data.test) / accuracy, origin_here(**ABROAD))
    assert len(check_runs([far], tmp_path)) == count


def test_two_rows_of_one_run_have_a_folder_each(row: RunRow, tmp_path: Path) -> None:
    assert check_runs([stored_as(row), stored_as(row)], tmp_path) == []


def test_convolutions_and_another_torch_have_the_wide_limit(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 %, or a quarter of the deviation over the seeds: that of two numbers 4 √2 = 5.7 times as far apart."""
    monkeypatch.setattr(Stored, "made_again", lambda *_, **__: row.numbers)
    older = origin_here(torch="1.0")
    assert check_runs([changed(row, "test_loss", 1.009, older)], tmp_path) == []
    (line,) = check_runs([changed(row, "test_loss", 1.02, older)], tmp_path)
    assert f"torch 1.0, now {origin_here().torch}: what is learnt within 0.01 or 0.25 of the deviation" in line
    assert len(check_runs([changed(row, "sim_time", 1.009, older)], tmp_path)) == 1

    loss = row.numbers["test_loss"]
    mine = replace(row, numbers={**row.numbers, "test_loss": 1.1 * loss}, provenance=older)
    for apart, count in ((6.5, 1), (7.0, 0)):
        seed = replace(row, seed=50, numbers={**row.numbers, "test_loss": loss * (1 + 0.1 * apart)})
        assert len(check_runs([stored_as(mine, seed)], tmp_path)) == count

    monkeypatch.setitem(KINDS, "mlp", "convolutional")
    monkeypatch.setitem(KINDS, "logistic", "convolutional")
    assert check_runs([changed(row, "test_loss", 1.009, origin_here(processor="Z80"))], tmp_path) == []


def test_a_model_of_unknown_limits_is_told_before_it_runs(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others are compared all the same."""
    one = changed(row, "test_loss", 1.0, origin_here(**ABROAD))
    monkeypatch.delitem(KINDS, one.run.scenario.model.name)
    told: list[str] = []
    (line,) = check_runs([one, stored_as(row)], tmp_path, told.append)
    assert f": found the model {one.run.scenario.model.name}; limits are known for " in line and "cnn_mnist" in line
    assert "on Z80: not made again): differs" not in line and len(list(tmp_path.iterdir())) == 1
    assert ": differs (" in told[0] and ": the same (" in told[1]


def test_the_models_of_all_papers_have_a_limit(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    sized = [(paper, size) for paper in catalogue.PAPERS.values() for size in SIZES if paper.studies_in(size)]
    designs = [design for paper, size in sized for design in load_designs(paper, size).values()]
    assert {run.scenario.model.name for design in designs for run in design.runs} <= KINDS.keys()


def test_the_spread_of_what_is_learnt_and_finite() -> None:
    (example, *_) = next(iter(TABLES.studies.values())).runs
    rows = tuple(
        replace(example, seed=seed, numbers={**dict.fromkeys(METRICS, at), "train_loss": math.nan})
        for seed, at in enumerate((1.0, 3.0))
    )
    found = spreads(StudyTable("one", (), rows), rows[0])
    assert {metric for metric, spread in found.items() if spread == math.sqrt(2)} == set(LEARNT) - {"train_loss"}
    assert found["train_loss"] == 0 and set(found) == set(LEARNT)
    assert not any(spreads(StudyTable("one", (), rows[:1]), rows[0]).values())


def test_a_run_of_a_gpu_is_made_again_on_a_cpu_where_there_is_none(
    design: StudyDesign, row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rounds otherwise, and no more: the noise on both is the same."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    origin = origin_here(device="cuda, 2 threads", processor=f"{processor_name()}; a GPU")
    assert check_runs([changed(row, "test_loss", 1.005, origin)], tmp_path / "near") == []
    (line,) = check_runs([changed(row, "test_loss", 1.02, origin)], tmp_path / "far")
    assert "; a GPU: what is learnt within 0.01" in line
    assert not is_short(changed(row, "test_loss", 1.0, replace(origin, seconds=1.0)))


def test_runs_are_drawn_evenly_and_long_ones_left_out(row: RunRow) -> None:
    """The middles of equal shares of the list; a run whose time is not known may be long."""
    marked = [replace(stored_as(row), name=str(at)) for at in range(7)]
    assert [one.name for one in draw(marked, 3)] == ["1", "3", "5"]
    assert draw(marked, 7) == draw(marked, 99) == marked
    times = {119.0: True, 121.0: False, math.nan: False}
    for seconds, short in times.items():
        assert is_short(replace(marked[0], provenance=replace(origin_here(), seconds=seconds))) is short


def test_what_is_left_out_is_told_with_its_reason(row: RunRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    known = [origin_here(seconds=seconds) for seconds in (1.0, 121.0, math.nan)]
    origins = [*known, origin_here(device="cuda, 1 thread")]
    there = [replace(stored_as(row), provenance=one) for one in origins]
    short = [one for one in there if is_short(one)]
    why = "; 3 others left out (longer than 120 s: 1, without a stored time: 1, on a GPU that is not here: 1)"
    what = "runs and tuning trials of size small, full"
    assert drawn_text(short, short, there, ("small", "full")) == f"1 of the 1 {what}{why}"
    assert drawn_text([], [], there[1:], ("small", "full")) == (
        f"no run is compared, for none of the 3 {what} is short{why}"
    )
    assert drawn_text([], [], [], ("small",)).startswith("no run is compared: found no runs")
    assert drawn_text(there[:1], there, there, ("small",)).endswith("1 of the 4 runs and tuning trials of size small")


def test_where_no_run_is_compared_that_is_said(
    design: StudyDesign,
    row: RunRow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its time is not stored."""
    paper = replace(PAPER, claims=EXAMPLE.claims[-1:])
    monkeypatch.setitem(catalogue.PAPERS, "tiny", paper)
    about = {**ABOUT, "seeds": {"one": [1, 2]}, "runs": {"one": 4}}
    write_page(paper, Tables(about, {"one": StudyTable("one", (KEY,), (row,), stored=1)}), tmp_path)
    assert command("tiny", "--out", str(tmp_path)) == 0
    assert capsys.readouterr().out.endswith(": no difference\n")
    assert command("tiny", "--sample", "3", "--out", str(tmp_path)) == 0
    told = capsys.readouterr().out
    assert "tiny: no run is compared, for none of the 1 runs and tuning trials of size small is short; 1 others" in told
    assert told.endswith(": no difference of tables and verdicts; no run was compared\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", catalogue.PAPERS)
def test_a_stored_run_of_each_paper_comes_out_the_same(
    name: str, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that took the least time, of this kind of processor if there is one."""
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    paper = catalogue.PAPERS[name]
    folder = size_folder(Path(__file__).resolve().parents[2] / "results", paper, "small")
    if not (folder / "about.json").exists():
        pytest.skip("no results in this checkout")
    known = [one for one in stored_runs(paper, read_tables(paper, folder, unfinished=True)) if one.provenance.kept]
    if not known:
        pytest.skip("recorded before versions were kept: to be run again")
    here = [one for one in known if one.provenance.processor == processor_name()]
    quickest = min(here or known, key=lambda one: one.provenance.seconds)
    assert check_runs([quickest], tmp_path) == []
