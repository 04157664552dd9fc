"""Execution of a study: its unfinished runs on a pool of workers, message by message."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from wirelessfl import plugins
from wirelessfl.errors import InfeasibleError, RunInterrupted
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.outputs import output_folder
from wirelessfl.scenario import dump_scenario
from wirelessfl.scenario.outside import outside_code
from wirelessfl.study.claim import Claim, claim_folder
from wirelessfl.study.cluster import ClusterWorkers, connect
from wirelessfl.study.design import Run, StudyDesign
from wirelessfl.study.folder import StudyFolder
from wirelessfl.study.local import LocalWorkers, available_cores
from wirelessfl.study.result import Study, study_of
from wirelessfl.study.task import Message, Outcome, Task
from wirelessfl.study.workers import MAX_DEATHS, Workers

_POLL_S = 0.2


def run_study(
    design: StudyDesign,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    threads: int | None = None,
    device: str = "auto",
    scheduler: str | None = None,
    resume: bool = False,
    fail_fast: bool = False,
    on_message: Callable[[Message], None] | None = None,
) -> Study:
    """Run a study and write its record, table and picture, and a trace for every run.

    A run that fails is recorded with its error and does not stop the others.

    Args:
        design: What to run, from `load_study`.
        out: The folder; by default ``results/<name>``.
        workers: Processes on this machine, by default one a core; with ``scheduler="slurm"`` the workers asked for. A
            scheduler that is there already has workers of its own.
        threads: Torch threads of a worker; by default the cores divided among the workers. A scenario that names a
            number keeps it.
        device: "auto" (a GPU if there is one), "cpu" or "cuda".
        scheduler: The address of a Dask scheduler, or "slurm"; None for this machine.
        resume: Keep the finished runs of the folder, continue the interrupted ones, and begin the others, those that
            failed among them. The design may have changed: only what is new is computed.
        fail_fast: Stop at the first failure.
        on_message: Called with every message of a run; also, first of all, with the outcomes that are there already.

    Raises:
        InputError: folder or scheduler cannot be used.
        InfeasibleError: the scheduler cannot be reached, or a run failed under ``fail_fast``.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    folder = StudyFolder(Path("results") / design.name if out is None else output_folder(out))
    _refuse(folder, design, resume)
    crew = min(workers or available_cores(), len(design.runs))
    with catch_interrupts() as interrupts, _connection(scheduler, crew) as cluster, claim_folder(folder.path) as claim:
        _refuse(folder, design, resume)  # another study may have begun and ended meanwhile
        session = _Session(design, folder, fail_fast, on_message or (lambda _: None))
        session.find_finished()
        make_task = _TaskMaker(folder, claim, device, _threads(threads, crew, scheduler))
        with session.recorded(), _workers(cluster, crew, make_task.threads, folder) as pool, ExitStack() as ending:
            ending.callback(claim.release)  # runs in progress stop before the workers are left
            session.work(pool, make_task, interrupts)
        study = session.study()
        from wirelessfl.study.collect import write_results  # brings matplotlib and pyarrow along

        with interrupts.at_once("stopped when every run had ended; --resume writes table, picture and report"):
            write_results(study)
    return study


def _refuse(folder: StudyFolder, design: StudyDesign, resume: bool) -> None:
    if not resume:
        folder.refuse_if_taken()
    folder.refuse_foreign(design.sources)


def _threads(threads: int | None, crew: int, scheduler: str | None) -> int | None:
    return threads if scheduler is not None else threads or max(1, available_cores() // crew)


@contextmanager
def _connection(scheduler: str | None, crew: int) -> Iterator[ClusterWorkers | None]:
    if scheduler is None:
        yield None
        return
    with connect(scheduler, crew) as client:
        yield ClusterWorkers(client, scheduler)


def _workers(cluster: ClusterWorkers | None, crew: int, threads: int | None, folder: StudyFolder) -> Workers:
    return cluster or LocalWorkers(crew, threads or 1, folder.log)


@dataclass(frozen=True)
class _TaskMaker:
    folder: StudyFolder
    claim: Claim
    device: str
    threads: int | None

    def __call__(self, run: Run) -> Task:
        return Task(
            run=run.id,
            scenario=dump_scenario(run.scenario),
            folder=str(self.folder.of_run(run.id).resolve()),
            device=self.device,
            threads=run.scenario.compute.threads or self.threads,
            claim_file=str(self.claim.file),
            claim_token=self.claim.token,
            plugin_folders=tuple(map(str, plugins.folders())) if outside_code(run.scenario) else (),
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
        self._begun = False

    def find_finished(self) -> None:
        # Outcomes of runs that are complete on disk
        for run in self._design.runs:
            if (outcome := self._folder.finished(run.id)) is not None:
                self._note(outcome)

    def study(self) -> Study:
        return study_of(self._design, self._folder, self._outcomes)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        # Write of the record after the work, however it ends
        try:
            yield
        finally:
            if self._begun:
                self._folder.write_record(self.study().as_mapping())

    def work(self, pool: Workers, make_task: _TaskMaker, interrupts: Interrupts) -> None:
        # Computation of every unfinished run
        self._folder.drop_results()
        self._folder.write_record(self.study().as_mapping())
        self._begun = True
        open_runs = {run.id: run for run in self._design.runs if run.id not in self._outcomes}
        for run in open_runs.values():
            pool.submit(make_task(run))
        while open_runs:
            try:
                interrupts.check()
            except RunInterrupted:
                raise RunInterrupted(
                    f"stopped with {len(self._outcomes)} of {len(self._design.runs)} runs ended; "
                    "every trace is intact, continue with --resume"
                ) from None
            message = pool.next_message(_POLL_S)
            if message is None:
                continue
            if not isinstance(message, Outcome):
                self._on_message(message)
            elif message.status == "interrupted" and self._goes_on(message.run):
                pool.submit(make_task(open_runs[message.run]))
            else:
                run, outcome = open_runs.pop(message.run), self._checked(message)
                self._note(outcome)
                self._stop_if_asked(outcome, run)

    def _goes_on(self, run: str) -> bool:
        self._stops[run] += 1
        return self._stops[run] < MAX_DEATHS

    def _note(self, outcome: Outcome) -> None:
        self._outcomes[outcome.run] = outcome
        self._on_message(outcome)

    def _checked(self, outcome: Outcome) -> Outcome:
        # The outcome, failed where the trace of a complete run is missing here or workers were stopped too often
        if outcome.status == "interrupted":
            return Outcome(outcome.run, "failed", f"{MAX_DEATHS} workers were stopped while they computed it")
        if outcome.status == "complete" and not self._folder.trace(outcome.run).exists():
            error = f"complete, but {self._folder.trace(outcome.run)} is not there: do all workers share that folder?"
            return Outcome(outcome.run, "failed", error)
        return outcome

    def _stop_if_asked(self, outcome: Outcome, run: Run) -> None:
        if self._fail_fast and outcome.status == "failed":
            raise InfeasibleError(
                f"{self._design.describe(run)}: {outcome.error}\n"
                "stopped at this first failure; without --fail-fast the others go on, --resume continues"
            )
