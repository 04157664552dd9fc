"""A recorded run, opened for analysis, or repeated and compared."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from wirelessfl.analysis.replay.compare import compare_traces
from wirelessfl.analysis.replay.comparison import Comparison
from wirelessfl.analysis.replay.recorded_code import recorded_code
from wirelessfl.api import record_run
from wirelessfl.errors import CheckFailed, InputError, OutputError, RunInterrupted, TraceError, precondition
from wirelessfl.folder import RunFolder
from wirelessfl.inputs import Places
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.scenario.scenario import refuse_outside_code
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.summary import summarise
from wirelessfl.trace import (
    FINISHED,
    TraceWriter,
    in_memory,
    open_trace,
    read_attributes,
    round_labels,
    scenario_digest,
    trace_errors,
)
from wirelessfl.version import package_version

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound, Simulation

OnRound = Callable[["FinishedRound"], None]


@dataclass(frozen=True, eq=False)
class Recording:
    """The rounds ``first`` to ``last`` of a trace.

    Attributes:
        path: the trace file.
        first: first round that is looked at.
        last: last round that is looked at.
        recorded: how many rounds the trace holds.
        elsewhere: where its data are looked up; None where the trace says it.
    """

    path: Path
    first: int
    last: int
    recorded: int
    elsewhere: Places | None = None

    @property
    def whole(self) -> bool:
        """Whether no round is left out."""
        return (self.first, self.last) == (1, self.recorded)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the run as a whole."""
        return read_attributes(self.path)

    @cached_property
    def dataset(self) -> xr.Dataset:
        """These rounds, in memory.

        Raises:
            TraceError: they cannot be read.
        """
        with open_trace(self.path) as trace, trace_errors(self.path):
            return in_memory(trace.sel(round=slice(self.first, self.last)), self.path)

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that ran.

        Raises:
            ScenarioError: this version does not know it.
        """
        return parse_scenario(self.attributes["scenario"], str(self.path), places=self.places)

    @property
    def places(self) -> Places:
        """Places in which the files are looked up that its scenario names: where they were, then beside the trace."""
        if self.elsewhere is not None:
            return self.elsewhere
        recorded = json.loads(self.attributes.get("data_folders", "[]"))
        return Places.beside(*(self.path.parent / folder for folder in recorded), self.path.parent)

    @property
    def why_different(self) -> list[str]:
        """The ledger's words; none where the run did not end in order."""
        return list(json.loads(self.dataset.attrs.get("why_different") or "[]"))

    def summary(self) -> dict[str, Any]:
        """The numbers of ``summary.json`` over these rounds; sums and means count them alone."""
        with trace_errors(self.path):
            return summarise(self.dataset, self.why_different)


def open_recording(
    path: Path, first: int | None = None, last: int | None = None, elsewhere: Places | None = None
) -> Recording:
    """Recording of a trace, or of some of its rounds.

    Args:
        path: the trace file, or the folder of its run.
        first: the first round wanted; by default the first there is.
        last: the last round wanted; by default the last there is.
        elsewhere: where its data are looked up; by default where they were, and beside the trace.

    Raises:
        TraceError: no readable trace of this version, or one without rounds.
        InputError: the range is empty, or reaches beyond what was recorded.
    """
    path = trace if (trace := path / "trace.h5").exists() else path
    rounds = [number for number in round_labels(path).tolist() if number >= 0]
    precondition(rounds, f"{path}: holds no round yet; continue the run with --resume", TraceError)
    recorded = rounds[-1]
    begin, end = 1 if first is None else first, recorded if last is None else last
    if begin < 1 or end > recorded or begin > end:
        raise InputError(
            f"--from {begin} --to {end}: found "
            + ("an empty range" if begin > end else "a range beyond the recording")
            + f"; allowed: rounds from 1 to {recorded}, the first not after the last"
        )
    return Recording(path, begin, end, recorded, elsewhere)


@contextmanager
def working_in(folder: RunFolder, recording: Recording) -> Iterator[None]:
    """Exclusive use of the folder of a repeated run, until its trace has been looked at.

    Raises:
        OutputError: something else than a run lies there, the recorded run does, or another process works on it.
        RunInterrupted: by the user.
    """
    folder.refuse_foreign([recording.path])
    with catch_interrupts() as interrupts, folder.held(), interrupts.at_once(_STOPPED):
        yield


