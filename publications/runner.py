"""Runs the studies and audits of a paper in one size, and gathers their numbers."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wirelessfl as wfl
from publications.catalogue import study_file
from publications.collect import collect, point_at
from publications.paper import Paper
from publications.studies import AuditOf, PaperStudy, Size
from publications.tables import AuditRow, StudyTable, Tables, run_at
from wirelessfl.errors import InfeasibleError, OutputError
from wirelessfl.scenario import Scenario, dump_scenario
from wirelessfl.study import Message, Run, StudyDesign, content_id, load_study, run_study

Watch = Callable[[StudyDesign], AbstractContextManager[Callable[[Message], None]]]
"""What shows the progress of a study."""


@contextmanager
def unwatched(design: StudyDesign) -> Iterator[Callable[[Message], None]]:
    """No progress."""
    yield lambda _: None


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
    """

    paper: Paper
    size: Size
    work: Path
    overrides: Sequence[str] = ()
    workers: int | None = None
    resume: bool = False
    audits: bool = True
    command: str = ""


def run_paper(request: Request, watch: Watch = unwatched) -> Tables:
    """Run everything of a paper.

    Raises:
        InputError: a study file, the data or a folder cannot be used.
        InfeasibleError: runs failed; ``resume`` tries them again.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    designs = load_designs(request.paper, request.size, request.overrides)
    check_data(designs.values())
    studies = {}
    for study in request.paper.studies_in(request.size):
        design = designs[study.name]
        table = _run_study(request, study, design, watch)
        audits = tuple(_audit(request, study, design, one) for one in study.audits) if request.audits else ()
        studies[study.name] = replace(table, audits=audits)
    return Tables(_about(request, designs), studies)


def load_designs(paper: Paper, size: Size, overrides: Sequence[str] = ()) -> dict[str, StudyDesign]:
    """All studies of a size, every point checked.

    Raises:
        ScenarioError: what is wrong with them.
    """
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


def _run_study(request: Request, study: PaperStudy, design: StudyDesign, watch: Watch) -> StudyTable:
    with watch(design) as on_message:
        result = run_study(
            design, request.work / study.name, workers=request.workers, resume=request.resume, on_message=on_message
        )
    if result.failures:
        first = result.failures[0]
        raise InfeasibleError(
            f"{study.name}: {len(result.failures)} of {len(result.records)} runs failed; --resume tries them again. "
            f"The first: {result.describe(first)}: {first.error}"
        )
    return collect(study.name, result, design, study.curve)


def _audit(request: Request, study: PaperStudy, design: StudyDesign, wanted: AuditOf) -> AuditRow:
    """The audit of a point, from an earlier attempt if there is one."""
    run = _run_at(study, design, wanted)
    scenario = _changed(run.scenario, wanted.changes, request.work / "audits")
    file = request.work / "audits" / f"{content_id(scenario)}-{wanted.trials}.json"
    if request.resume and file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
    else:
        found = wfl.audit_scenario(scenario, wanted.trials).as_mapping()
        file.write_text(wfl.to_json(found), encoding="utf-8")
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
