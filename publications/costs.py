"""What runs and tuning trials cost, and under which commits they were computed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from publications.paper import Paper
from publications.provenance import Provenance
from publications.results import Results, read_tables, size_folder
from publications.studies import Size
from publications.sweeps import SWEEPS
from publications.tables import Tables
from publications.texts import duration
from publications.tuning import Sweep, Trial
from publications.tuning_runs import read_trials


def cost_rows(paper: Paper, results: Results, root: Path) -> Iterator[dict[str, str]]:
    """What took how long on what, a row for each study and each sweep of each size."""
    for size in results:
        tables = _all_runs(paper, size, root)
        for name, planned in tables.about["runs"].items():
            yield {"size": size, "study": name, **_study_cost(tables, [name], planned)}
        for sweep, trials in size_trials(paper, size, root):
            told = _cost([one.provenance for one in trials], len(trials), sweep.runs)
            yield {"size": size, "study": f"tuning-{sweep.name}", **told}


def total_cost(paper: Paper, tables: Tables, root: Path) -> dict[str, str]:
    """What a whole size took, its tuning in a column of its own; commits are those of both."""
    runs, trials = _origins(paper, tables, root)
    stored = _all_runs(paper, tables.about["size"], root)
    told = _study_cost(stored, list(stored.studies), sum(tables.about["runs"].values()))
    return {**told, COMMITS: commits_text([*runs, *trials]), "tuning": _tuning_cost(trials)}


def _tuning_cost(trials: Sequence[Provenance]) -> str:
    if not trials:
        return "–"
    times = _times(trials)
    took = duration(math.fsum(times)) if times else "not recorded"
    return f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}, {took}"


def _all_runs(paper: Paper, size: Size, root: Path) -> Tables:
    """All runs of a size that are stored, those of points of which a seed is missing with them."""
    return read_tables(paper, size_folder(root, paper, size), unfinished=True)


def left_to_run(tables: Tables) -> str:
    """The studies of which runs are missing, with their number."""
    missing = {
        name: planned - (tables.studies[name].stored if name in tables.studies else 0)
        for name, planned in tables.about["runs"].items()
    }
    return ", ".join(f"{name} ({count})" for name, count in missing.items() if count > 0) or "–"


def no_cost(paper: Paper, size: Size) -> dict[str, str]:
    """The row of a size of which nothing has run."""
    names = ", ".join(study.name for study in paper.studies_in(size))
    nothing = dict.fromkeys(("all", "on", COMMITS, "tuning"), "–")
    return {"runs": "none", "a run, median": "not run", **nothing, "not run": names}


def size_trials(paper: Paper, size: Size, root: Path) -> Iterator[tuple[Sweep, list[Trial]]]:
    """The sweeps of a size that have run, with their trials."""
    for sweep in SWEEPS.get(paper.name, ()):
        if sweep.size == size and (trials := read_trials(size_folder(root, paper, size), sweep)):
            yield sweep, trials


COMMITS = "commits"
"""Heading of the column that names what was computed outside any commit."""
_MEANT = {
    "with later changes": "files that numbers follow from had changed since the commit that is stored (`+`)",
    "begun at another": "one commit computed the first rounds, another the last (`a to b`)",
    "not noted": "runs that were made before commits were stored",
}
"""In what runs are not those of one noted commit, and what that means."""


def commits_text(origins: Sequence[Provenance]) -> str:
    """How many runs were not computed by the source of one noted commit; ``all noted`` where all were.

    A run counts once: one that two commits share is with later changes if there were any at either.
    """
    changed = sum("+" in one.commit for one in origins)
    shared = sum(" to " in one.commit and "+" not in one.commit for one in origins)
    unknown = sum(not one.commit for one in origins)
    counts = dict(zip(_MEANT, (changed, shared, unknown), strict=True))
    return ", ".join(f"{count} {words}" for words, count in counts.items() if count) or "all noted"


def uncommitted_text(paper: Paper, tables: Tables, root: Path) -> str:
    """A sentence on the runs and trials of a size that no commit gives again as it is; empty where there are none."""
    parts = []
    for origins, words in zip(_origins(paper, tables, root), ("runs", "tuning trials"), strict=True):
        if (told := commits_text(origins)) != "all noted":
            parts.append(f"of {len(origins)} {words} {told}")
    if not parts:
        return ""
    told = "; ".join(parts)
    meant = " ".join(f"*{words.capitalize()}*: {text}." for words, text in _MEANT.items() if words in told)
    return f"Commits: {told}. {meant} The table of costs says which studies these are of."


def _origins(paper: Paper, tables: Tables, root: Path) -> tuple[list[Provenance], list[Provenance]]:
    """Where all stored runs of a size come from, and where its trials do."""
    size: Size = tables.about["size"]
    runs = [run.provenance for table in _all_runs(paper, size, root).studies.values() for run in table.runs]
    trials = [one.provenance for _, found in size_trials(paper, size, root) for one in found]
    return runs, trials


def _study_cost(tables: Tables, names: Sequence[str], planned: int) -> dict[str, str]:
    studies = [tables.studies[name] for name in names if name in tables.studies]
    origins = [run.provenance for table in studies for run in table.runs]
    return _cost(origins, len(origins), planned)


def _cost(origins: Sequence[Provenance], stored: int, planned: int) -> dict[str, str]:
    times = _times(origins)
    timed = [one for one in origins if not math.isnan(one.seconds)]
    devices = "; ".join(device for device, _ in Counter(one.where for one in timed).most_common())
    return {
        "runs": f"{stored} of {planned}" if stored < planned else str(stored),
        "a run, median": duration(float(np.median(times))) if times else ("not run" if not stored else "not recorded"),
        "all": duration(math.fsum(times)) if times else "–",
        "on": devices or "–",
        COMMITS: commits_text(origins) if origins else "–",
    }


def _times(origins: Sequence[Provenance]) -> list[float]:
    return [one.seconds for one in origins if not math.isnan(one.seconds)]
