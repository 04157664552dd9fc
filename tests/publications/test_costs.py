"""What runs and trials cost, and which of them no commit gives again."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from publications.costs import commits_text, cost_rows, total_cost, uncommitted_text
from publications.markers import fill
from publications.page import write_page
from publications.results import read_results
from publications.sweeps import SWEEPS
from publications.tables import Tables
from publications.texts import duration
from publications.tuning import Sweep, Trial, TunedMethod
from publications.tuning_runs import write_trials
from tests.publications.example import ABOUT, EXAMPLE, ORIGIN, TABLES


def test_costs_follow_from_recorded_times(both: Path) -> None:
    rows = list(cost_rows(EXAMPLE, read_results(EXAMPLE, both), both))
    assert rows[-1] == {
        "size": "full",
        "study": "first",
        "runs": "8 of 9",
        "a run, median": "2.5 s",
        "all": "20 s",
        "on": "cpu, 1 thread",
        "commits": "all noted",
    }
    assert [duration(one) for one in (1.234, 45.0, 300.0, 9000.0, math.nan)] == ["1.2 s", "45 s", "5 min", "2.5 h", "–"]


def test_what_no_commit_gives_again_is_told(both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and trials computed from files with later changes, or under a commit that nobody noted."""
    monkeypatch.setattr("publications.markers.PAPERS", {EXAMPLE.name: EXAMPLE})
    folder = Path(shutil.copytree(both, tmp_path / "both"))
    assert "Commits" not in fill("{{ about }}", folder, EXAMPLE)

    first = TABLES.study("first")
    origins = [replace(ORIGIN, commit=f"{ORIGIN.commit}+"), replace(ORIGIN, commit="")]
    runs = [replace(run, provenance=one) for run, one in zip(first.runs, origins, strict=False)]
    write_page(EXAMPLE, replace(TABLES, studies={"first": replace(first, runs=(*runs, *first.runs[2:]))}), folder)
    method = TunedMethod("m", {}, {"a": (1, 2)}, {"a": 1})
    sweep = Sweep("s", "", "small", "first", 2, (method,), {}, {}, seeds=(8,))
    monkeypatch.setitem(SWEEPS, EXAMPLE.name, (sweep,))
    trials = [Trial("m", at, 8, 0.5, 1.0, 1.0, "", replace(origins[0], seconds=60.0)) for at in (0, 1)]
    write_trials(folder / "papers" / EXAMPLE.name, sweep, trials)

    results = read_results(EXAMPLE, folder)
    text = uncommitted_text(EXAMPLE, results["small"], folder)
    assert text.startswith(
        "Commits: of 9 runs 1 with later changes, 1 not noted; of 2 tuning trials 2 with later chang"
    )
    assert text in fill("{{ about }}", folder, EXAMPLE) and uncommitted_text(EXAMPLE, results["full"], folder) == ""
    rows = {(row["size"], row["study"]): row for row in cost_rows(EXAMPLE, results, folder)}
    assert rows["small", "first"]["commits"] == "1 with later changes, 1 not noted"
    assert [rows["small", "tuning-s"][key] for key in ("runs", "all", "commits")] == [
        "2",
        "2 min",
        "2 with later changes",
    ]
    (small, full) = fill("{{ cost }}", folder, None).splitlines()[2:]
    assert "| 3 with later changes, 1 not noted | 2 trials, 2\N{NO-BREAK SPACE}min |" in small
    assert "| all noted | – |" in full


def test_a_run_that_two_commits_share_is_one_that_no_commit_gives_again(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among all runs that are stored, those of points of which a seed is missing too."""
    folder = Path(shutil.copytree(both, tmp_path / "both"))
    first = TABLES.study("first")
    shared = replace(ORIGIN, commit="0123456789ab to ba9876543210")
    changed = replace(ORIGIN, commit="0123456789ab+ to ba9876543210")
    runs = [*first.runs[:7], replace(first.runs[7], provenance=shared)]
    write_page(
        EXAMPLE,
        Tables({**ABOUT, "size": "full", "runs": {"first": 9}}, {"first": replace(first, runs=tuple(runs), stored=8)}),
        folder,
    )
    results = read_results(EXAMPLE, folder)
    assert len(results["full"].study("first").runs) == 6
    *_, row = cost_rows(EXAMPLE, results, folder)
    assert (row["runs"], row["commits"], row["all"]) == ("8 of 9", "1 begun at another", "20 s")
    assert total_cost(EXAMPLE, results["full"], folder)["commits"] == "1 begun at another"
    text = uncommitted_text(EXAMPLE, results["full"], folder)
    assert text.startswith("Commits: of 8 runs 1 begun at another. ") and "(`a to b`)" in text
    both_told = "1 with later changes, 2 begun at another, 1 not noted"
    assert commits_text([shared, ORIGIN, shared, changed, replace(ORIGIN, commit="")]) == both_told


def test_trials_without_a_time_and_more_than_planned(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(both, tmp_path / "both"))
    method = TunedMethod("m", {}, {"a": (1, 2, 3)}, {"a": 1})
    sweep = Sweep("s", "", "small", "first", 3, (method,), {}, {}, seeds=(8,))
    monkeypatch.setitem(SWEEPS, EXAMPLE.name, (replace(sweep, budget=1),))
    results = read_results(EXAMPLE, folder)
    for count, told in ((1, "1 trial, not recorded"), (3, "3 trials, not recorded")):
        trials = [Trial("m", at, 8, 0.5, 1.0, 1.0, "", replace(ORIGIN, seconds=math.nan)) for at in range(count)]
        write_trials(folder / "papers" / EXAMPLE.name, sweep, trials)
        assert total_cost(EXAMPLE, results["small"], folder)["tuning"] == told
        rows = {row["study"]: row for row in cost_rows(EXAMPLE, results, folder) if row["size"] == "small"}
        assert rows["tuning-s"]["runs"] == str(count)  # one is planned
