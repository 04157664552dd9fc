"""The public Python face: load a scenario, simulate it, open its trace."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError, RunInterrupted
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.outputs import READ_ONLY, output_folder, refuse_inputs, replacing
from wirelessfl.scenario import Scenario, load_scenario
from wirelessfl.scenario.notes import power_notes
from wirelessfl.summary import draw_summary, draw_timeline, draw_topology, summarise
from wirelessfl.trace import FINISHED, CheckpointWriter, TraceWriter, open_trace, read_group
from wirelessfl.trace.failures import trace_errors

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from numpy.typing import NDArray

    from wirelessfl.simulation import Forecast, Round, Simulation
    from wirelessfl.trace import EventBatch, RunStatus

__all__ = ["Plan", "Result", "load_scenario", "make_plan", "open_trace", "plot_topology", "record_run", "simulate"]


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        folder: where everything lies.
        summary: the numbers of ``summary.json``, in SI units.
        missing: files of the summary that could not be written, each with the reason.
    """

    folder: Path
    summary: dict[str, Any]
    missing: tuple[str, ...] = ()

    def require_files(self) -> None:
        """Make sure that everything is on disk.

        Raises:
            OutputError: something is missing; the trace is not.
        """
        if self.missing:
            raise OutputError(
                f"the run is complete and {self.trace} is whole, but not all that is made of it is there:\n  "
                + "\n  ".join(self.missing)
                + "\n--resume makes it from the trace, without running again"
            )

    @property
    def trace(self) -> Path:
        """The trace file; open it with ``wirelessfl.open_trace``."""
        return self.folder / "trace.h5"

    @property
    def picture(self) -> Path:
        """The summary figure."""
        return self.folder / "summary.png"

    @property
    def timeline(self) -> Path:
        """The figure of who did what, over simulated time."""
        return self.folder / "timeline.png"

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The trace, opened."""
        return open_trace(self.trace)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a round, indexed by ``round``: every variable of the trace that has one value a round."""
        with open_trace(self.trace) as trace, trace_errors(self.trace):
            names = [name for name, variable in trace.data_vars.items() if variable.dims == ("round",)]
            return trace[names].to_dataframe()

    def _repr_html_(self) -> str:
        """The numbers that count and the picture, for notebooks."""
        summary = self.summary
        at = f"at δ = {summary['delta']:g}"
        rows = {
            "rounds": f"{summary['rounds']}, on average {summary['participants_mean']:.1f} clients heard",
            "test accuracy": f"{summary['test_accuracy']:.1%}, loss {summary['test_loss']:.4g}",
            "ε published": f"{summary['epsilon_published']:.4g} {at}".replace("inf", "∞"),
            "ε accounted": f"{summary['epsilon_accounted']:.4g} {at}".replace("inf", "∞"),
            "simulated time": f"{summary['sim_time']:.4g} s, on the air {summary['airtime']:.4g} s",
            "trace": str(self.trace),
        }
        body = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows.items())
        caption = html.escape(f"{summary['name']}, seed {summary['seed']} ({summary['status']})")
        table = f"<table><caption>{caption}</caption><tbody>{body}</tbody></table>"
        if not self.picture.exists():
            return table
        picture = base64.b64encode(self.picture.read_bytes()).decode()
        return f'{table}<img alt="{caption}" width="400" src="data:image/png;base64,{picture}">'


def default_folder(scenario: Scenario) -> Path:
    """Where a run goes if nobody says otherwise."""
    return Path("results") / f"{scenario.name}-{scenario.seed}"


