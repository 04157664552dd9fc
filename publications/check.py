"""Checks of a paper's results: that the page follows from the runs, and that the runs come out the same again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import wirelessfl as wfl
from publications.collect import point_at, run_row
from publications.files import cell, read_rows
from publications.page import claim_rows
from publications.paper import Paper
from publications.runner import load_designs
from publications.tables import METRICS, Tables, long_table
from wirelessfl.study import Run, StudyDesign


def check_page(paper: Paper, tables: Tables, folder: Path) -> list[str]:
    """Differences between the tables and verdicts on disk and those that follow from the runs on disk."""
    wanted = {
        f"{name}.csv": [
            {key: cell(value) for key, value in row.items()} for row in long_table(tables, paper.study(name))
        ]
        for name in tables.studies
    }
    wanted["claims.csv"] = claim_rows(paper, tables)
    return [
        f"{name}: does not follow from the runs; `wirelessfl papers table {paper.name}` writes it anew"
        for name, rows in wanted.items()
        if read_rows(folder / name) != rows
    ]


def check_runs(
    paper: Paper, tables: Tables, sample: int, work: Path, tell: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Differences between runs on disk and the same runs made again.

    Args:
        paper: The paper.
        tables: Its results.
        sample: How many runs, spread evenly over all that are there.
        work: Folder for their traces.
        tell: Called with a line for each run.
    """
    runs = list(_recorded(paper, tables))
    chosen = runs if sample >= len(runs) else [runs[at * len(runs) // sample] for at in range(sample)]
    found = []
    for name, design, run in chosen:
        point, seed = point_at(design, run.levels), run.scenario.seed
        result = wfl.simulate(run.scenario, work / run.id, pictures=False)
        again = run_row(point, seed, run.id, result.to_dataframe(), result.summary).numbers
        (before,) = (row.numbers for row in tables.studies[name].runs if row.point == point and row.seed == seed)
        differing = [
            f"{metric} is {cell(again[metric])}, recorded is {cell(before[metric])}"
            for metric in METRICS
            if cell(again[metric]) != cell(before[metric])
        ]
        what = f"{name}, {design.describe(run)}"
        tell(f"{what}: {'differs' if differing else 'the same'}")
        found += [f"{what}: {', '.join(differing)}"] if differing else []
    return found


def _recorded(paper: Paper, tables: Tables) -> Iterator[tuple[str, StudyDesign, Run]]:
    """Every run that has results: the name of its study, its design, and the run."""
    designs = load_designs(paper, tables.about["size"], tables.about["overrides"])
    for name, table in tables.studies.items():
        known = {(tuple(row.point.items()), row.seed) for row in table.runs}
        for run in designs[name].runs:
            if (tuple(point_at(designs[name], run.levels).items()), run.scenario.seed) in known:
                yield name, designs[name], run
