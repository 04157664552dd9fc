"""Folder of one run: its files, and the checks before they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wirelessfl.errors import OutputError, ScenarioError, TraceError, WirelessFLError, precondition
from wirelessfl.outputs import PARTIAL, RUN_LOCK, lock_folder, refuse_foreign, refuse_inputs, writing
from wirelessfl.scenario import Scenario, differing_keys, dump_scenario, parse_scenario
from wirelessfl.scenario.scenario import outside_sources
from wirelessfl.summary.run_figures import SUMMARY, TIMELINE
from wirelessfl.summary.style import figure_files
from wirelessfl.trace import (
    FINISHED,
    continued_identity,
    has_checkpoint,
    load_checkpoint,
    partial_checkpoints,
    read_attributes,
    read_values,
    recorded_sources,
)

if TYPE_CHECKING:
    from wirelessfl.simulation import SimulationState


# Files that other commands leave in the folder of a run
_BESIDE_A_RUN = {
    *(f"{table}.{form}" for table in ("rounds", "slots", "clients", "events") for form in ("csv", "parquet")),
    "trace.nc",
    "timeline.json",
    "tensorboard",
    "replay",
    "report.html",
    *(file.name for figure in ("audit", "paired") for file in figure_files(Path(figure))),
    "error.txt",
    RUN_LOCK,
}


class RunFolder:
    """Folder of one run: trace.h5, checkpoint.bin, scenario.yaml, summary.json, and summary and timeline as figures.

    Args:
        path: The folder, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trace = path / "trace.h5"
        self.checkpoint = path / "checkpoint.bin"
        self.scenario = path / "scenario.yaml"
        self.summary = path / "summary.json"
        self.figures = tuple(file for name in (SUMMARY, TIMELINE) for file in figure_files(path / name))

    def held(self, wait: Callable[[], None] | None = None) -> AbstractContextManager[Path]:
        """Exclusive lock on the run.

        Args:
            wait: called repeatedly while another process holds it; None to refuse then.

        Raises:
            OutputError: another process works on it, or the folder cannot be written.
        """
        return lock_folder(self.path, RUN_LOCK, wait=wait)

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that a run writes and a new one replaces, the trace last: without it the others count as foreign."""
        return (self.checkpoint, self.scenario, self.summary, *self.figures, self.trace)

    def holds_trace(self) -> bool:
        """Whether the folder has a trace.

        Raises:
            OutputError: there cannot be such a folder.
        """
        with writing(self.path):  # the name may be too long
            return self.trace.exists()

    def refuse_if_taken(self) -> None:
        """Refusal of a folder with a trace.

        Raises:
            OutputError: a trace lies here.
        """
        precondition(
            not self.holds_trace(),
            f"{self.path} holds a trace already; use --resume to continue it, "
            "--overwrite to replace it, or --out for another folder",
            OutputError,
        )

    def refuse_foreign(self, inputs: Iterable[str | Path] = ()) -> None:
        """Refusal of a folder with files that no run wrote.

        Args:
            inputs: files that the run is made from.

        Raises:
            OutputError: naming what else lies here, or the input that would be written over.
        """
        refuse_inputs(self.files, inputs)
        refuse_foreign(self.path, self._known, "run", "an empty or a new folder, or one with a run and nothing else")

    def _known(self, there: list[str]) -> set[str]:
        written = {file.name for file in self.files} if self.trace.name in there else set()
        if written and self.scenario.name in there and not self._wrote_scenario():
            written.remove(self.scenario.name)
        return _BESIDE_A_RUN | {file.name for file in self._partial()} | written

    def _partial(self) -> tuple[Path, ...]:
        return self.path / f".{self.trace.name}.partial", *partial_checkpoints(self.checkpoint)

    def _wrote_scenario(self) -> bool:
        # Whether scenario.yaml equals the trace's or, where that is damaged, has the form that runs write
        with suppress(OSError, UnicodeDecodeError, WirelessFLError):
            text = self.scenario.read_text(encoding="utf-8")
            with suppress(WirelessFLError, KeyError):
                if text == read_attributes(self.trace)["scenario"]:
                    return True
            return text == dump_scenario(parse_scenario(text))
        return False

    def clear(self, inputs: Iterable[str | Path] = ()) -> None:
        """Removal of all files of an earlier run, in a folder that is made where it is missing.

        Args:
            inputs: files that the run is made from.

        Raises:
            OutputError: something else lies here, an input would be lost, or the place cannot be written.
        """
        self.refuse_foreign(inputs)
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for file in (*self.path.glob(f"{PARTIAL}*"), *self._partial(), *self.files):
                file.unlink(missing_ok=True)

    def check_same_scenario(self, scenario: Scenario) -> None:
        """Refusal to continue a run with another scenario.

        Raises:
            ScenarioError: naming the keys that differ.
        """
        recorded = parse_scenario(read_attributes(self.trace)["scenario"], str(self.trace))
        different = differing_keys(recorded, scenario)
        words = f"{self.trace} was begun with another scenario; --resume needs the same one. Different keys:"
        precondition(not different, "\n  ".join([words, *different]), ScenarioError)

    def check_same_sources(self, scenario: Scenario) -> None:
        """Refusal to continue a run, or to answer from one, whose code from outside was another than that here.

        Raises:
            ScenarioError: naming the files that differ, or of which nobody knows.
        """
        recorded, here = recorded_sources(self.trace), outside_sources(scenario)
        if here is None:
            return
        found = f"{self.trace}: was recorded with other code from outside than is here, of which its numbers are"
        different = ["the trace holds none of it"] if recorded is None else recorded.differences(here)
        precondition(
            not different,
            "\n  ".join([f"{found}. What is not the same:", *different])
            + "\nPut the recorded files back (`wirelessfl pack` takes them out of the trace), run again with "
            "--overwrite, or into another folder with --out",
            ScenarioError,
        )

    def is_complete(self) -> bool:
        """Whether the run has ended by itself."""
        return read_attributes(self.trace)["status"] in FINISHED

    def load_state(self) -> SimulationState | None:
        """State of the simulation after the last round on disk; None before the first.

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
        # Refusal of a state of a round that the trace lacks or has other numbers of
        from wirelessfl.simulation import seconds

        with read_values(self.trace) as trace:
            rounds = trace.sizes["round"]
            if not 1 <= state.round_index <= rounds:
                difference = f"round {state.round_index} there, {rounds} rounds in the trace"
            else:
                numbers = {
                    "sim_time": seconds(state.clock),
                    "wall_time": state.wall_time,
                    "model_version": state.model_version,
                }
                recorded = {name: trace[name].values[state.round_index - 1].item() for name in numbers}
                difference = "; ".join(
                    f"{name} after round {state.round_index} {number!r} there, {recorded[name]!r} in the trace"
                    for name, number in numbers.items()
                    if recorded[name] != number
                )
        precondition(
            not difference,
            f"{self.checkpoint}: does not belong to the trace beside it ({difference}); "
            "run again with --overwrite, or into another folder with --out",
            TraceError,
        )
