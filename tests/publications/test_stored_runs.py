"""Stored runs are those of the studies as they stand: a key that changes the identity of a run makes them others."""

from __future__ import annotations

from pathlib import Path

import pytest

from publications.catalogue import PAPERS
from publications.files import read_rows
from publications.results import size_folder
from publications.runner import load_designs
from publications.studies import SIZES, Size

RESULTS = Path(__file__).resolve().parents[2] / "results"
SIZED = [(name, size) for name, paper in PAPERS.items() for size in SIZES if paper.studies_in(size)]


@pytest.mark.parametrize(("name", "size"), SIZED)
def test_stored_runs_are_known_to_their_studies(name: str, size: Size, request: pytest.FixtureRequest) -> None:
    """By the digits for the scenario; those for sources from outside change with every line of them."""
    if name == "zcdp-secure-aggregation":  # the id of a run covers the file of its table
        data, patch = request.getfixturevalue("shared_data"), request.getfixturevalue("monkeypatch")
        patch.setenv("WIRELESSFL_DATA", str(data))
    folder = size_folder(RESULTS, PAPERS[name], size)
    known = 0
    for study, design in load_designs(PAPERS[name], size).items():
        if (stored := folder / f"{study}.runs.csv").is_file():
            found = {row["run"].partition("-")[0] for row in read_rows(stored)}
            assert found <= {run.id.partition("-")[0] for run in design.runs}, study
            known += len(found)
    assert known or (name, size) == ("wavelet-dp-fl", "full")
