"""Two rounds of every study of every paper, small size: it runs, and tables, verdicts and pictures come out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from publications.catalogue import PAPERS
from publications.effects import MissingRuns
from publications.markers import fill
from publications.moo_rates import RATES
from publications.page import claim_rows, write_page
from publications.paper import PaperFigure
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


def text_of_absent(page: str, elsewhere: set[str]) -> int:
    """How many markers of a page show studies of other sizes."""
    return sum(page.count(f"{word} {name} ") for name in elsewhere for word in ("{{ table", "{{ figure"))


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
    page = Path(__file__).resolve().parents[2] / "docs" / "papers" / f"{name}.md"
    text = fill(page.read_text(encoding="utf-8"), tmp_path, paper)
    assert "{{" not in text
    # Further tables may be missing, and what is of studies that this size does not have.
    assert text.count("Not run yet") <= len(paper.tables) + text_of_absent(page.read_text(encoding="utf-8"), elsewhere)


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
