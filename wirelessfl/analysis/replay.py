"""A recorded run, opened to be looked at again, repeated, or asked for another ε."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.analysis.compare import Comparison, compare_traces
from wirelessfl.analysis.ledger import recorded_ledger
from wirelessfl.api import record_run
from wirelessfl.errors import CheckFailed, InfeasibleError, InputError, OutputError, RunInterrupted, TraceError
from wirelessfl.folder import RunFolder
from wirelessfl.interrupts import Interrupts, catch_interrupts
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.scenario.outside import refuse_outside_code
from wirelessfl.summary import summarise
from wirelessfl.trace import FINISHED, open_trace, read_attributes
from wirelessfl.trace.failures import trace_errors
from wirelessfl.trace.reader import in_memory

if TYPE_CHECKING:
    import xarray as xr

    from wirelessfl.learning import ExecutionPlan
    from wirelessfl.simulation import Round, Simulation

OnRound = Callable[["Round"], None]


@dataclass(frozen=True, eq=False)
class Recording:
    """The rounds ``first`` to ``last`` of a trace.

    Attributes:
        path: the trace file.
        first: first round that is looked at.
        last: last round that is looked at.
        dataset: these rounds, in memory.
        recorded: how many rounds the trace holds.
    """

    path: Path
    first: int
    last: int
    dataset: xr.Dataset
    recorded: int

    @property
    def whole(self) -> bool:
        """Whether no round is left out."""
        return (self.first, self.last) == (1, self.recorded)

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that ran.

        Raises:
            ScenarioError: this version does not know it.
        """
        return parse_scenario(self.dataset.attrs["scenario"], str(self.path))

    @property
    def why_different(self) -> list[str]:
        """The ledger's words; none where the run did not end in order."""
        words: list[str] = json.loads(self.dataset.attrs.get("why_different") or "[]")
        return words

    def summary(self) -> dict[str, Any]:
        """The numbers of ``summary.json`` over these rounds; sums and means count them alone."""
        with trace_errors(self.path):
            return summarise(self.dataset, self.why_different)


def open_recording(path: Path, first: int | None = None, last: int | None = None) -> Recording:
    """Read a trace, or some of its rounds.

    Args:
        path: the trace file.
        first: the first round wanted; by default the first there is.
        last: the last round wanted; by default the last there is.

    Raises:
        TraceError: no readable trace of this version, or one without rounds.
        InputError: the range is empty, or reaches beyond what was recorded.
    """
    with open_trace(path) as trace, trace_errors(path):
        rounds = trace["round"].values
        if not len(rounds):
            raise TraceError(f"{path}: holds no round yet; continue the run with --resume")
        recorded = int(rounds[-1])
        begin, end = 1 if first is None else first, recorded if last is None else last
        if begin < 1 or end > recorded or begin > end:
            raise InputError(
                f"--from {begin} --to {end}: found "
                + ("an empty range" if begin > end else "a range beyond the recording")
                + f"; allowed: rounds from 1 to {recorded}, the first not after the last"
            )
        return Recording(path, begin, end, in_memory(trace.sel(round=slice(begin, end)), path), recorded)


def recorded_execution(path: Path) -> ExecutionPlan:
    """The plan under which a trace was computed.

    Raises:
        InfeasibleError: this machine, or this version, cannot follow it.
    """
    from wirelessfl.simulation import recorded_plan

    text = read_attributes(path).get("plan")
    if not text:
        raise InfeasibleError(f"{path}: does not say how the run was computed, so that it cannot be repeated")
    try:
        return recorded_plan(json.loads(text))
    except (TypeError, ValueError) as error:
        raise InfeasibleError(f"{path}: this version cannot follow the recorded plan {text}: {error}") from error


def run_rounds(
    build: Callable[[Interrupts], Simulation],
    scenario: Scenario,
    rounds: int,
    folder: RunFolder,
    on_round: OnRound | None,
) -> None:
    """Run a scenario for at most ``rounds`` rounds and leave its trace in a folder.

    Args:
        build: makes the simulation; handed what lets it be interrupted.
        scenario: what the trace says that ran.
        rounds: where to stop, unless the scenario does earlier. The scenario itself keeps its M, by which noise and
            schedules are set.
        folder: emptied before, of an earlier replay. What simulates again cannot be resumed, and keeps no checkpoint.
        on_round: called with each finished round.

    Raises:
        OutputError: a run that is no replay lies in the folder, or one is in progress there.
        RunInterrupted: by the user.
    """
    with catch_interrupts() as interrupts, folder.held():
        _refuse_original(folder)
        with interrupts.at_once(_STOPPED):
            simulation = build(interrupts)
        simulation.stop = replace(simulation.stop, rounds=min(rounds, scenario.rounds))
        folder.clear()
        try:
            record_run(simulation, folder, scenario, interrupts, on_round)
        except RunInterrupted as stopped:
            raise RunInterrupted(_STOPPED) from stopped
        finally:
            with suppress(OSError):
                folder.checkpoint.unlink(missing_ok=True)


