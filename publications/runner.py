"""Runs the studies and audits of a paper in one size, and gathers their numbers."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wirelessfl as wfl
from publications.catalogue import study_file
from publications.collect import collect, point_at
from publications.noted import Watch, run_noted, unwatched
from publications.paper import Paper
from publications.provenance import current_commit
from publications.studies import SIZES, AuditOf, PaperStudy, Size
from publications.tables import AuditRow, StudyTable, Tables, run_at
from wirelessfl.errors import InfeasibleError, InputError, OutputError
from wirelessfl.scenario import Scenario, dump_scenario
from wirelessfl.study import Run, StudyDesign, content_id, load_study


@dataclass(frozen=True)
class Request:
    """What is to be run.

    Attributes:
        paper: Which paper.
        size: In which size.
        work: Folder for traces, below it one for each study.
        overrides: As ``--set`` of a study, for every study: ``base.rounds=2``, ``seeds=1``.
        workers: Processes.
        resume: Keep what is finished.
        audits: Whether points are audited too.
        command: How it was asked for, for ``about.json``.
        only: Names of the studies that are run; none for all.
        stored: What is stored already: its runs stay where their traces are not at hand.
    """

    paper: Paper
    size: Size
    work: Path
    overrides: Sequence[str] = ()
    workers: int | None = None
    resume: bool = False
    audits: bool = True
    command: str = ""
    only: Sequence[str] = ()
    stored: Mapping[str, StudyTable] = field(default_factory=dict)

    def wants(self, study: PaperStudy) -> bool:
        """Whether a study is to be run."""
        return not self.only or study.name in self.only


def run_paper(request: Request, watch: Watch = unwatched) -> None:
    """Run everything of a paper; `collect_paper` gathers it.

    Raises:
        InputError: a study file, the data or a folder cannot be used.
        InfeasibleError: runs failed; ``resume`` tries them again.
        OutputError: a stored study would be lost.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    designs = load_designs(request.paper, request.size, request.overrides)
    if unknown := set(request.only) - set(designs):
        found, allowed = ", ".join(sorted(unknown)), ", ".join(designs)
        raise InputError(f"{request.paper.name} in size {request.size}: found no study {found}; allowed: {allowed}")
    for study in request.paper.studies_in(request.size):
        _refuse_to_lose(request, study, designs[study.name], anew=request.wants(study))
    check_data(design for name, design in designs.items() if not request.only or name in request.only)
    commit = current_commit()
    chosen = [study for study in request.paper.studies_in(request.size) if request.wants(study)]
    for study in chosen:
        _run_study(request, study, designs[study.name], commit, watch)
    for study in chosen:
        for one in study.audits if request.audits else ():
            _audit(request, study, designs[study.name], one, again=not request.resume)


def collect_paper(request: Request) -> Tables:
    """Everything of a paper that has run, whether or not its studies have ended; audits that were made.

    Raises:
        InputError: a study file or a folder cannot be used.
        OutputError: nothing has run, or a stored study would be lost.
    """
    designs = load_designs(request.paper, request.size, request.overrides)
    found = {}
    for study in request.paper.studies_in(request.size):
        design = designs[study.name]
        table = collect(study, design, request.work / study.name)
        _refuse_to_lose(request, study, design, anew=bool(table.runs))
        audits = [_made_audit(request, study, design, one) for one in study.audits]
        table = replace(table, audits=tuple(one for one in audits if one is not None))
        if study.name in request.stored:
            points = {run.id: point_at(design, run.levels) for run in design.runs}
            table = table.with_stored(request.stored[study.name], points)
        if table.runs:
            found[study.name] = table
    if not found:
        raise OutputError(f"{request.work}: found no finished run of {request.paper.name}")
    return Tables(_about(request, designs), found)


def load_designs(paper: Paper, size: Size, overrides: Sequence[str] = ()) -> dict[str, StudyDesign]:
    """All studies of a size, every point checked.

    Raises:
        InputError: the paper has none of that size.
        ScenarioError: what is wrong with them.
    """
    sizes = [one for one in SIZES if paper.studies_in(one)]
    if size not in sizes:
        raise InputError(f"{paper.name}: found size {size}; allowed: {', '.join(sizes)}")
    return {study.name: load_study(study_file(paper, size, study), overrides) for study in paper.studies_in(size)}


