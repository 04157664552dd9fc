"""Execution of a study: its unfinished runs on a pool of workers, message by message."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from wirelessfl import plugins
from wirelessfl.cluster.connection import connect
from wirelessfl.errors import InfeasibleError, ScenarioError, precondition
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.outputs import output_folder, write_text
from wirelessfl.scenario import dump_scenario
from wirelessfl.scenario.overrides import Overrides
from wirelessfl.scenario.python_values import named_parameters, read_changes
from wirelessfl.scenario.rejection import line
from wirelessfl.scenario.scenario import outside_code
from wirelessfl.study.changed import note_changed_sources
from wirelessfl.study.cluster import ClusterWorkers
from wirelessfl.study.design import Run, StudyDesign
from wirelessfl.study.file import StudyFile
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.loading import StudySource, design_study
from wirelessfl.study.local import LocalWorkers, available_cores
from wirelessfl.study.record import RunRecord
from wirelessfl.study.result import Study, study_of
from wirelessfl.study.runs import RunIndex, index_text
from wirelessfl.study.task import MAX_DEATHS, Claim, Message, Outcome, Progress, Task, Workers, claim_folder
from wirelessfl.summary.style import FigureFormat, FigureOptions, figure_options

_POLL_S = 0.2


def run_study(
    study: StudyDesign | StudySource,
    out: str | Path | None = None,
    *,
    overrides: Overrides = (),
    allow_plugins: bool = False,
    workers: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    scheduler: str | None = None,
    resume: bool = False,
    fail_fast: bool = False,
    figures: FigureOptions | FigureFormat = "png",
    on_message: Callable[[Message], None] | None = None,
    **keys: Any,
) -> Study:
    """Run of a study, with its record, table and picture, and a trace for every run.

    A run that fails is recorded with its error and does not stop the others.

    Args:
        study: What to run: a design from `load_study`, or what that takes: a shipped name, a file or a mapping.
        out: The folder; by default ``results/<name>``.
        overrides: As for `load_study`; a design that is made already takes none.
        allow_plugins: As for `load_study`.
        workers: Processes on this machine, by default one a core; with ``scheduler="slurm"`` the workers asked for. A
            scheduler that is there already has workers of its own.
        threads: Torch threads of a worker; by default the cores divided among the workers. A scenario that names a
            number keeps it.
        device: "auto" (a GPU if there is one), "cpu" or "cuda".
        scheduler: The address of a Dask scheduler, or "slurm"; None for this machine.
        resume: Keep the finished runs of the folder, continue the interrupted ones, and begin the others, those that
            failed among them. The design may have changed: only what is new is computed.
        fail_fast: Stop at the first failure.
        figures: Format of its figure, "pdf", "svg", "png" or "none", or `FigureOptions` with a width besides.
        on_message: Called with every message of a run; also, first of all, with the outcomes that are there already.
        keys: Further overrides as keyword arguments, with two underscores for a dot: ``seeds=3, base__rounds=10``.

    Raises:
        InputError: folder or scheduler cannot be used.
        InfeasibleError: the scheduler cannot be reached, or a run failed under ``fail_fast``.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    design = _design(study, overrides, allow_plugins, keys)
    options = figure_options(figures)
    folder = StudyFolder(Path("results") / design.name if out is None else output_folder(out))
    _refuse(folder, design, resume)
    count = min(workers or available_cores(), len(design.runs))
    with (
        catch_interrupts() as interrupts,
        nullcontext() if scheduler is None else connect(scheduler, count) as client,
        claim_folder(folder.path) as claim,
    ):
        _refuse(folder, design, resume)  # another study may have begun and ended meanwhile
        note_changed_sources(design, folder)
        session = _Session(design, folder, fail_fast, on_message or (lambda _: None))
        pool, own_threads = _pool(folder, client, scheduler, count, threads)
        session.carry_out(pool, partial(make_task, folder, claim, device, own_threads), claim, interrupts)
        return _written(session.study(), options, interrupts)


