"""Runs of a sweep, its file ``tuning-<sweep>.csv``, and the study ``tuned-<sweep>`` that follows from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

import wirelessfl as wfl
from publications.files import number, read_provenance, read_rows, write_rows
from publications.noted import Watch, run_noted
from publications.provenance import Notes, Provenance, provenance_of
from publications.studies import STUDIES, PaperStudy, Point
from publications.sweeps import SWEEPS, sweeps_named
from publications.tuning import VALIDATION, Sweep, Trial, TunedMethod, scores, winner
from wirelessfl.errors import InfeasibleError
from wirelessfl.study import StudyDesign, load_study

TUNED = "tuned-"
"""What the names of studies that tuning has written begin with."""
TOLD = ("validation_accuracy", "validation_loss", "epsilon_accounted")
"""What is stored of a trial: validation accuracy and loss after the last round, and the accounted ε."""


def results_file(folder: Path, sweep: Sweep) -> Path:
    """Where the runs of a sweep lie."""
    return folder / f"tuning-{sweep.name}.csv"


def tuned_file(paper: str, sweep: Sweep) -> Path:
    """The study that runs every method at the setting that won."""
    return STUDIES / paper / sweep.size / f"{TUNED}{sweep.name}.yaml"


def tuning_design(paper: str, sweep: Sweep, method: TunedMethod) -> StudyDesign:
    """The runs of one method, a point a setting.

    Raises:
        ScenarioError: a setting is no scenario.
    """
    rows = [method.at(setting) for setting in method.settings(sweep.budget)]
    document = _document(paper, sweep, rows, sweep.trial)
    document["base"] = str((STUDIES / paper / sweep.size / document["base"]).resolve())
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"tuning-{sweep.name}-{method.name}").strip("-")
    return load_study({**document, "name": name, "seeds": list(sweep.seeds)})


def run_sweep(
    paper: str, sweep: Sweep, work: Path, commit: str, watch: Watch, *, workers: int | None = None, resume: bool = False
) -> list[Trial]:
    """All runs of a sweep.

    Args:
        paper: Name of the paper.
        sweep: What is tuned.
        work: Folder for traces, below it one for each method.
        commit: The commit of the source that runs here.
        watch: What shows progress.
        workers: Processes.
        resume: Keep what is finished.

    Raises:
        ScenarioError: a setting is no scenario.
        InfeasibleError: runs failed; ``resume`` tries them again.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    designs = {method.name: tuning_design(paper, sweep, method) for method in sweep.methods}
    trials = []
    for name, design in designs.items():
        folder = work / design.name
        study = run_noted(design, folder, commit, watch, workers=workers, resume=resume)
        if study.failures:
            first = study.failures[0]
            raise InfeasibleError(
                f"{sweep.name}, {name}: {len(study.failures)} of {len(study.records)} runs failed; --resume tries them "
                f"again. The first: {study.describe(first)}: {first.error}"
            )
        # A run that diverged has no accuracy in its last round.
        last = {run: rounds.iloc[-1] for run, rounds in study.to_dataframe().groupby("run", sort=False)}
        commits = Notes.of(folder, "").runs
        trials += [
            Trial(
                name,
                record.levels[0],
                record.seed,
                *trial_numbers(last[record.run]),
                record.run,
                _origin(folder / "runs" / record.run, commits.get(record.run, "")),
            )
            for record in study.complete
        ]
    return trials


def trial_numbers(last: Mapping[Any, Any]) -> tuple[float, float, float]:
    """The numbers of a trial, in the order of `TOLD`, from the last round of its run."""
    accuracy, loss, epsilon = (float(last[column]) for column in TOLD)
    return accuracy, loss, epsilon


def _origin(place: Path, commit: str) -> Provenance:
    seconds = wfl.open_run(place).summary.get("wall_time")
    return provenance_of(place / "trace.h5", float(seconds or math.nan), commit)


