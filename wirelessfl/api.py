"""Public Python interface: load a scenario, simulate it, open its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import InputError, OutputError, RunInterrupted, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.outputs import READ_ONLY, output_folder, refuse_inputs, write_text
from wirelessfl.plots import plot_beam, plot_labels, plot_spectrum, plot_topology, plots_of
from wirelessfl.preparation import Means, prepared
from wirelessfl.result import Plan, Result, make_plan, open_run, result_of
from wirelessfl.scenario import Scenario, Source, dump_scenario, load_scenario, locate, resolve_scenario
from wirelessfl.scenario.overrides import Overrides
from wirelessfl.scenario.python_values import named_parameters
from wirelessfl.scenario.scenario import texts
from wirelessfl.streams import Streams
from wirelessfl.summary.figure_process import figure_process
from wirelessfl.summary.style import FigureFormat, FigureOptions, figure_options
from wirelessfl.trace import FINISHED, CheckpointWriter, TraceWriter, file_state, open_trace, trust_trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wirelessfl.learning import Population
    from wirelessfl.simulation import FinishedRound, Simulation
    from wirelessfl.trace import EventBatch, RunStatus

__all__ = [
    "Plan",
    "Result",
    "Scenario",
    "load_population",
    "load_scenario",
    "make_plan",
    "open_run",
    "open_trace",
    "plot_beam",
    "plot_labels",
    "plot_spectrum",
    "plot_topology",
    "plots_of",
    "record_run",
    "simulate",
]


def default_folder(scenario: Scenario) -> Path:
    """Default folder of a run: ``results/<name>-<seed>``."""
    return Path("results") / f"{scenario.name}-{scenario.seed}"


def simulate(
    scenario: Source,
    out: str | Path | None = None,
    *,
    overrides: Overrides = (),
    allow_plugins: bool = False,
    device: str = "auto",
    threads: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    pictures: bool = True,
    figures: FigureOptions | FigureFormat = "png",
    wait: bool = False,
    inputs: Iterable[str | Path] = (),
    on_round: Callable[[FinishedRound], None] | None = None,
    **keys: Any,
) -> Result:
    """Simulation of a scenario; writes its trace, resolved scenario, summary and pictures.

    Args:
        scenario: what to simulate: a shipped name, the path of a file, a mapping with the keys of one, or a `Scenario`.
        out: the folder; by default ``results/<name>-<seed>``.
        overrides: as for `load_scenario`: ``{"uplink.snr_db": 5}``.
        allow_plugins: as for `load_scenario`.
        device: "auto" (a GPU if there is one), "cpu" or "cuda". A resumed run keeps what its trace records.
        threads: torch threads; by default the scenario's, else all cores. A resumed run keeps what its trace records.
        workers: processes of this machine that train blocks of clients, one thread each; None trains in this process.
            With ``scheduler="slurm"`` the Slurm jobs.
        scheduler: address of a Dask scheduler whose workers do, or "slurm". The bits are those of the run without
            workers that has the same ``compute.chunk``, and a resumed run may go on with others or with none.
        resume: continue an interrupted run; start it where there is none; a complete one is only summarised.
        overwrite: replace the run that lies in the folder.
        pictures: draw summary and timeline, which may take longer than a small run does.
        figures: their format, "pdf", "svg", "png" or "none", or `FigureOptions` with a width besides.
        wait: wait for another process that works on the run in the folder; without it, that is an error.
        inputs: files that must not be written over, beside the scenario's own and those that it names.
        on_round: called with each finished round.
        keys: further overrides as keyword arguments, with two underscores for a dot: ``rounds=5, uplink__snr_db=10``.

    Raises:
        InputError: scenario, data or folder cannot be used.
        InfeasibleError: a privacy target that cannot be met, a recorded plan that this machine cannot follow, or
            workers that cannot be reached.
        RunInterrupted: Ctrl-C or SIGTERM; the trace is intact and ``resume`` continues it.
    """
    _refuse_uncallable(on_round)
    _refuse_no_files(inputs)
    means = Means(device, threads, workers, scheduler)
    read = () if isinstance(scenario, Scenario | Mapping) else (locate(scenario),)
    scenario = resolve_scenario(
        scenario, overrides, keys, named_parameters(simulate), allow_plugins=allow_plugins
    ).scenario
    options = figure_options(figures if pictures else "none")
    folder = RunFolder(default_folder(scenario) if out is None else output_folder(out))
    sources = (*inputs, *read, *_named(scenario))
    with (
        catch_interrupts() as interrupts,
        _held(folder, sources, resume, overwrite, interrupts.check if wait else None),
        figure_process(options) as drawing,
    ):
        going_on = resume and _goes_on(folder, scenario)
        if not going_on or not folder.is_complete():
            with prepared(scenario, folder, going_on, means, interrupts) as simulation:
                if not going_on:
                    folder.clear(sources)
                record_run(simulation, folder, scenario, interrupts, on_round)
        with interrupts.at_once("stopped when the run was complete; --resume gives its summary and pictures"):
            return result_of(folder, options, drawing)


def _goes_on(folder: RunFolder, scenario: Scenario) -> bool:
    # Whether there is a run in the folder; it must be one of this scenario and its code
    if not folder.holds_trace():
        return False
    folder.check_same_scenario(scenario)
    folder.check_same_sources(scenario)
    return True


def _refuse_uncallable(on_round: object) -> None:
    called = on_round is None or callable(on_round)
    precondition(called, f"on_round: found {on_round!r:.60}; allowed: a function of a round", InputError)


def _refuse_no_files(inputs: object) -> None:
    several = isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes | Path)
    precondition(several, f"inputs: found {inputs!r:.60}; allowed: several paths of files", InputError)


def _named(scenario: Scenario) -> Iterator[str | Path]:
    # What may be a file that the scenario names; a text that is no file is no input
    yield from texts(scenario.model_dump())
    for name in scenario.named_files().values():
        yield from scenario.places.candidates(name)


def load_population(scenario: Source, overrides: Overrides = (), **keys: Any) -> Population:
    """Training data of a scenario's clients: its dataset, partitioned with its seed.

    Args:
        scenario: as for `load_scenario`.
        overrides: as for `load_scenario`.
        keys: as for `load_scenario`.

    Raises:
        ScenarioError: all that is wrong with the scenario, one line each.
        DataError: files are missing or damaged, or there are more clients than samples.
        InfeasibleError: registered clients take more memory than there is.
    """
    from wirelessfl.assembly.data import build_population

    scenario = load_scenario(scenario, overrides, **keys)
    return build_population(scenario, Streams(scenario.seed))


@contextmanager
def _held(
    folder: RunFolder, sources: Sequence[str | Path], resume: bool, overwrite: bool, wait: Callable[[], None] | None
) -> Iterator[None]:
    # Lock on a checked folder; a complete run that is only summarised may lie in a read-only one
    def check() -> None:
        if resume and folder.holds_trace():
            refuse_inputs(set(folder.files) - {folder.scenario}, sources)
            return
        if not overwrite:
            folder.refuse_if_taken()
        folder.refuse_foreign(sources)

    check()
    with ExitStack() as lock:
        try:
            lock.enter_context(folder.held(wait))
        except OutputError as error:
            read_only = isinstance(error.__cause__, OSError) and error.__cause__.errno in READ_ONLY
            if not (read_only and resume and folder.holds_trace() and folder.is_complete()):
                raise
        check()
        yield


def record_run(
    simulation: Simulation,
    folder: RunFolder,
    scenario: Scenario,
    interrupts: Interrupts,
    on_round: Callable[[FinishedRound], None] | None = None,
) -> None:
    """Run of a simulation from its present state to its end; writes its trace and scenario.

    Raises:
        OutputError: the folder cannot be written.
        RunInterrupted: Ctrl-C or SIGTERM; the trace is intact.
    """
    from wirelessfl.assembly import client_values, closing_attributes
    from wirelessfl.simulation import round_record

    interval = scenario.trace.model_interval
    with (
        _opened(simulation, folder, scenario) as writer,
        CheckpointWriter(folder.checkpoint, writer.identity) as checkpoint,
    ):
        if not folder.scenario.exists():
            write_text(folder.scenario, dump_scenario(scenario))

        def keep(this: FinishedRound, events: EventBatch) -> None:
            state = simulation.state
            weights = state.parameters if interval is not None and this.index % interval == 0 else None
            kept = events if scenario.trace.events else None
            writer.append(round_record(this, kept, weights, state.release_settings))
            checkpoint.save(state.as_mapping())
            if on_round is not None:
                on_round(this)
            interrupts.check()

        def close(status: RunStatus, model: NDArray[np.float32] | None = None) -> None:
            if status not in FINISHED:
                simulation.back_to_last_round()
            checkpoint.settle()
            writer.finish(status, client_values(simulation), model, closing_attributes(simulation))

        try:
            with scenario.located():
                simulation.run(keep)
            status: RunStatus = "diverged" if simulation.diverged else "complete"
            close(status, None if scenario.trace.models == "none" else simulation.state.parameters)
        except (RunInterrupted, KeyboardInterrupt) as stopped:  # the latter from on_round
            close("interrupted")
            raise RunInterrupted(
                f"stopped after round {simulation.state.round_index} of {scenario.rounds}; "
                "the trace is intact, continue with --resume"
            ) from stopped
        except BaseException:
            with suppress(Exception):
                close("failed")
            raise
    if writer.written is not None:
        trust_trace(file_state(writer.written))


def _opened(simulation: Simulation, folder: RunFolder, scenario: Scenario) -> TraceWriter:
    # The trace of a run that goes on, or a new one
    from wirelessfl.assembly import trace_header

    if folder.holds_trace():
        return TraceWriter.resume(folder.trace, simulation.state.round_index)
    header = trace_header(scenario, simulation, folder.path)
    return TraceWriter.create(folder.trace, header, simulation.slots)