def run_rounds(
    build: Callable[[Interrupts], Simulation],
    scenario: Scenario,
    folder: RunFolder,
    on_round: OnRound | None,
    stop_after: int | None = None,
) -> None:
    """Run of a scenario to its end, or to a stop on the way, with its trace in a folder.

    Args:
        build: makes the simulation; handed what lets it be interrupted.
        scenario: what the trace says that ran.
        folder: held by `working_in`, and emptied before, of an earlier replay. What simulates again cannot be resumed,
            and keeps no checkpoint.
        on_round: called with each finished round.
        stop_after: the round after which it is interrupted, unless it ends there by itself.

    Raises:
        OutputError: a run that is no replay lies in the folder.
        RunInterrupted: by the user.
    """
    far_enough = False
    with catch_interrupts() as interrupts:
        # A replay takes the place of another at most, never that of a run: that has a checkpoint or a summary.
        kept = [file.name for file in (folder.checkpoint, folder.summary) if file.exists()]
        precondition(
            not (folder.holds_trace() and kept),
            f"{folder.path}: found a run there that is not a replay ({', '.join(kept)}); choose another folder with "
            "--out",
            OutputError,
        )
        with interrupts.at_once(_STOPPED):
            simulation = build(interrupts)
        folder.clear()

        def watch(this: FinishedRound) -> None:
            nonlocal far_enough
            if on_round is not None:
                on_round(this)
            if this.index == stop_after and not simulation.state.ended_by:
                far_enough = True
                raise RunInterrupted("far enough")

        try:
            record_run(simulation, folder, scenario, interrupts, watch)
        except RunInterrupted as stopped:
            if not far_enough:
                raise RunInterrupted(_STOPPED) from stopped
        finally:
            with suppress(OSError):
                folder.checkpoint.unlink(missing_ok=True)


_STOPPED = "the replay was stopped; the recorded run is as it was"


def verify(
    recording: Recording, out: Path | None = None, on_round: OnRound | None = None, *, allow_plugins: bool = False
) -> Comparison:
    """Comparison, bit for bit, of all that a trace holds with a new run of its scenario under its plan.

    Args:
        recording: what to verify; the run is repeated from its beginning, these rounds are compared.
        out: where the repeated run is kept; by default it is thrown away.
        on_round: called with each finished round.
        allow_plugins: whether code from outside the package that the recorded scenario names may run. Where it is
            another one here, what runs are the sources that the trace holds.

    Raises:
        ScenarioError: it names such code, and that may not run.
        InfeasibleError: this machine cannot follow the recorded plan.
        CheckFailed: naming the first variable and round that differ.
    """
    from wirelessfl.assembly import build_simulation, other_data, recorded_plan

    check_consistent(recording.path)
    refuse_outside_code(recording.scenario, str(recording.path), allow_plugins)
    plan, status = recorded_plan(recording.path), recording.attributes.get("status")
    to_the_end = recording.last == recording.recorded
    # A run that has ended is repeated to its own end, yet not far beyond the recorded one.
    stop_after = recording.recorded + 1 if status in FINISHED and to_the_end else recording.last
    with ExitStack() as open_until_compared:
        if out is None:
            out = Path(open_until_compared.enter_context(tempfile.TemporaryDirectory(prefix="wirelessfl-verify-")))
        folder = RunFolder(out)
        code = recorded_code(recording.path, recording.attributes, recording.scenario, allow_plugins=allow_plugins)
        notes = open_until_compared.enter_context(code)
        open_until_compared.enter_context(working_in(folder, recording))

        def build(interrupts: Interrupts) -> Simulation:
            simulation = build_simulation(recording.scenario, plan, None, interrupts.check)
            population = simulation.deployment.learner.population
            other = other_data(recording.attributes, recording.scenario, population)
            precondition(other is None, f"{recording.path}: {other}", CheckFailed)
            return simulation

        run_rounds(
            build,
            recording.scenario,
            folder,
            on_round,
            stop_after,
        )
        if status == "running" and to_the_end and read_attributes(folder.trace)["status"] not in FINISHED:
            TraceWriter.resume(folder.trace, recording.last).close()  # as a killed process leaves it
        comparison = compare_traces(recording.path, folder.trace, recording.first, recording.last)
    comparison.notes[:0] = notes
    if comparison.difference is not None:
        stopped = [] if status in FINISHED else [f"its status is {status}: a run that was stopped is ended by --resume"]
        because = "".join(f" ({words})" for words in (*comparison.notes, *stopped))
        raise CheckFailed(f"{recording.path}: {comparison.difference} by the repeated run{because}")
    return comparison


def check_consistent(path: Path) -> None:
    """Check of a trace: rounds numbered in order, the scenario it was begun with, and the streams of this version.

    Raises:
        CheckFailed: it does not, so that no run repeats it.
        TraceError: it cannot be read.
    """
    attributes, labels = read_attributes(path), round_labels(path)
    # Rounds count from 1; a row without a number is one that a killed process did not commit.
    committed, unfinished = int(np.count_nonzero(labels >= 0)), attributes.get("status") == "running"
    expected = np.where(np.arange(len(labels)) < committed, np.arange(1, len(labels) + 1), -1)
    for row in np.flatnonzero((labels != expected) | ((labels < 0) & (not unfinished))).tolist():
        raise CheckFailed(f"{path}: round, row {row}: found {int(labels[row])} in the trace, expected {row + 1}")
    recorded, text = attributes.get("scenario_digest"), attributes.get("scenario")
    precondition(
        recorded is None or (isinstance(text, str) and scenario_digest(text) == recorded),
        f"{path}: the scenario it holds is not the one it was begun with: its digest differs",
        CheckFailed,
    )
    streams = attributes.get("stream_version", STREAM_VERSION)
    if streams != STREAM_VERSION:
        raise CheckFailed(
            f"{path}: attribute stream_version: found {streams!r} in the trace "
            f"(wirelessfl {attributes.get('package_version')}), expected {STREAM_VERSION} (wirelessfl "
            f"{package_version()}): the same seed gives other numbers here; verify it with the version that recorded it"
        )