_STOPPED = "the replay was stopped; the recorded run is as it was"


def _refuse_original(folder: RunFolder) -> None:
    """A replay takes the place of another at most, never that of a run: that has a checkpoint or a summary."""
    kept = [file.name for file in (folder.checkpoint, folder.summary) if file.exists()]
    if folder.holds_trace() and kept:
        raise OutputError(
            f"{folder.path}: found a run that is no replay there ({', '.join(kept)}); choose another folder with --out"
        )


def verify(
    recording: Recording, out: Path | None = None, on_round: OnRound | None = None, *, allow_plugins: bool = False
) -> Comparison:
    """Run the recorded scenario again under the recorded plan, its device included, and compare numbers bit for bit.

    Args:
        recording: what to verify; the run is repeated from its beginning, these rounds are compared.
        out: where the repeated run is kept; by default it is thrown away.
        on_round: called with each finished round.
        allow_plugins: whether code from outside the package that the recorded scenario names may run.

    Raises:
        ScenarioError: it names such code, and that may not run.
        InfeasibleError: this machine cannot follow the recorded plan.
        CheckFailed: naming the first variable and round that differ.
    """
    from wirelessfl.simulation import build_simulation

    refuse_outside_code(recording.scenario, str(recording.path), allow_plugins)
    plan = recorded_execution(recording.path)
    with _folder(out) as folder:
        folder.refuse_foreign([recording.path])
        run_rounds(
            lambda interrupts: build_simulation(recording.scenario, plan, None, interrupts.check),
            recording.scenario,
            _rounds_to_repeat(recording),
            folder,
            on_round,
        )
        comparison = compare_traces(recording.path, folder.trace, recording.first, recording.last)
    if comparison.difference is not None:
        raise CheckFailed(f"{recording.path}: {comparison.difference} by the repeated run{_other_versions(recording)}")
    return comparison


def _rounds_to_repeat(recording: Recording) -> int:
    """Where to stop: where the recording does, or never where its scenario ended it, as it then does again."""
    whole = recording.dataset.attrs["status"] in FINISHED and recording.last == recording.recorded
    return recording.scenario.rounds if whole else recording.last


@contextmanager
def _folder(out: Path | None) -> Iterator[RunFolder]:
    if out is not None:
        yield RunFolder(out)
        return
    with tempfile.TemporaryDirectory(prefix="wirelessfl-verify-") as temporary:
        yield RunFolder(Path(temporary))


def _other_versions(recording: Recording) -> str:
    """A likely reason why bits differ, if there is one."""
    import torch

    from wirelessfl.version import package_version

    here = {"torch_version": str(torch.__version__), "package_version": package_version()}
    other = [
        f"{name.removesuffix('_version')} {recording.dataset.attrs[name]}, here {value}"
        for name, value in here.items()
        if recording.dataset.attrs[name] != value
    ]
    return f" (recorded with {'; '.join(other)})" if other else ""


@dataclass(frozen=True)
class LedgerRow:
    """Both ε of a recorded run under one statement.

    Attributes:
        delta: δ.
        accountant: what composes subsampled releases.
        epsilon_published: by the paper's theorem, worst client.
        epsilon_accounted: of what really ran, worst client.
        why_different: why they differ.
    """

    delta: float
    accountant: str
    epsilon_published: float
    epsilon_accounted: float
    why_different: list[str]


def recompute_privacy(recording: Recording, deltas: tuple[float, ...], accountant: str | None) -> list[LedgerRow]:
    """Both ε of the whole run at other δ or by another accountant, from the trace alone.

    Args:
        recording: all rounds of a trace.
        deltas: the δ; none stands for the recorded one.
        accountant: pld, rdp, gdp or zcdp; None for the default.

    Raises:
        InputError: a δ outside (0, 1), or not all rounds are looked at.
        TraceError: the run did not end in order.
    """
    if not recording.whole:
        raise InputError("--from/--to: the ledger is that of the whole run; allowed with --delta or --accountant: none")
    rows = []
    changes = {} if accountant is None else {"accountant": accountant}
    for delta in deltas or (float(recording.dataset.attrs["delta"]),):
        if not 0 < delta < 1:
            raise InputError(f"--delta: found {delta:g}; allowed: a number between 0 and 1")
        try:
            ledger = recorded_ledger(recording.path, delta=delta, **changes)
            published, accounted = ledger.epsilon_published(), ledger.epsilon_accounted()
        except ValueError as error:
            raise InputError(f"--accountant {accountant}: {error}") from error
        statement = ledger.statement
        rows.append(LedgerRow(delta, statement.accountant, published, accounted, ledger.why_different()))
    return rows
