"""Two rounds of every study of every paper, small size: it runs, and tables, verdicts and pictures come out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from publications.catalogue import PAPERS
from publications.effects import MissingRuns
from publications.markers import NOT_RUN, fill
from publications.moo_rates import RATES
from publications.page import claim_rows, write_page
from publications.paper import Paper, PaperFigure
from publications.results import read_results, read_tables
from publications.runner import Request, collect_paper, load_designs, run_paper
from publications.tables import Tables

OVERRIDES = ("base.rounds=2", "seeds=1")

pytestmark = pytest.mark.slow


def study_lacking(figure: PaperFigure, tables: Tables) -> str:
    """Name of the study that a figure has nothing of, empty if it can be drawn."""
    try:
        figure.draw(tables)
    except MissingRuns as missing:
        return str(missing).removeprefix("the study ").removesuffix(" has not run")
    return ""


def may_be_absent(marker: str, paper: Paper) -> bool:
    """Whether a marker shows another size than the small one, a study of one, or a further table that may need one."""
    _, name, *size = marker.strip("{ }").split()
    elsewhere = {study.name for study in paper.studies} - {study.name for study in paper.studies_in("small")}
    return size not in ([], ["small"]) or name in elsewhere | {table.name for table in paper.tables}


@pytest.mark.parametrize("name", PAPERS)
def test_two_rounds_of_everything(
    name: str, tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    paper = PAPERS[name]
    request = Request(paper, "small", tmp_path / "work", OVERRIDES, workers=1, audits=False, command="smoke")
    run_paper(request)
    folder = write_page(paper, collect_paper(request), tmp_path)
    for study in paper.studies_in("small"):
        assert (folder / f"{study.name}.csv").read_text(encoding="utf-8").count("\n") >= 2
    assert json.loads((folder / "about.json").read_text(encoding="utf-8"))["size"] == "small"
    assert len(claim_rows(paper, read_results(paper, tmp_path))) == len(paper.claims)
    elsewhere = {study.name for study in paper.studies} - {study.name for study in paper.studies_in("small")}
    tables = read_tables(paper, folder)
    for figure in paper.figures:
        picture = folder / f"{figure.name}.png"
        if lacking := study_lacking(figure, tables):
            assert lacking in elsewhere and not picture.exists(), figure.name
        else:
            assert picture.stat().st_size > 5_000
    page = (Path(__file__).resolve().parents[2] / "docs" / "papers" / f"{name}.md").read_text(encoding="utf-8")
    assert "{{" not in fill(page, tmp_path, paper)
    markers = re.findall(r"^\{\{ .* \}\}$", page, re.MULTILINE)
    absent = [marker for marker in markers if NOT_RUN[0] in fill(marker, tmp_path, paper)]
    assert len(markers) > 20 and [marker for marker in absent if not may_be_absent(marker, paper)] == []


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("size", ["small", "full"])
def test_every_point_of_every_study_is_a_scenario(name: str, size: str) -> None:
    designs = load_designs(PAPERS[name], "small" if size == "small" else "full")
    assert designs
    once = {study for study in designs if study.endswith("-once")}  # one seed at the paper's size, as its page says
    assert all(len(designs[study].seeds) == 1 for study in once)
    # Studies that only choose a setting on validation samples are not judged.
    judged = [design for study, design in designs.items() if study not in RATES and study not in once]
    assert all(len(design.seeds) >= 5 for design in judged)