def simulate(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    pictures: bool = True,
    wait: bool = False,
    inputs: Iterable[str | Path] = (),
    on_round: Callable[[Round], None] | None = None,
) -> Result:
    """Run a scenario and write its trace, resolved scenario, summary and pictures.

    Args:
        scenario: what to simulate.
        out: the folder; by default ``results/<name>-<seed>``.
        device: "auto" (a GPU if there is one), "cpu" or "cuda". A resumed run keeps what its trace records.
        threads: torch threads; by default the scenario's, else all cores. A resumed run keeps what its trace records.
        resume: continue an interrupted run; start it where there is none; a complete one is only summarised.
        overwrite: replace the run that lies in the folder.
        pictures: draw summary.png and timeline.png, which may take longer than a small run does.
        wait: where another process works on the run in the folder, wait for it; otherwise that is an error.
        inputs: files that must not be written over, beside those that the scenario names: the one it was read from.
        on_round: called with each finished round.

    Raises:
        InputError: scenario, data or folder cannot be used.
        InfeasibleError: a privacy target that cannot be met, or a recorded plan that this machine cannot follow.
        RunInterrupted: Ctrl-C or SIGTERM; the trace is intact and ``resume`` continues it.
    """
    folder = RunFolder(default_folder(scenario) if out is None else output_folder(out))
    sources = (*inputs, *_files_named(scenario))
    with (
        catch_interrupts() as interrupts,
        _held(folder, sources, resume, overwrite, interrupts.check if wait else None),
    ):
        going_on = resume and folder.holds_trace()
        if going_on:
            folder.check_same_scenario(scenario)
        if not going_on or not folder.is_complete():
            with interrupts.at_once():
                simulation = _prepare(scenario, folder, going_on, device, threads, interrupts)
            if not going_on:
                folder.clear(sources)
            record_run(simulation, folder, scenario, interrupts, on_round)
        with interrupts.at_once("stopped when the run was complete; --resume gives its summary and pictures"):
            return _result(folder, pictures)


@contextmanager
def _held(
    folder: RunFolder, sources: Sequence[str | Path], resume: bool, overwrite: bool, wait: Callable[[], None] | None
) -> Iterator[None]:
    """The folder, checked and held; a complete run that is only looked at may lie where nothing can be written.

    Raises:
        OutputError: it holds what must stay, another process works on it, or it cannot be written.
    """

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


def _files_named(scenario: Scenario) -> Iterator[str]:
    """Every text of a scenario: those that name files are what the run is made from."""
    open_values: list[Any] = [scenario.model_dump()]
    while open_values:
        value = open_values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            open_values += value.values()
        elif isinstance(value, list | tuple):
            open_values += value


def record_run(
    simulation: Simulation,
    folder: RunFolder,
    scenario: Scenario,
    interrupts: Interrupts,
    on_round: Callable[[Round], None] | None = None,
) -> None:
    """Run a simulation that is ready from where its state stands to its end, and write its trace and scenario.

    Raises:
        OutputError: the folder cannot be written.
        RunInterrupted: Ctrl-C or SIGTERM; the trace is intact.
    """
    with folder.open_writer(scenario, simulation) as writer, folder.open_checkpoint(writer.identity) as checkpoint:
        folder.write_scenario(scenario)
        _run(simulation, writer, checkpoint, scenario, interrupts, on_round)


def _prepare(
    scenario: Scenario, folder: RunFolder, going_on: bool, device: str, threads: int | None, interrupts: Interrupts
) -> Simulation:
    """The simulation, at its beginning or where the run in the folder left off."""
    from wirelessfl.simulation import build_simulation, choose_plan, recorded_plan

    if going_on:
        return build_simulation(scenario, recorded_plan(folder.recorded_plan()), folder.load_state(), interrupts.check)
    return build_simulation(scenario, choose_plan(scenario.compute, device, threads), None, interrupts.check)


def _run(
    simulation: Simulation,
    writer: TraceWriter,
    checkpoint: CheckpointWriter,
    scenario: Scenario,
    interrupts: Interrupts,
    on_round: Callable[[Round], None] | None,
) -> None:
    """Run to the end with everything on disk; whatever happens, the trace is closed with its status."""
    from wirelessfl.simulation import client_values, closing_attributes, round_record

    interval = scenario.trace.model_interval

    def keep(this: Round, events: EventBatch) -> None:
        wanted = interval is not None and this.index % interval == 0
        weights = simulation.state.parameters if wanted else None
        writer.append(
            round_record(this, events if scenario.trace.events else None, weights, simulation.state.release_settings)
        )
        checkpoint.save(simulation.state.as_mapping())
        if on_round is not None:
            on_round(this)
        interrupts.check()

    def close(status: RunStatus, model: NDArray[np.float32] | None = None) -> None:
        if status not in FINISHED:
            simulation.back_to_last_round()
        checkpoint.settle()
        writer.finish(status, client_values(simulation), model, closing_attributes(simulation))

    try:
        simulation.run(keep)
        status: RunStatus = "diverged" if simulation.diverged else "complete"
        close(status, None if scenario.trace.models == "none" else simulation.state.parameters)
    except RunInterrupted as stopped:
        close("interrupted")
        raise RunInterrupted(
            f"stopped after round {simulation.state.round_index} of {scenario.rounds}; "
            "the trace is intact, continue with --resume"
        ) from stopped
    except BaseException:
        with suppress(Exception):
            close("failed")
        raise


