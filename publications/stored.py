"""Stored runs of studies and trials of sweeps, as what can be made again, and which of them are drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import stdev
from typing import Any

import torch

import wirelessfl as wfl
from publications.collect import point_at, run_row
from publications.files import cell, exact
from publications.joint_curves import key_of
from publications.paper import Paper
from publications.provenance import Provenance
from publications.runner import load_designs, made_up
from publications.studies import Size
from publications.sweeps import SWEEPS
from publications.tables import LEARNT, METRICS, RunRow, StudyTable, Tables
from publications.tuning import Sweep
from publications.tuning_runs import TOLD, read_trials, results_file, trial_numbers, tuning_design
from wirelessfl.errors import MissingDataError
from wirelessfl.study import Run, StudyDesign

MOST_SECONDS = 120.0
"""Wall time of the runs, in seconds, that are drawn where no size is named: so that three take a few minutes."""
USUAL = 10_000
"""Samples of a test set whose size is not known: those of MNIST."""


@dataclass(frozen=True)
class Stored:
    """A run of a study or a trial of a sweep: what is stored of it, and how it is made again.

    Attributes:
        size: Of its study or sweep.
        name: Of the study, or ``tuning-SWEEP``.
        design: To which it belongs.
        run: Its scenario.
        numbers: What is stored, by metric.
        provenance: Where that comes from.
        told: From what a run gives to the same numbers.
        digits: Whether numbers are stored with all their digits; else with six.
        spread: Standard deviations over the seeds of its point, by metric.
    """

    size: Size
    name: str
    design: StudyDesign
    run: Run
    numbers: Mapping[str, float]
    provenance: Provenance
    told: Callable[[wfl.Result], Mapping[str, float]]
    digits: bool = True
    spread: Mapping[str, float] = field(default_factory=dict)

    def text(self) -> str:
        """Which one it is, for people."""
        return f"{self.size}, {self.name}, {self.design.describe(self.run)}"

    def cell(self, value: float) -> str:
        """A number of it as it is stored."""
        return exact(value) if self.digits else cell(value)

    def made_again(self, folder: Path, **changes: Any) -> Mapping[str, float]:
        """The numbers of the same run on this machine, with as many threads and in the same blocks of clients.

        Args:
            folder: For its trace.
            changes: Keys of the scenario that differ, with two underscores for a dot.
        """
        plan = self.provenance.plan
        if plan:
            plan["device"] = device_here(self.provenance)
        if self.provenance.chunk and device_here(self.provenance) == self.provenance.trained_on:
            plan["compute__chunk"] = int(self.provenance.chunk)
        return self.told(wfl.simulate(self.run.scenario, folder, pictures=False, **plan, **changes))

    def tested(self, accuracy: str) -> int:
        """On how many samples an accuracy of it is measured, `USUAL` where it is on none that are known."""
        test, validation = self._tested
        return (validation if accuracy == "validation_accuracy" else test) or USUAL

    @cached_property
    def _tested(self) -> tuple[int, int]:
        data = wfl.load_population(self.run.scenario)
        return len(data.test), 0 if data.validation is None else len(data.validation)


def device_here(recorded: Provenance) -> str:
    """Where a run is made again: on a CPU where torch does not see the GPU that it was recorded on."""
    return recorded.trained_on if torch.cuda.is_available() else "cpu"


def is_short(one: Stored) -> bool:
    """Whether a run took at most `MOST_SECONDS`; what a GPU took says nothing of a CPU, and no time is none."""
    recorded = one.provenance
    return recorded.seconds <= MOST_SECONDS and device_here(recorded) == recorded.trained_on


def draw(found: Sequence[Stored], sample: int) -> list[Stored]:
    """So many of them, spread evenly, or all where there are no more: the middles of equal shares."""
    if sample >= len(found):
        return list(found)
    return [found[(2 * at + 1) * len(found) // (2 * sample)] for at in range(sample)]


def drawn_text(
    chosen: Sequence[Stored], allowed: Sequence[Stored], there: Sequence[Stored], sizes: Sequence[Size]
) -> str:
    """What is drawn from what, in words, and why the others are not."""
    kept = {id(one) for one in allowed}
    why = Counter(_why_left_out(one) for one in there if id(one) not in kept)
    left = ", ".join(f"{reason}: {count}" for reason, count in why.items())
    more = f"; {why.total()} others left out ({left})" if why else ""
    what = f"runs and tuning trials of size {', '.join(sizes)}"
    if not there:
        return f"no run is compared: found no {what}"
    if not chosen:
        return f"no run is compared, for none of the {len(there)} {what} is short{more}"
    return f"{len(chosen)} of the {len(allowed)} {what}{more}"


def _why_left_out(one: Stored) -> str:
    """Why a run is not short."""
    if device_here(one.provenance) != one.provenance.trained_on:
        return "on a GPU that is not here"
    return "without a stored time" if math.isnan(one.provenance.seconds) else f"longer than {MOST_SECONDS:g} s"


def stored_runs(paper: Paper, tables: Tables) -> Iterator[Stored]:
    """Every stored run of the studies of a size.

    Raises:
        MissingDataError: the data of the paper are not there, and synthetic ones would stand for them.
    """
    size: Size = tables.about["size"]
    designs = load_designs(paper, size, tables.about["overrides"])
    _refuse_without_data(paper, designs.values())
    for name, table in tables.studies.items():
        rows = {(key_of(row.point), row.seed): row for row in table.runs}
        for run in designs[name].runs:
            row = rows.get((key_of(point_at(designs[name], run.levels)), run.scenario.seed))
            if row is not None:
                told = partial(_run_numbers, row)
                kept = row.provenance.kept
                numbers = {one: row.numbers[one] for one in METRICS if kept or not math.isnan(row.numbers[one])}
                spread = spreads(table, row)
                yield Stored(size, name, designs[name], run, numbers, row.provenance, told, kept, spread)


def _run_numbers(row: RunRow, result: wfl.Result) -> Mapping[str, float]:
    return run_row(row.point, row.seed, row.run, result.to_dataframe(), result.summary, row.provenance).numbers


def spreads(table: StudyTable, run: RunRow) -> dict[str, float]:
    """Standard deviation of what is learnt over the seeds of a run's point, by metric.

    It is 0 where there is one seed, or where a number is not finite for all of them.
    """
    return {
        metric: _deviation([one.numbers[metric] for one in table.runs if one.point == run.point]) for metric in LEARNT
    }


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else 0.0


def stored_trials(paper: Paper, size: Size, folder: Path) -> Iterator[Stored]:
    """Every stored trial of the sweeps of a size that the sweep as it stands has.

    Raises:
        MissingDataError: as in `stored_runs`.
    """
    for sweep in _sweeps(paper, size, folder):
        trials = read_trials(folder, sweep)
        found = {one.run.partition("-")[0]: one for one in trials}
        for run, design in _planned(paper, sweep).items():
            trial = found.get(run)
            if trial is None:
                continue
            seeds = [one.accuracy for one in trials if (one.method, one.setting) == (trial.method, trial.setting)]
            yield Stored(
                size,
                f"tuning-{sweep.name}",
                *design,
                dict(zip(TOLD, (trial.accuracy, trial.loss, trial.epsilon), strict=True)),
                trial.provenance,
                _trial_numbers,
                digits=False,
                spread={"validation_accuracy": _deviation(seeds)},
            )


def _trial_numbers(result: wfl.Result) -> Mapping[str, float]:
    return dict(zip(TOLD, trial_numbers(result.to_dataframe().iloc[-1]), strict=True))


def foreign_trials(paper: Paper, size: Size, folder: Path) -> Iterator[str]:
    """What the files of sweeps have that the sweeps as they stand do not: those trials cannot be made again.

    Raises:
        MissingDataError: as in `stored_runs`; with other data every trial has another id.
    """
    for sweep in _sweeps(paper, size, folder):
        trials = read_trials(folder, sweep)
        foreign = {one.run.partition("-")[0] for one in trials} - _planned(paper, sweep).keys()
        if foreign:
            yield f"{results_file(folder, sweep).name}: {len(foreign)} of {len(trials)} trials are not of the sweep"


def _sweeps(paper: Paper, size: Size, folder: Path) -> list[Sweep]:
    """The sweeps of a size of which there is a file."""
    return [one for one in SWEEPS.get(paper.name, ()) if one.size == size and results_file(folder, one).exists()]


def _planned(paper: Paper, sweep: Sweep) -> dict[str, tuple[StudyDesign, Run]]:
    """The runs of a sweep by the first part of their ids, that of the scenario; with their designs."""
    designs = [tuning_design(paper.name, sweep, method) for method in sweep.methods]
    _refuse_without_data(paper, designs)
    return {run.id.partition("-")[0]: (design, run) for design in designs for run in design.runs}


def _refuse_without_data(paper: Paper, designs: Iterable[StudyDesign]) -> None:
    """Refuse studies whose rows of `adult` were made up because its files are not there: those are other runs."""
    if any(made_up(design) for design in designs):
        raise MissingDataError(
            f"{paper.name}: found no files of adult, from which its runs and trials come; set WIRELESSFL_DATA to the "
            "folder that holds them"
        )
