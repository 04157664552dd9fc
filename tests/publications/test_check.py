"""Results of a paper are compared with what follows from them, and with runs made anew."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from publications import catalogue, check, stored
from publications.check import KINDS, check_claims, check_page, check_runs, compare_run, limit_of
from publications.collect import point_at, run_row
from publications.page import write_page
from publications.paper import Paper
from publications.provenance import UNKNOWN, Provenance
from publications.results import read_results, read_tables, size_folder
from publications.runner import load_designs
from publications.stored import (
    Stored,
    draw,
    drawn_text,
    is_short,
    spreads,
    stored_runs,
)
from publications.studies import SIZES, PaperStudy
from publications.tables import LEARNT, METRICS, RunRow, StudyTable, Tables
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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyDesign, RunRow]:
    """A study, and its last run as it is recorded here."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "one.yaml").write_text(STUDY, encoding="utf-8")
    found = load_study(folder / "one.yaml")
    run = found.runs[-1]
    result = wfl.simulate(run.scenario, folder / "before", pictures=False, compute__chunk=5)
    return found, run_row({KEY: "2"}, run.scenario.seed, run.id, result.to_dataframe(), result.summary, origin_here())


@pytest.fixture
def design(recorded: tuple[StudyDesign, RunRow], monkeypatch: pytest.MonkeyPatch) -> StudyDesign:
    monkeypatch.setattr(stored, "load_designs", lambda paper, size, overrides: {"one": recorded[0]})
    return recorded[0]


@pytest.fixture
def row(design: StudyDesign, recorded: tuple[StudyDesign, RunRow]) -> RunRow:
    return recorded[1]


def origin_here(**changes: Any) -> Provenance:
    """Where a run of this machine and this version comes from, but for what is changed."""
    torch = version("torch").partition("+")[0]
    return replace(
        Provenance("0123456789ab", wfl.__version__, "1", torch, processor=processor_name(), chunk="5"), **changes
    )


def stored_as(row: RunRow, *others: RunRow) -> Stored:
    """The one run of the study that is stored, with others of its point."""
    table = StudyTable("one", (KEY,), (row, *others))
    *_, found = stored_runs(PAPER, Tables({**ABOUT, "overrides": []}, {"one": table}))
    return found


def changed(row: RunRow, metric: str, factor: float, provenance: Provenance) -> Stored:
    """The run with another number of another origin."""
    return stored_as(replace(row, numbers={**row.numbers, metric: factor * row.numbers[metric]}, provenance=provenance))


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
        assert "what is learnt within 1e-06 or 0.00015 of an accuracy" in line and f"): {metric} is " in line


@pytest.mark.parametrize(("then", "now"), [(0.7133, 0.7099), (0.84031, 0.84012)])
def test_the_runs_that_were_older_than_the_noise_are_found(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: float, now: float
) -> None:
    """Both cases of the issue, of processors that nobody knows; by their accuracy alone."""
    monkeypatch.setattr(Stored, "made_again", lambda *_, **__: {**row.numbers, "test_accuracy": now})
    numbers = {**row.numbers, "test_accuracy": then}
    seeds = [replace(row, seed=50 + at, numbers={**numbers, "test_accuracy": x}) for at, x in enumerate((0.6, 0.8))]
    one = stored_as(replace(row, numbers=numbers, provenance=origin_here(processor="")), *seeds)
    assert one.spread["test_accuracy"] > 0.03
    (line,) = check_runs([one], tmp_path)
    assert f"test_accuracy is {now}, recorded is {then}" in line and "it moves by 0 here" in line


def test_a_run_that_rounding_moves_may_lie_as_far_off(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disturbed by 2^-22 of its rate, up or down: five times what moves, accuracies in points and losses in parts."""
    accuracy, loss = row.numbers["test_accuracy"], row.numbers["test_loss"]
    rates = []

    def again(one: Stored, folder: Path, **changes: float) -> dict[str, float]:
        rates.append(changes.get("training__optimizer__lr"))
        return {**row.numbers, "test_loss": loss * (1 if rates[-1] is None else 1.001)}

    monkeypatch.setattr(Stored, "made_again", again)
    origin = origin_here(processor="Z80")
    near = changed(row, "test_accuracy", 1 + 0.0045 / accuracy, origin)
    differing, how = compare_run(near, tmp_path)
    assert differing == [] and "disturbed by rounding, it moves by 0.001 here itself" in how
    rate = near.run.scenario.training.optimizer.lr
    assert rates == [None, rate * (1 + 2**-22), rate * (1 - 2**-22)]
    assert len(compare_run(changed(row, "test_accuracy", 1 + 0.0055 / accuracy, origin), tmp_path)[0]) == 1
    assert compare_run(changed(row, "test_loss", 1.004, origin), tmp_path)[0] == []
    assert len(compare_run(changed(row, "test_loss", 1.006, origin), tmp_path)[0]) == 1


def test_a_run_is_disturbed_by_its_rate(row: RunRow, tmp_path: Path) -> None:
    """Logistic regression at a small rate moves by about as much as the rate."""
    one = stored_as(row)
    now = one.made_again(tmp_path / "now")
    assert 0 < check.own_drift(one, now, tmp_path) < 1e-6


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


def test_a_model_of_unknown_limits_is_refused(row: RunRow, monkeypatch: pytest.MonkeyPatch) -> None:
    one = changed(row, "test_loss", 1.0, origin_here(processor="Z80"))
    monkeypatch.delitem(KINDS, one.run.scenario.model.name)
    with pytest.raises(ValueError, match=r"limits are known for .*cnn_mnist"):
        limit_of(one)


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
    text = drawn_text(marked[:2], marked[:5], marked, ("small", "full"))
    assert text.startswith("2 of the 5 runs and tuning trials of size small, full; 2 others took longer than 120 s")


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