def write_trials(folder: Path, sweep: Sweep, trials: Sequence[Trial]) -> None:
    """Write ``tuning-<sweep>.csv``: a row a run, with the values of all tuned keys."""
    keys = list(dict.fromkeys(key for method in sweep.methods for key in method.grid))
    settings = {method.name: method.settings(sweep.budget) for method in sweep.methods}
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(
        results_file(folder, sweep),
        [
            {
                "method": one.method,
                "setting": one.setting,
                **{key: settings[one.method][one.setting].get(key) for key in keys},
                "seed": one.seed,
                **dict(zip(TOLD, (one.accuracy, one.loss, one.epsilon), strict=True)),
                "run": one.run,
                **asdict(one.provenance),
            }
            for one in trials
        ],
    )


def read_trials(folder: Path, sweep: Sweep) -> list[Trial]:
    """The runs of a sweep as they were written, none if they were not."""
    return [
        Trial(
            row["method"],
            int(row["setting"]),
            int(row["seed"]),
            *trial_numbers({column: number(row[column]) for column in TOLD}),
            row["run"],
            read_provenance(row),
        )
        for row in read_rows(results_file(folder, sweep))
    ]


def tuned_study(paper: str, sweep: Sweep, trials: Sequence[Trial]) -> str:
    """The text of the study in which every method has the setting that won.

    Raises:
        ValueError: runs are missing.
    """
    rows = [method.at(winner(scores(sweep, method, trials)).values) for method in sweep.methods]
    document = {**_document(paper, sweep, rows), "seeds": sweep.reported}
    names = ", ".join(method.name for method in sweep.methods)
    few = "1 seed that is" if len(sweep.seeds) == 1 else f"{len(sweep.seeds)} seeds that are"
    head = (
        f"# {sweep.title}, every method at the setting that won on validation samples.\n"
        f"# In this order: {names}.\n"
        f"# Written by `python -m publications tune {paper} --size {sweep.size}` from tuning-{sweep.name}.csv: "
        f"{sweep.budget} settings of\n# each method at {few} not among those below.\n"
    )
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=118, default_flow_style=None)


def tuned_studies(paper: str) -> tuple[PaperStudy, ...]:
    """The studies that tuning has written for a paper, each in the sizes in which it has."""
    sizes: dict[str, list[Sweep]] = {}
    for sweep in SWEEPS[paper]:
        if tuned_file(paper, sweep).exists():
            sizes.setdefault(sweep.name, []).append(sweep)
    return tuple(
        PaperStudy(
            f"{TUNED}{name}",
            f"{sweeps[0].title}, every method tuned",
            sizes=tuple(sweep.size for sweep in sweeps),
            words=sweeps[0].words,
        )
        for name, sweeps in sizes.items()
    )


def tuned_point(paper: str, name: str, size: str, method: str) -> Point:
    """The point of a method in the study that tuning has written; nothing where it has not."""
    for sweep in sweeps_named(paper, name):
        file = tuned_file(paper, sweep)
        if sweep.size == size and file.exists():
            varied = yaml.safe_load(file.read_text(encoding="utf-8"))["zip"]
            at = [one.name for one in sweep.methods].index(method)
            return {key: values[at] for key, values in varied.items()}
    return {}


def _document(
    paper: str, sweep: Sweep, rows: Sequence[Mapping[str, Any]], further: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    # The study of the sweep with these points instead of its own
    study = yaml.safe_load((STUDIES / paper / sweep.size / f"{sweep.study}.yaml").read_text(encoding="utf-8"))
    varied = {key: [row[key] for row in rows] for key in rows[0]}
    kept = {**study.get("set", {}), **sweep.change, **VALIDATION, **further}
    # No picture is drawn from the models of these runs
    without = {*varied, "trace.models"}
    kept = {key: value for key, value in kept.items() if not any(f"{key}.".startswith(f"{one}.") for one in without)}
    return {"base": study["base"], "set": kept, "zip": varied}
