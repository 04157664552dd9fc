"""Two rounds of every study of every paper, small size: it runs, and tables, verdicts and pictures come out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from publications.catalogue import PAPERS
from publications.markers import fill
from publications.page import claim_rows, write_page
from publications.results import read_results
from publications.runner import Request, collect_paper, load_designs, run_paper

OVERRIDES = ("base.rounds=2", "seeds=1")

pytestmark = pytest.mark.slow


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
    for figure in paper.figures:
        assert (folder / f"{figure.name}.png").stat().st_size > 5_000
    page = Path(__file__).resolve().parents[2] / "docs" / "papers" / f"{name}.md"
    text = fill(page.read_text(encoding="utf-8"), tmp_path, paper)
    assert "{{" not in text
    # Only a further table may be missing: with one seed there are no intervals.
    assert text.count("Not run yet") <= len(paper.tables)


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.parametrize("size", ["small", "full"])
def test_every_point_of_every_study_is_a_scenario(name: str, size: str) -> None:
    designs = load_designs(PAPERS[name], "small" if size == "small" else "full")
    assert designs
    assert all(len(design.seeds) >= 5 for design in designs.values())