def _result(folder: RunFolder, pictures: bool) -> Result:
    """The numbers of a finished run, and its pictures if they are wanted, from its trace alone."""
    with open_trace(folder.trace) as trace:
        with trace_errors(folder.trace):
            summary = summarise(trace, json.loads(trace.attrs["why_different"]))
        missing = [*_unwritten(folder.summary, lambda: folder.write_summary(summary))]
        if pictures:
            events = read_group(folder.trace, "events")
            with trace_errors(folder.trace):
                missing += _unwritten(folder.picture, lambda: _draw(draw_summary, trace, folder.picture))
                missing += _unwritten(folder.timeline, lambda: _draw(draw_timeline, trace, events, folder.timeline))
    return Result(folder.path, summary, tuple(missing))


def _draw(draw: Callable[..., None], *arguments: Any) -> None:
    """Draw a picture into its place, which is the last argument."""
    with replacing(arguments[-1]) as new:
        draw(*arguments[:-1], new)


def _unwritten(path: Path, write: Callable[[], None]) -> Iterator[str]:
    """Why a file is not there after it was to be written; a complete run makes no other, so that an old one serves."""
    try:
        write()
    except OutputError as error:
        if not path.exists():
            yield str(error)


@dataclass(frozen=True)
class Plan:
    """What ``wirelessfl validate`` says of a scenario.

    Attributes:
        name: the scenario.
        dimension: d.
        samples: |D|.
        clients: K.
        delta: δ of both ε.
        shortfall_probability: how often in a round the jammer lacks power.
        max_shortfall: how often it may.
        training_s: seconds after the broadcast by which a client must be ready for the slot; NaN without a deadline, or
            without a slot for all.
        pieces: of a slot over the air, or of a digital message on a link of median path gain; 1 where there is none.
        upload_s: seconds of that message; NaN without digital links.
        coherence_s: seconds in which the fastest channel keeps half of its correlation; infinite where none fades.
        forecast: what the run will cost.
        notes: what holds of the scenario and is easily overlooked.
    """

    name: str
    dimension: int
    samples: int
    clients: int
    delta: float
    shortfall_probability: float
    max_shortfall: float
    training_s: float
    pieces: int
    upload_s: float
    coherence_s: float
    forecast: Forecast
    notes: tuple[str, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """Flat, with the names of the trace and the summary."""
        own = {"name": self.name, "d": self.dimension, "samples": self.samples, "clients": self.clients}
        further = {"shortfall_probability": self.shortfall_probability, "training_s": self.training_s}
        further |= {"pieces": self.pieces, "upload_s": self.upload_s, "coherence_s": self.coherence_s}
        return {**own, "delta": self.delta, **asdict(self.forecast), **further, "notes": list(self.notes)}


def plot_topology(scenario: Scenario, path: str | Path) -> None:
    """Draw clients, base stations and what is behind them, as they are when a scenario begins.

    Args:
        scenario: what would be simulated.
        path: where the PNG goes.

    Raises:
        InputError: the data or a file of the channel cannot be used.
        OutputError: the place cannot be written.
    """
    from wirelessfl.simulation import build_simulation, plan_to_look, topology_graph

    simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    with replacing(Path(path)) as new:
        draw_topology(topology_graph(simulation.deployment), scenario.name, new)


def make_plan(scenario: Scenario) -> Plan:
    """Rehearse a scenario: everything but the training.

    Raises:
        InputError: the data cannot be used.
        InfeasibleError: a privacy target that cannot be met.
    """
    from wirelessfl.simulation import (
        build_simulation,
        coherence_s,
        jammer_shortfall,
        plan_to_look,
        rehearse,
        slot_pieces,
        training_time,
        upload_span,
    )

    simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    parts = simulation.deployment
    jammer = getattr(scenario.uplink, "jammer", None)
    span = upload_span(scenario, parts.uplink)
    return Plan(
        name=scenario.name,
        dimension=parts.learner.dimension,
        samples=parts.network.registry.total_samples,
        clients=parts.network.registry.count,
        delta=scenario.privacy.delta,
        shortfall_probability=jammer_shortfall(parts.uplink, parts.selection)[0],
        max_shortfall=jammer.max_shortfall if jammer is not None else 0.0,
        training_s=training_time(parts.wait_for, parts.uplink),
        pieces=max(slot_pieces(parts.uplink), span.pieces),
        upload_s=span.seconds,
        coherence_s=coherence_s(scenario),
        forecast=rehearse(simulation),
        notes=power_notes(scenario),
    )
