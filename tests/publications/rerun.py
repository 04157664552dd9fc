"""A paper of one small study, its runs as if stored elsewhere, and what they give when they are made again."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from publications.paper import Paper
from publications.provenance import Provenance
from publications.stored import Stored, stored_runs
from publications.studies import PaperStudy
from publications.tables import RunRow, StudyTable, Tables
from tests.publications.example import ABOUT
from wirelessfl.cli import main
from wirelessfl.processor import processor_name

KEY = "training.epochs"
STUDY = f"base: quickstart\nset: {{rounds: 2, clients.count: 5}}\ngrid: {{{KEY}: [1, 2]}}\nseeds: 2\n"
PAPER = Paper("tiny", "Tiny", "Nobody", (PaperStudy("one", "One"),), ())
ABROAD = {"processor": "Z80"}


def command(*words: str) -> int:
    """The exit code of ``wirelessfl papers check``."""
    with pytest.raises(SystemExit) as caught:
        main.main(["papers", "check", *words])
    code = caught.value.code
    assert isinstance(code, int)
    return code


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


def disturbed_as(
    monkeypatch: pytest.MonkeyPatch,
    now: dict[str, float],
    by: dict[str, float],
    times: dict[str, float],
) -> list[float | None]:
    """Runs made again have these numbers, those that are disturbed others.

    Args:
        monkeypatch: Of pytest.
        now: The numbers undisturbed.
        by: What is added to some when disturbed.
        times: By how much others grow when disturbed.

    Returns:
        The rates with which runs are made, None for the run's own; it fills as they are.
    """
    rates: list[float | None] = []
    added = {name: value + by.get(name, 0.0) for name, value in now.items()}
    disturbed = {name: value * (1 + times.get(name, 0.0)) for name, value in added.items()}

    def again(one: Stored, folder: Path, **changes: float) -> dict[str, float]:
        rates.append(changes.get("training__optimizer__lr"))
        return now if rates[-1] is None else disturbed

    monkeypatch.setattr(Stored, "made_again", again)
    return rates
