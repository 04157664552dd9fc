"""Checks of a paper's results: that the page follows from the runs, and that the runs come out the same again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import stdev

import torch

import wirelessfl as wfl
from publications.collect import point_at, run_row
from publications.files import cell, number_cell, read_rows
from publications.long_table import long_table
from publications.page import claim_rows
from publications.paper import Paper
from publications.provenance import Provenance
from publications.results import Results
from publications.runner import load_designs
from publications.tables import LEARNT, METRICS, RunRow, StudyTable, Tables
from wirelessfl.processor import processor_name
from wirelessfl.study import Run, StudyDesign

TOLERANCE = 0.01
"""Relative difference let pass where a run was recorded with another torch or processor: training of other bits
drifts."""

SPREAD = 0.25
"""The same in standard deviations over the seeds of a point, where that is more. Of six runs of 25 rounds without
privacy on two processors one ended 1.2 % apart in test loss and 4 % in training loss: about a tenth of it."""


def check_page(paper: Paper, tables: Tables, folder: Path) -> list[str]:
    """Differences between the tables of a size on disk and those that follow from the runs on disk."""
    wanted = {
        f"{name}.csv": [
            {key: cell(value) for key, value in row.items()} for row in long_table(tables, paper.study(name))
        ]
        for name, table in tables.studies.items()
        if table.runs
    }
    return [_stale(paper, name) for name, rows in wanted.items() if read_rows(folder / name) != rows]


def check_claims(paper: Paper, results: Results, folder: Path) -> list[str]:
    """Whether the verdicts on disk are those that follow from the runs on disk."""
    same = read_rows(folder / "claims.csv") == claim_rows(paper, results)
    return [] if same else [_stale(paper, "claims.csv")]


def _stale(paper: Paper, name: str) -> str:
    return f"{name}: does not follow from the runs; `wirelessfl papers table {paper.name}` writes it anew"


def check_runs(
    paper: Paper, tables: Tables, sample: int, work: Path, tell: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Differences between runs on disk and the same runs made again.

    Args:
        paper: The paper.
        tables: Its results in one size.
        sample: How many runs, spread evenly over all that are there.
        work: Folder for their traces.
        tell: Called with a line for each run.
    """
    runs = list(recorded_runs(paper, tables))
    chosen = runs if sample >= len(runs) else [runs[at * len(runs) // sample] for at in range(sample)]
    found = []
    for name, design, run, before in chosen:
        differing = compare_run(design, run, before, work, spreads(tables.studies[name], before))
        what = f"{name}, {design.describe(run)}"
        tell(f"{what}: {'differs' if differing else 'the same'}{_how(before)}")
        found += [f"{what}{_how(before)}: {', '.join(differing)}"] if differing else []
    return found


def spreads(table: StudyTable, run: RunRow) -> dict[str, float]:
    """Standard deviation of what is learnt over the seeds of a run's point, by metric; 0 for any other number.

    What else is in `METRICS` follows from no rounding of the training. It is 0 too where there is one seed, or where a
    number is not finite for all of them.
    """
    found = dict.fromkeys(METRICS, 0.0)
    for metric in LEARNT:
        values = [one.numbers[metric] for one in table.runs if one.point == run.point]
        if len(values) > 1 and all(map(math.isfinite, values)):
            found[metric] = stdev(values)
    return found


def compare_run(design: StudyDesign, run: Run, before: RunRow, work: Path, spread: Mapping[str, float]) -> list[str]:
    """What differs between a stored run and the same run made again, number by number.

    To the last digit under the torch and on the kind of processor with which it was recorded; within `TOLERANCE`, or
    `SPREAD` of ``spread``, under others, and on a CPU where torch does not see the GPU that it was recorded on; to the
    six digits that were stored where nothing was kept of its origin.
    """
    plan = before.provenance.plan
    if plan:
        plan["device"] = _device(before.provenance)
    result = wfl.simulate(run.scenario, work / run.id, pictures=False, **plan)
    point = point_at(design, run.levels)
    again = run_row(point, before.seed, run.id, result.to_dataframe(), result.summary, before.provenance)
    compared = METRICS if before.provenance.kept else [one for one in METRICS if not math.isnan(before.numbers[one])]
    return [
        f"{metric} is {number_cell(again, metric)}, recorded is {number_cell(before, metric)}"
        for metric in compared
        if not _agree(again, before, metric, spread[metric])
    ]


def _agree(again: RunRow, before: RunRow, metric: str, spread: float) -> bool:
    if number_cell(again, metric) == number_cell(before, metric):
        return True
    if _elsewhere(before.provenance) is None:
        return False
    now, then = again.numbers[metric], before.numbers[metric]
    alike = math.isclose(now, then, rel_tol=TOLERANCE, abs_tol=SPREAD * spread)
    return alike or (math.isnan(now) and math.isnan(then))


def _torch() -> str:
    return version("torch").partition("+")[0]


def _device(recorded: Provenance) -> str:
    return recorded.trained_on if torch.cuda.is_available() else "cpu"


def _elsewhere(recorded: Provenance) -> str | None:
    # What rounds differently here than where a run was recorded, in words
    if not recorded.kept:
        return None
    if recorded.torch != _torch():
        return f"now {_torch()}"
    if recorded.processor != processor_name(_device(recorded)):
        return f"on {recorded.processor or 'a processor that was not kept'}"
    return None


def _how(before: RunRow) -> str:
    recorded = before.provenance
    if not recorded.kept:
        return " (recorded before versions were kept, to six digits)"
    commit = recorded.commit or "an unknown commit"
    told = f"recorded at {commit}, wirelessfl {recorded.version}, torch {recorded.torch}"
    other = _elsewhere(recorded)
    return (
        f" ({told})"
        if other is None
        else f" ({told}, {other}: compared within {TOLERANCE:.0%} or {SPREAD:g} of the deviation over seeds)"
    )


def recorded_runs(paper: Paper, tables: Tables) -> Iterator[tuple[str, StudyDesign, Run, RunRow]]:
    """Every stored run: the name of its study, its design, the run, and its numbers."""
    designs = load_designs(paper, tables.about["size"], tables.about["overrides"])
    for name, table in tables.studies.items():
        stored = {(tuple(row.point.items()), row.seed): row for row in table.runs}
        for run in designs[name].runs:
            row = stored.get((tuple(point_at(designs[name], run.levels).items()), run.scenario.seed))
            if row is not None:
                yield name, designs[name], run, row
