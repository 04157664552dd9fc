"""`about.json` of each size tells the seeds and numbers of runs of what is stored beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from publications.files import read_rows

PLACES = sorted((Path(__file__).resolve().parents[2] / "results" / "papers").rglob("about.json"))


@pytest.mark.parametrize("place", PLACES, ids=lambda one: "-".join(one.parts[-3:-1]))
def test_no_more_has_run_than_was_planned(place: Path) -> None:
    about = json.loads(place.read_text(encoding="utf-8"))
    assert about["seeds"].keys() == about["runs"].keys()
    for study, seeds in about["seeds"].items():
        file = place.parent / f"{study}.runs.csv"
        rows = read_rows(file) if file.exists() else []
        assert {int(row["seed"]) for row in rows} <= set(seeds), study
        assert len(rows) <= about["runs"][study], study
