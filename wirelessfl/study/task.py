"""Workers of a study: their tasks, messages and pools, and the claim of a study on its folder."""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from wirelessfl import plugins
from wirelessfl.errors import RunInterrupted, WirelessFLError, command_line_words, precondition
from wirelessfl.inputs import Places
from wirelessfl.outputs import STUDY_LOCK, lock_folder
from wirelessfl.trace import FileState, trusted_state

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound

RunEnd = Literal["complete", "failed", "interrupted"]

REPORT_INTERVAL_S = 0.5
MAX_DEATHS = 3
"""A run during which so many workers died is recorded as failed; until then another worker continues it."""
GRACE_S = 30.0
"""Longest time of a worker to finish its round when the study stops; a trace survives a kill as well."""


@dataclass(frozen=True)
class Claim:
    """Claim of a study on its folder, in a file that workers on other machines read as well.

    Attributes:
        file: The file of the claim.
        token: Its first line while the study runs. A worker that finds another one stops: its study was stopped, or
            was killed and continued by another process.
    """

    file: Path
    token: str

    def holds(self) -> bool:
        """Whether the study still runs."""
        try:
            return self.file.read_text(encoding="utf-8").partition("\n")[0] == self.token
        except (OSError, UnicodeDecodeError):
            return False

    def release(self) -> None:
        """End of the study: its workers stop after their rounds in progress."""
        if self.holds():
            holder = self.file.read_text(encoding="utf-8").partition("\n")[2]
            with suppress(OSError):  # on a full disk the file is empty then, which says the same
                self.file.write_text(f"released\n{holder}", encoding="utf-8")


@contextmanager
def claim_folder(folder: Path) -> Iterator[Claim]:
    """Claim of a folder for the duration of a study.

    Raises:
        OutputError: another study goes on there, or it cannot be written.
    """
    token = secrets.token_hex(8)
    with lock_folder(folder.resolve(), STUDY_LOCK, token, what="a study") as path:
        claim = Claim(path, token)
        try:
            yield claim
        finally:
            claim.release()


@dataclass(frozen=True)
class Task:
    """Task of a worker: one run, in plain values.

    Attributes:
        run: Its id.
        scenario: The resolved scenario as YAML.
        folder: Absolute path of its folder, which every worker can reach.
        device: "auto", "cpu" or "cuda".
        threads: Torch threads; None for those of the scenario.
        claim_file: File of the study's claim.
        claim_token: Its first line while the study runs.
        plugin_folders: Folders of modules that the scenario names, searched after everything that is installed.
        data_folders: Folders in which the files are looked up that the scenario names.
        source_digests: Digests of the code from outside that the scenario calls, as the study began with it.
    """

    run: str
    scenario: str
    folder: str
    device: str
    threads: int | None
    claim_file: str
    claim_token: str
    plugin_folders: tuple[str, ...] = ()
    data_folders: tuple[str, ...] = ()
    source_digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress:
    """Progress of a run.

    Attributes:
        run: Its id.
        round: Rounds on disk, also those of an earlier attempt.
        rounds: Rounds it has at most.
        test_accuracy: After the last evaluated round; NaN before.
    """

    run: str
    round: int
    rounds: int
    test_accuracy: float


@dataclass(frozen=True)
class Outcome:
    """End of a run.

    Attributes:
        run: Its id.
        status: complete, failed, or interrupted (and to be continued).
        error: Reason of a failure.
        summary: Content of its summary.json, if it is complete.
        trace_state: Of the file of its trace, where the worker trusts it.
    """

    run: str
    status: RunEnd
    error: str | None = None
    summary: dict[str, Any] | None = None
    trace_state: FileState | None = None


Message = Progress | Outcome


class Workers(AbstractContextManager["Workers"], Protocol):
    """Pool of workers; as a context manager it stops all work on leaving, and traces stay intact."""

    def submit(self, task: Task) -> None:
        """Queue a task."""

    def next_message(self, timeout: float) -> Message | None:
        """The next message, or None after ``timeout`` seconds without one.

        Raises:
            InfeasibleError: no worker is left.
        """


# A simulation sets torch's threads for the whole process, so a process computes one run at a time.
_ONE_AT_A_TIME = threading.Lock()


def run_task(task: Task, report: Callable[[Progress], None], *, anew: bool = False) -> Outcome:
    """Outcome of a run, which continues an earlier attempt; every error becomes an outcome.

    Args:
        task: The task.
        report: Called with the progress at most every ``REPORT_INTERVAL_S``.
        anew: Whether code from outside is imported again, for a process that may have loaded another text of it.
    """
    from wirelessfl.api import simulate
    from wirelessfl.scenario import parse_scenario
    from wirelessfl.study.sources import refuse_other_sources
    from wirelessfl.summary import to_json

    folder = Path(task.folder)
    try:
        tops, places_of_code = plugins.tops_of(task.source_digests), [Path(place) for place in task.plugin_folders]
        code = plugins.RunCode(tops if anew else (), places_of_code)
        with _ONE_AT_A_TIME, command_line_words(), code.in_use():  # whoever asked for the study says it his way
            (folder / "error.txt").unlink(missing_ok=True)
            for place in reversed(places_of_code):
                plugins.search(place)
            places = Places.beside(*map(Path, task.data_folders))
            scenario = parse_scenario(task.scenario, f"run {task.run}", places=places)
            refuse_other_sources(scenario, task.source_digests)
            # No pictures for up to thousands of runs; a report of a run draws them from its trace.
            result = simulate(
                scenario,
                folder,
                device=task.device,
                threads=None if (folder / "trace.h5").exists() else task.threads,  # a run goes on with its own
                resume=True,
                pictures=False,
                wait=True,  # an earlier worker may still be finishing its round there
                on_round=_watcher(task, scenario.rounds, report),
            )
            result.require_files()
    except RunInterrupted:
        return Outcome(task.run, "interrupted")
    except WirelessFLError as error:
        with command_line_words():
            return Outcome(task.run, "failed", plugins.refusal(error))
    except plugins.RAISED as error:
        return Outcome(task.run, "failed", plugins.failure(error) or _unexpected(error, folder))
    return Outcome(
        task.run, "complete", summary=json.loads(to_json(result.summary)), trace_state=trusted_state(result.trace)
    )


def _watcher(task: Task, rounds: int, report: Callable[[Progress], None]) -> Callable[[FinishedRound], None]:
    # Function to call after every round: reports, and stops when the study has stopped
    claim = Claim(Path(task.claim_file), task.claim_token)
    due, accuracy = time.monotonic(), math.nan

    def check() -> None:
        precondition(claim.holds(), "the study has stopped", RunInterrupted)

    def on_round(this: FinishedRound) -> None:
        nonlocal due, accuracy
        if not math.isnan(this.values["test_accuracy"]):
            accuracy = this.values["test_accuracy"]
        if time.monotonic() >= due:
            due = time.monotonic() + REPORT_INTERVAL_S
            report(Progress(task.run, this.index, rounds, accuracy))
            check()

    check()
    return on_round


def _unexpected(error: BaseException, folder: Path) -> str:
    # One line on an unexpected error, whose traceback goes to error.txt beside the trace
    text = f"{type(error).__name__}: {error}"
    with suppress(OSError):
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        text = f"{text} (see {folder / 'error.txt'})"
    return text
