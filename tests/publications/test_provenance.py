"""Commits of runs are those under which they were computed, not those of their collection."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import wirelessfl as wfl
from publications import runner
from publications.collect import begun_runs, collect, finished_runs
from publications.paper import Paper
from publications.provenance import UNKNOWN, Notes, Provenance, current_commit
from publications.runner import Request, collect_paper
from publications.studies import PaperStudy
from wirelessfl.errors import OutputError
from wirelessfl.study import Outcome, Progress, load_study

FIRST, SECOND = "0123456789ab", "ba9876543210"
STUDY = "base: quickstart\nset: {rounds: 2, clients.count: 5}\ngrid: {training.epochs: [1, 2]}\nseeds: 2\n"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_run_is_made_again_on_as_many_threads() -> None:
    assert Provenance(device="cpu, 1 thread").plan == {"device": "cpu", "threads": 1}
    assert Provenance(device="cuda, 16 threads").plan == {"device": "cuda", "threads": 16}
    assert UNKNOWN.plan == {}


def test_a_gpu_is_told_by_its_name() -> None:
    known = Provenance(device="cuda, 5 threads", processor="a CPU, avx2; NVIDIA H200")
    assert known.where == "NVIDIA H200, 5 threads"
    unnamed = Provenance(device="cuda, 2 threads", processor="a CPU, avx2")
    for other in (Provenance(device="cpu, 1 thread", processor="a CPU"), unnamed, UNKNOWN):
        assert other.where == other.device


def test_a_changed_tree_is_marked(tmp_path: Path) -> None:
    assert current_commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    for name in ("wirelessfl/a.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")[:12]
    assert current_commit(tmp_path) == head
    (tmp_path / "docs/a.md").write_text("b\n", encoding="utf-8")
    assert current_commit(tmp_path) == head  # no number follows from it
    (tmp_path / "wirelessfl/a.py").write_text("b\n", encoding="utf-8")
    assert current_commit(tmp_path) == head + "+"
    assert current_commit(tmp_path / "wirelessfl") == ""


def test_a_run_keeps_the_commits_that_computed_it(tmp_path: Path) -> None:
    ended, begun = Outcome("ended", "complete"), Progress("begun", 1, 5, 0.1)
    notes = Notes.of(tmp_path, FIRST)
    notes.note(ended, set(), set())
    notes.note(begun, set(), set())
    notes.note(Outcome("failed", "failed", "why"), set(), set())
    later = Notes.of(tmp_path, SECOND)
    later.note(ended, {"ended"}, {"ended", "begun"})
    later.note(Outcome("begun", "complete"), {"ended"}, {"ended", "begun"})
    later.note(Outcome("older", "complete"), set(), {"older"})  # begun when nothing was noted
    later.note(Outcome("new", "complete"), set(), set())
    assert Notes.of(tmp_path, "").runs == {"ended": FIRST, "begun": f"{FIRST} to {SECOND}", "new": SECOND}
    (tmp_path / "provenance.json").write_text("[]", encoding="utf-8")
    with pytest.raises(OutputError, match=r"provenance\.json: not the commits of runs"):
        Notes.of(tmp_path, "")


@pytest.mark.slow
def test_a_study_is_collected_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every finished run is there; a point is shown when its last seed is."""
    file = tmp_path / "one.yaml"
    file.write_text(STUDY, encoding="utf-8")
    study = PaperStudy("one", "One")
    paper = Paper("tiny", "Tiny", "Nobody", (study,), ())
    monkeypatch.setattr(runner, "study_file", lambda paper, size, study: file)
    monkeypatch.setattr(runner, "current_commit", lambda: FIRST)
    request = Request(paper, "small", tmp_path / "work", workers=1)
    with pytest.raises(OutputError, match="found no finished run of tiny"):
        collect_paper(request)
    design, folder = load_study(file), request.work / "one"
    for run in design.runs[:3]:
        wfl.simulate(run.scenario, folder / "runs" / run.id, pictures=False)
    (folder / "runs" / design.runs[3].id).mkdir()
    ids = {run.id for run in design.runs[:3]}
    assert finished_runs(folder) == begun_runs(folder) == ids

    tables = collect_paper(request)
    table = tables.study("one")
    assert [run.run for run in table.runs] == [run.id for run in design.runs[:3]]
    assert {run.provenance.commit for run in table.runs} == {""}  # nobody noted it
    assert {run.provenance.version for run in table.runs} == {wfl.__version__}
    assert {(row.point["training.epochs"], row.seeds) for row in table.curves} == {("1", 2), ("2", 1)}
    assert {row.metric for row in table.curves} == {"test_accuracy", "test_loss", "train_loss"}
    assert tables.about["runs"] == {"one": 4}
    shown = table.finished_points(design.seeds)
    assert [point["training.epochs"] for point in shown.points()] == ["1"]
    assert {row.point["training.epochs"] for row in shown.curves} == {"1"}
    assert collect(study, design, folder).stored == 3
