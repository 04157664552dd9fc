"""The example in two sizes, and a run as it is recorded here, for what compares it with the same run made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import wirelessfl as wfl
from publications import stored
from publications.collect import run_row
from publications.page import write_page
from publications.tables import RunRow, Tables
from tests.publications.example import ABOUT, EXAMPLE, RULE, TABLES
from tests.publications.rerun import KEY, STUDY, origin_here
from wirelessfl.study import StudyDesign, load_study


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small with everything, full with one point of which a seed is missing and one that is complete; read only."""
    folder = tmp_path_factory.mktemp("both")
    write_page(EXAMPLE, TABLES, folder)
    first = TABLES.study("first")
    runs = tuple(run for run in first.runs if run.point[RULE] != "same" or run.seed < 3)
    table = replace(first, runs=runs, stored=len(runs))
    write_page(EXAMPLE, Tables({**ABOUT, "size": "full", "runs": {"first": 9}}, {"first": table}), folder)
    return folder


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
