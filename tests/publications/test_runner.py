"""A paper is run: its numbers are those of the traces, and nothing finished is computed twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from publications import runner
from publications.paper import Paper
from publications.runner import Request, collect_paper, run_paper
from publications.studies import AuditOf, PaperStudy
from tests.publications.example import TABLES
from wirelessfl.errors import InfeasibleError, InputError, OutputError
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import open_trace

KEY = "uplink.jammer.epsilon"
STUDY = f"""
base: quickstart
set: {{rounds: 5, clients.count: 5}}
zip: {{{KEY}: [1, 0.5], privacy.delta: [1.0e-5, 1.0e-5]}}
seeds: 2
"""
PAPER = Paper(
    "tiny", "Tiny", "Nobody", (PaperStudy("one", "One", audits=(AuditOf({KEY: 0.5}, 10, {"rounds": 2}),)),), ()
)


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    file = tmp_path / "one.yaml"
    file.write_text(STUDY, encoding="utf-8")
    monkeypatch.setattr(runner, "study_file", lambda paper, size, study: file)
    return Request(PAPER, "small", tmp_path / "work", workers=1, command="tiny")


@pytest.mark.slow
def test_the_numbers_are_those_of_the_traces(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "current_commit", lambda: "0123456789ab")
    run_paper(request_)
    tables = collect_paper(request_)
    table = tables.study("one")
    assert [(run.point[KEY], run.seed) for run in table.runs] == [("1", 7), ("1", 8), ("0.5", 7), ("0.5", 8)]
    (curve,) = [row for row in table.curve({KEY: 1}) if row.round == 5]
    finals = []
    for run in table.runs:
        with open_trace(request_.work / "one" / "runs" / run.run / "trace.h5") as trace:
            accuracy = trace["test_accuracy"].values
            assert run.numbers["test_accuracy"] == accuracy[-1]
            assert run.numbers["late_accuracy"] == pytest.approx(accuracy[-1:].mean())
            assert run.numbers["first_accuracy"] == accuracy[0]
            assert run.numbers["jammer_energy"] == pytest.approx(trace["jammer_energy"].values.sum())
            assert run.numbers["effective_noise_std"] == pytest.approx(trace["effective_noise_std"].values.mean())
            finals.append(accuracy[-1])
    assert curve.mean == pytest.approx(np.mean(finals[:2]))
    assert tables.about["seeds"] == {"one": [7, 8]}
    audit = table.audit({KEY: 0.5})
    assert audit is not None and (audit.trials, audit.unit) == (10, "sample")
    assert 0 < audit.epsilon_empirical <= audit.epsilon_accounted

    traces = {path: path.stat().st_mtime_ns for path in request_.work.rglob("trace.h5")}
    audits = {path: path.stat().st_mtime_ns for path in request_.work.rglob("audits/*.json")}
    monkeypatch.setattr(runner, "current_commit", lambda: "ba9876543210")
    run_paper(replace(request_, resume=True))
    assert repr(collect_paper(request_).studies) == repr(tables.studies)  # runs that were there keep their commit
    assert {run.provenance.commit for run in table.runs} == {"0123456789ab"}
    assert all(run.provenance.seconds > 0 for run in table.runs)
    assert {run.provenance.streams for run in table.runs} == {str(STREAM_VERSION)}
    for path, time in {**traces, **audits}.items():
        assert path.stat().st_mtime_ns == time


@pytest.mark.slow
def test_runs_that_fail_are_said(request_: Request) -> None:
    impossible = ("base.uplink.jammer.power_db=-200",)
    with pytest.raises(InfeasibleError, match=r"one: 4 of 4 runs failed; resume=True tries them again\. The first: "):
        run_paper(replace(request_, overrides=impossible))


def test_a_size_that_a_paper_does_not_have_is_refused(request_: Request) -> None:
    for work in (run_paper, collect_paper):
        with pytest.raises(InputError, match="found size medium; allowed: small"):
            work(replace(request_, size="medium"))


def test_stored_studies_are_not_lost_with_the_runs_of_another(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids follow from settings and data: a study that has changed, or lacks its data here, has none of those stored."""
    both = replace(PAPER, studies=(PaperStudy("one", "One"), PaperStudy("other", "Other")))
    stored = {"one": TABLES.study("first")}
    request = replace(request_, paper=both, stored=stored)
    lost = r"tiny, small: none of the 9 stored runs of one belongs .* all would be lost: the study has changed; run it"
    with pytest.raises(OutputError, match=lost):
        run_paper(replace(request, only=("other",)))
    with pytest.raises(OutputError, match=lost):
        collect_paper(request)
    own = replace(stored["one"].runs[0], run=runner.load_designs(both, "small")["one"].runs[0].id)
    kept = replace(request, stored={"one": replace(stored["one"], runs=(own, *stored["one"].runs))})
    assert [run.run for run in collect_paper(kept).study("one").runs] == [own.run]

    monkeypatch.setattr(runner, "made_up", lambda design: True)
    for work in (run_paper, collect_paper):
        with pytest.raises(OutputError, match=r"would be lost: the files of adult are not here.*WIRELESSFL_DATA"):
            work(request)
    assert collect_paper(kept).study("one").stored == 1  # stored with rows that were made up


def test_an_audit_needs_its_point(request_: Request) -> None:
    study = PaperStudy("one", "One", audits=(AuditOf({KEY: 3}, 10),))
    design = runner.load_designs(PAPER, "small")["one"]
    with pytest.raises(ValueError, match="one has no point"):
        runner._run_at(study, design, study.audits[0])
