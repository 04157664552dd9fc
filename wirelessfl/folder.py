"""The folder of one run: which files lie there, and what may happen to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import OutputError, ScenarioError, TraceError, WirelessFLError
from wirelessfl.locks import RUN_LOCK, lock_folder
from wirelessfl.outputs import PARTIAL, refuse_inputs, write_text
from wirelessfl.scenario import Scenario, differing_keys, dump_scenario, parse_scenario
from wirelessfl.summary import to_json
from wirelessfl.trace import (
    FINISHED,
    CheckpointWriter,
    RunIdentity,
    TraceWriter,
    continued_identity,
    has_checkpoint,
    load_checkpoint,
    new_checkpoint,
    open_trace,
    read_attributes,
)

if TYPE_CHECKING:
    from wirelessfl.simulation import Simulation, SimulationState


_TABLES = ("rounds", "slots", "clients", "events")
_EXPORTED = {f"{table}.{form}" for table in _TABLES for form in ("csv", "parquet")} | {"trace.nc", "timeline.json"}
_BESIDE_A_RUN = {RUN_LOCK, "tensorboard", "replay", "report.html", "audit.png", "paired.png", "error.txt"} | _EXPORTED
"""What commands leave in the folder of a run and a new run does not touch."""
_MAX_NAMED = 5


class RunFolder:
    """trace.h5, checkpoint.bin, scenario.yaml, summary.json, summary.png and timeline.png of one run."""

    def __init__(self, path: Path) -> None:
        """The folder at ``path``, which need not exist yet."""
        self.path = path
        self.trace = path / "trace.h5"
        self.checkpoint = path / "checkpoint.bin"
        self.scenario = path / "scenario.yaml"
        self.summary = path / "summary.json"
        self.picture = path / "summary.png"
        self.timeline = path / "timeline.png"

    @contextmanager
    def held(self, wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Be the only process that works on the run, from before anything is touched.

        Args:
            wait: called again and again while another process works on it; None to refuse then.

        Raises:
            OutputError: another process works on it, or the folder cannot be written.
        """
        with lock_folder(self.path, RUN_LOCK, wait=wait):
            yield

    @property
    def files(self) -> tuple[Path, ...]:
        """What a run writes and a new one replaces, the trace last: without it, nothing here counts as a run."""
        return (self.checkpoint, self.scenario, self.summary, self.picture, self.timeline, self.trace)

    def holds_trace(self) -> bool:
        """Whether a run lies here already.

        Raises:
            OutputError: there cannot be such a folder.
        """
        try:
            return self.trace.exists()
        except OSError as error:  # such as a name that is too long
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error

    def refuse_if_taken(self) -> None:
        """A run that lies here is not replaced unless that was asked for.

        Raises:
            OutputError: a trace lies here.
        """
        if self.holds_trace():
            raise OutputError(
                f"{self.path} holds a trace already; use --resume to continue it, "
                "--overwrite to replace it, or --out for another folder"
            )

    def refuse_foreign(self, inputs: Iterable[str | Path] = ()) -> None:
        """A new run begins where nothing lies but what a run made, so that no file of the user's is lost.

        Args:
            inputs: files that the run is made from.

        Raises:
            OutputError: naming what else lies here, or the input that would be written over.
        """
        refuse_inputs(self.files, inputs)
        foreign = self._foreign()
        if foreign:
            more = f" and {len(foreign) - _MAX_NAMED} more" if len(foreign) > _MAX_NAMED else ""
            raise OutputError(
                f"{self.path}: found what no run has written ({', '.join(foreign[:_MAX_NAMED])}{more}); allowed: an "
                "empty or a new folder, or one with a run and nothing else; choose another with --out"
            )

    def _foreign(self) -> list[str]:
        try:
            there = sorted(entry.name for entry in self.path.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error
        known = set(_BESIDE_A_RUN)
        if self.trace.name in there:
            known |= {file.name for file in self.files}
            if self.scenario.name in there and not self._wrote_scenario():
                known.remove(self.scenario.name)
        known |= {file.name for file in self._partial()}
        return [name for name in there if name not in known and not name.startswith((PARTIAL, ".nfs"))]

    def _partial(self) -> tuple[Path, Path]:
        """Where a trace and a checkpoint are written before they have their names."""
        return self.path / f".{self.trace.name}.partial", new_checkpoint(self.checkpoint)

    def _wrote_scenario(self) -> bool:
        """Whether scenario.yaml is what the run wrote: what its trace says or, where that is damaged, as runs write."""
        try:
            text = self.scenario.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return False
        try:
            if text == read_attributes(self.trace)["scenario"]:
                return True
        except (WirelessFLError, KeyError):
            pass
        try:
            return text == dump_scenario(parse_scenario(text))
        except WirelessFLError:
            return False

    def clear(self, inputs: Iterable[str | Path] = ()) -> None:
        """Make the folder ready for a new run: take away what is left of an older one, and nothing else.

        Args:
            inputs: files that the run is made from.

        Raises:
            OutputError: something else lies here, an input would be lost, or the place cannot be written.
        """
        self.refuse_foreign(inputs)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for file in (*self.path.glob(f"{PARTIAL}*"), *self._partial(), *self.files):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be written: {error.strerror}") from error

    def check_same_scenario(self, scenario: Scenario) -> None:
        """A run is continued with the scenario it began with.

        Raises:
            ScenarioError: naming the keys that differ.
        """
        recorded = parse_scenario(read_attributes(self.trace)["scenario"], str(self.trace))
        different = differing_keys(recorded, scenario)
        if different:
            raise ScenarioError(
                f"{self.trace} was begun with another scenario; --resume needs the same one. Different keys:\n  "
                + "\n  ".join(different)
            )

    def is_complete(self) -> bool:
        """Whether the run here has ended."""
        return read_attributes(self.trace)["status"] in FINISHED

    def load_state(self) -> SimulationState | None:
        """The state at the last round that is safe on disk; None before the first.

        Raises:
            TraceError: the run cannot be continued to the same bits, or the checkpoint is not one of it.
        """
        from wirelessfl.simulation import SimulationState

        identity = continued_identity(self.trace, read_attributes(self.trace))
        if not has_checkpoint(self.checkpoint):
            return None
        values = load_checkpoint(self.checkpoint, identity)
        try:
            state = SimulationState.from_mapping(values)
        except ValueError as error:
            raise TraceError(
                f"{self.checkpoint}: no state of a run, though its checksum is right ({error}); "
                "run again with --overwrite, or into another folder with --out"
            ) from error
        self._check_same_round(state)
        return state

    def _check_same_round(self, state: SimulationState) -> None:
        """The state is that at the end of a round of the trace.

        Raises:
            TraceError: the trace does not hold that round, or holds other numbers of it.
        """
        from wirelessfl.simulation import seconds

        with open_trace(self.trace) as trace:
            rounds = trace.sizes["round"]
            if not 1 <= state.round_index <= rounds:
                difference = f"round {state.round_index} there, {rounds} rounds in the trace"
            else:
                row = trace.isel(round=state.round_index - 1)
                numbers = {
                    "sim_time": seconds(state.clock),
                    "wall_time": state.wall_time,
                    "model_version": state.model_version,
                }
                difference = "; ".join(
                    f"{name} after round {state.round_index} {number!r} there, {row[name].item()!r} in the trace"
                    for name, number in numbers.items()
                    if row[name].item() != number
                )
        if difference:
            raise TraceError(
                f"{self.checkpoint}: does not belong to the trace beside it ({difference}); "
                "run again with --overwrite, or into another folder with --out"
            )

    def write_scenario(self, scenario: Scenario) -> None:
        """Write the resolved scenario; a run that goes on keeps the file that is there.

        Raises:
            OutputError: the place cannot be written.
        """
        if not self.scenario.exists():
            write_text(self.scenario, dump_scenario(scenario))

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json.

        Raises:
            OutputError: the place cannot be written.
        """
        write_text(self.summary, to_json(summary))

    def open_writer(self, scenario: Scenario, simulation: Simulation) -> TraceWriter:
        """Begin the trace, or continue the one that is there after the last round of the simulation's state."""
        from wirelessfl.assembly import trace_header

        if self.holds_trace():
            return TraceWriter.resume(self.trace, simulation.state.round_index)
        return TraceWriter.create(self.trace, trace_header(scenario, simulation), simulation.slots)

    def open_checkpoint(self, identity: RunIdentity) -> CheckpointWriter:
        """What keeps the state of the run on disk, in place of the one before."""
        return CheckpointWriter(self.checkpoint, identity)