def check_data(designs: Iterable[StudyDesign]) -> None:
    """Load every data set once, so that a missing one is said before the first run.

    Raises:
        DataError: missing or damaged files.
    """
    sets: dict[str, Scenario] = {}
    for design in designs:
        for run in design.runs:
            sets.setdefault(json.dumps(run.scenario.data.dataset.model_dump(), sort_keys=True), run.scenario)
    for scenario in sets.values():
        wfl.load_population(scenario)


def made_up(design: StudyDesign) -> bool:
    """Whether rows of `adult` are made up because its files are not there: those are other runs."""
    return any(note.startswith(_MADE_UP) for note in design.notes)


_MADE_UP = "data.dataset.source: synthetic rows"
"""What a study notes that asks for the files where they are, and found none."""


def _refuse_to_lose(request: Request, study: PaperStudy, design: StudyDesign, *, anew: bool) -> None:
    """Refuse to drop all stored runs of a study, which is none of those that are made anew with real data."""
    stored = {run.run for run in request.stored[study.name].runs} if study.name in request.stored else set()
    if stored.isdisjoint(run.id for run in design.runs) and stored and (not anew or made_up(design)):
        why = (
            "the files of adult are not here, so that every run is another; set WIRELESSFL_DATA to the folder that "
            "holds them"
            if made_up(design)
            else "the study has changed; run it again, or delete its files"
        )
        raise OutputError(
            f"{request.paper.name}, {request.size}: none of the {len(stored)} stored runs of {study.name} belongs to "
            f"the study as it is here, and all would be lost: {why}"
        )


def _run_study(request: Request, study: PaperStudy, design: StudyDesign, commit: str, watch: Watch) -> None:
    folder = request.work / study.name
    result = run_noted(design, folder, commit, watch, workers=request.workers, resume=request.resume)
    if result.failures:
        first = result.failures[0]
        raise InfeasibleError(
            f"{study.name}: {len(result.failures)} of {len(result.records)} runs failed; --resume tries them again. "
            f"The first: {result.describe(first)}: {first.error}"
        )


def _audit(request: Request, study: PaperStudy, design: StudyDesign, wanted: AuditOf, *, again: bool) -> None:
    """Audit a point, unless an earlier attempt did."""
    scenario, file = _audited(request, study, design, wanted)
    if again or not file.exists():
        file.write_text(wfl.to_json(wfl.audit_scenario(scenario, wanted.trials).as_mapping()), encoding="utf-8")


def _audited(request: Request, study: PaperStudy, design: StudyDesign, wanted: AuditOf) -> tuple[Scenario, Path]:
    """What is audited, and the file of what was found."""
    scenario = _changed(_run_at(study, design, wanted).scenario, wanted.changes, request.work / "audits")
    return scenario, request.work / "audits" / f"{content_id(scenario)}-{wanted.trials}.json"


def _made_audit(request: Request, study: PaperStudy, design: StudyDesign, wanted: AuditOf) -> AuditRow | None:
    """The audit of a point, None if it was not made."""
    run = _run_at(study, design, wanted)
    _, file = _audited(request, study, design, wanted)
    if not file.exists():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    return AuditRow(
        point=point_at(design, run.levels),
        seed=run.scenario.seed,
        trials=wanted.trials,
        unit=found["unit"],
        epsilon_published=float(found["epsilon_published"]),
        epsilon_empirical=float(found["epsilon_empirical"]),
        epsilon_accounted=float(found["epsilon_accounted"]),
        delta=found["delta"],
        canary=found["canary"],
    )


def _run_at(study: PaperStudy, design: StudyDesign, wanted: AuditOf) -> Run:
    run = run_at(design, wanted.point)
    if run is None:
        raise ValueError(f"{study.name} has no point {dict(wanted.point)} to be audited")
    return run


def _changed(scenario: Scenario, changes: Mapping[str, Any], folder: Path) -> Scenario:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{content_id(scenario)}.yaml"
        file.write_text(dump_scenario(scenario), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror}") from error
    return wfl.load_scenario(file, overrides=changes)


def _about(request: Request, designs: Mapping[str, StudyDesign]) -> dict[str, Any]:
    return {
        "paper": request.paper.name,
        "size": request.size,
        "command": request.command,
        "overrides": list(request.overrides),
        "version": wfl.__version__,
        "torch": version("torch").partition("+")[0],
        "python": platform.python_version(),
        "seeds": {name: list(design.seeds) for name, design in designs.items()},
        "runs": {name: len(design.runs) for name, design in designs.items()},
    }