def _pool(
    folder: StudyFolder, client: Any, scheduler: str | None, count: int, threads: int | None
) -> tuple[Workers, int | None]:
    # Workers, and the torch threads of each; None leaves them to the cluster
    if scheduler is not None:
        return ClusterWorkers(client, scheduler), threads
    local_threads = threads or max(1, available_cores() // count)
    return LocalWorkers(count, local_threads, folder.log), local_threads


def _written(ended: Study, options: FigureOptions, interrupts: Interrupts) -> Study:
    from wirelessfl.study.collect import write_results  # brings matplotlib and pyarrow along

    with interrupts.at_once("stopped when every run had ended; --resume writes table, picture and report"):
        write_results(ended, options)
    return ended


def _design(
    study: StudyDesign | StudySource, overrides: Overrides, allow_plugins: bool, keys: Mapping[str, Any]
) -> StudyDesign:
    if not isinstance(study, StudyDesign):
        return design_study(study, overrides, keys, named_parameters(run_study), allow_plugins=allow_plugins)
    changes = read_changes(overrides, keys, list(StudyFile.model_fields), named_parameters(run_study))
    for change in changes:
        found = "a key for a design whose runs are made already"
        raise ScenarioError(line(change.place, change.path, found, "keys in load_study, or here with a name or a file"))
    return study


def _refuse(folder: StudyFolder, design: StudyDesign, resume: bool) -> None:
    if not resume:
        folder.refuse_if_taken()
    folder.refuse_foreign(design.sources)


def make_task(folder: StudyFolder, claim: Claim, device: str, threads: int | None, run: Run) -> Task:
    """Task of a run, for workers in whatever folder."""
    return Task(
        run=run.id,
        scenario=dump_scenario(run.scenario),
        folder=str((folder.runs / run.id).resolve()),
        device=device,
        threads=run.scenario.compute.threads or threads,
        claim_file=str(claim.file),
        claim_token=claim.token,
        plugin_folders=tuple(map(str, plugins.folders())) if outside_code(run.scenario) else (),
        data_folders=tuple(map(str, run.scenario.places.folders())) if run.scenario.named_files() else (),
        source_digests=run.source_digests,
    )


class _Session:
    def __init__(
        self, design: StudyDesign, folder: StudyFolder, fail_fast: bool, on_message: Callable[[Message], None]
    ) -> None:
        self._design = design
        self._folder = folder
        self._fail_fast = fail_fast
        self._on_message = on_message
        self._outcomes: dict[str, Outcome] = {}
        self._stops: Counter[str] = Counter()
        self._begun: set[str] = set()
        self._index = RunIndex(folder.index)

    def study(self) -> Study:
        return study_of(self._design, self._folder, self._outcomes)

    def _record(self) -> None:
        study = self.study()
        self._folder.write_record(study.as_mapping())
        self._index.write(lambda: index_text(study.factors, study.records))

    def _underway(self) -> str:
        # The index from messages alone: nothing on disk is looked at again
        records = []
        for run in self._design.runs:
            ended = self._outcomes.get(run.id)
            status = "running" if run.id in self._begun else "waiting"
            end = (status,) if ended is None else (ended.status, ended.error, ended.summary)
            records.append(RunRecord(run.id, run.levels, run.scenario.seed, *end))
        return index_text(self._design.factors, records)

    def carry_out(self, pool: Workers, task_of: Callable[[Run], Task], claim: Claim, interrupts: Interrupts) -> None:
        """All runs that have not ended, on a pool that is left when they have."""
        with ExitStack() as record, pool, ExitStack() as ending:
            ending.callback(claim.release)  # runs in progress stop before the workers are left
            self._work(pool, task_of, interrupts, record)

    def _work(self, pool: Workers, task_of: Callable[[Run], Task], interrupts: Interrupts, record: ExitStack) -> None:
        # Until all runs have ended; the study is recorded now, and again when ``record`` ends
        for outcome in filter(None, (self._folder.finished(run.id) for run in self._design.runs)):
            self._note(outcome)
        self._folder.drop_results()
        self._record()
        write_text(self._folder.file, self._design.text)
        record.callback(self._record)
        open_runs = {run.id: run for run in self._design.runs if run.id not in self._outcomes}
        for run in open_runs.values():
            pool.submit(task_of(run))
        while open_runs:
            interrupts.check(
                f"stopped with {len(self._outcomes)} of {len(self._design.runs)} runs ended; "
                "every trace is intact, continue with --resume"
            )
            match message := pool.next_message(_POLL_S):
                case Progress():
                    self._begun.add(message.run)
                    self._on_message(message)
                case Outcome(name, "interrupted") if self._stops[name] + 1 < MAX_DEATHS:
                    self._stops[name] += 1
                    pool.submit(task_of(open_runs[name]))
                case Outcome():
                    self._end(open_runs.pop(message.run), message)
                case None:  # nothing came in time
                    pass
                case _:
                    assert_never(message)
            self._index.refresh(self._underway)

    def _note(self, outcome: Outcome) -> None:
        self._outcomes[outcome.run] = outcome
        self._on_message(outcome)

    def _end(self, run: Run, outcome: Outcome) -> None:
        # A run has failed also where its trace is missing here, or workers were stopped too often
        trace = self._folder.trace(run.id)
        if outcome.status == "interrupted":
            outcome = Outcome(run.id, "failed", f"{MAX_DEATHS} workers were stopped while they computed it")
        elif outcome.status == "complete" and not trace.exists():
            words = f"complete, but {trace} is not there: do all workers share that folder?"
            outcome = Outcome(run.id, "failed", words)
        self._note(outcome)
        precondition(
            not self._fail_fast or outcome.status != "failed",
            f"{self._design.describe(run)}: {outcome.error}\n"
            "stopped at this first failure; without --fail-fast the others go on, --resume continues",
            InfeasibleError,
        )
