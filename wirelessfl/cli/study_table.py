"""What a study looks like on a terminal: a live table of its points on stderr, the results on stdout."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from wirelessfl.cli.console import duration_text
from wirelessfl.cli.terminal import open_console
from wirelessfl.study import Message, Outcome, Progress, Study, StudyDesign
from wirelessfl.study.bands import band
from wirelessfl.summary import epsilon_text

_REFRESH_S = 0.25


@dataclass
class _Point:
    """What is known of a point: its runs by how they stand."""

    labels: list[str]
    runs: int = 0
    running: dict[str, Progress] = field(default_factory=dict)
    accuracy: list[float] = field(default_factory=list)
    failed: int = 0

    def cells(self) -> list[str]:
        """One row of the table."""
        ended = len(self.accuracy)
        finished = f"{band([[value] for value in self.accuracy]).text(0, percent=True)}" if ended else ""
        now = ", ".join(_running_text(progress) for progress in self.running.values())
        failed = f", {self.failed} failed" if self.failed else ""
        return [*self.labels, f"{ended}/{self.runs}{failed}", finished, now]


def _running_text(progress: Progress) -> str:
    accuracy = "" if math.isnan(progress.test_accuracy) else f" at {progress.test_accuracy:.1%}"
    return f"round {progress.round}/{progress.rounds}{accuracy}"


class LiveTable:
    """Keeps count of the messages of a study and draws the table of its points."""

    def __init__(self, design: StudyDesign, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing has run yet."""
        self._names = [factor.short_name for factor in design.factors]
        self._rounds = {run.id: run.scenario.rounds for run in design.runs}
        self._levels = {run.id: run.levels for run in design.runs}
        self._clock = clock
        self._points: dict[tuple[int, ...], _Point] = {}
        for run in design.runs:
            labels = [factor.label(level) for factor, level in zip(design.factors, run.levels, strict=True)]
            self._points.setdefault(run.levels, _Point(labels)).runs += 1
        self._begun_at: dict[str, int] = {}  # rounds that were there when a run was first heard of
        self._done: dict[str, int] = {}
        self._ended: set[str] = set()
        self._first: float | None = None

    def note(self, message: Message) -> None:
        """Take in a message."""
        point = self._points[self._levels[message.run]]
        if isinstance(message, Progress):
            self._first = self._first or self._clock()
            self._begun_at.setdefault(message.run, message.round)
            self._done[message.run] = message.round
            point.running[message.run] = message
            return
        self._ended.add(message.run)
        self._done[message.run] = self._rounds[message.run]
        point.running.pop(message.run, None)
        if message.status == "complete" and message.summary is not None:
            accuracy = message.summary["test_accuracy"]
            point.accuracy.append(math.nan if accuracy is None else accuracy)
        else:
            point.failed += 1

    def seconds_left(self) -> float:
        """What is left, at the pace so far: rounds a second of all workers together; NaN before there is a pace."""
        computed = sum(self._done[run] - begun for run, begun in self._begun_at.items())
        if self._first is None or computed <= 0:
            return math.nan
        left = sum(self._rounds.values()) - sum(self._done.values())
        return left * (self._clock() - self._first) / computed

    def status(self) -> str:
        """The study in one line."""
        running = sum(len(point.running) for point in self._points.values())
        failed = sum(point.failed for point in self._points.values())
        left = self.seconds_left()
        words = [f"{len(self._ended)} of {len(self._rounds)} runs", f"{running} running"]
        words += [f"{failed} failed"] if failed else []
        words += [f"about {duration_text(round(left))} left"] if left >= 0.5 else []
        return ", ".join(words)

    def render(self, height: int) -> Group:
        """The table in at most ``height`` lines, points that are being computed first where not all fit."""
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in (*self._names, "runs", "test accuracy", "now"):
            table.add_column(name, no_wrap=True)
        points = list(self._points.values())
        room = max(1, height - 3)
        if len(points) > room:
            wanted = sorted(range(len(points)), key=lambda at: (not points[at].running, not points[at].accuracy, at))
            points = [points[at] for at in sorted(wanted[:room])]
        for point in points:
            table.add_row(*point.cells())
        return Group(table, Text(self.status(), style="dim"))


@contextmanager
def study_progress(design: StudyDesign, *, quiet: bool = False) -> Iterator[Callable[[Message], None]]:
    """Progress on stderr, a live table or, where that is no terminal, a line for each run; yields what to call."""
    console = open_console(stderr=True)
    table = LiveTable(design)
    if quiet:
        yield lambda _: None
    elif not console.is_terminal:
        runs = {run.id: run for run in design.runs}

        def on_message(message: Message) -> None:
            table.note(message)
            if isinstance(message, Outcome):
                console.print(
                    f"{_outcome_text(message)} ({design.describe(runs[message.run])}); {table.status()}",
                    soft_wrap=True,
                    markup=False,
                    highlight=False,
                )

        yield on_message
    else:
        yield from _live(table, console)


def _live(table: LiveTable, console: Console) -> Iterator[Callable[[Message], None]]:
    with Live(table.render(console.height), console=console, auto_refresh=False) as live:
        due = 0.0

        def on_message(message: Message) -> None:
            nonlocal due
            table.note(message)
            if time.monotonic() >= due:
                live.update(table.render(console.height), refresh=True)
                due = time.monotonic() + _REFRESH_S

        try:
            yield on_message
        finally:
            live.update(table.render(console.height), refresh=True)


def _outcome_text(outcome: Outcome) -> str:
    if outcome.summary is None:
        return f"{outcome.status}: {outcome.error}"
    accuracy = outcome.summary["test_accuracy"]
    if outcome.summary["status"] == "diverged":
        return f"{outcome.status}, diverged in round {outcome.summary['diverged_in']}"
    return outcome.status if accuracy is None else f"{outcome.status}: test accuracy {accuracy:.1%}"


def print_study(study: Study) -> None:
    """The points of a study with their means over the seeds, and where its files lie."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in (
        *(factor.short_name for factor in study.factors),
        "runs",
        "test accuracy",
        "ε published",
        "ε accounted",
    ):
        table.add_column(name, overflow="fold")
    final = {name: study.final(name) for name in ("test_accuracy", "epsilon_published", "epsilon_accounted")}
    for levels, records in study.points().items():
        labels = [factor.label(level) for factor, level in zip(study.factors, levels, strict=True)]
        accuracy = final["test_accuracy"][levels].text(0, percent=True)
        epsilons = [
            epsilon_text(float(final[name][levels].mean[0])) for name in ("epsilon_published", "epsilon_accounted")
        ]
        diverged = sum(record.summary is not None and record.summary["status"] == "diverged" for record in records)
        runs = f"{len(records)}, {diverged} diverged" if diverged else str(len(records))
        table.add_row(*labels, runs, accuracy, *epsilons)
    console = open_console()
    console.print(table)
    console.print(Text("means over the seeds; ± is the 95 % confidence interval", style="dim"))
    files = {"table": study.folder.table, "picture": study.folder.picture, "report": study.folder.report}
    for name, path in files.items():
        if not path.exists():
            continue
        console.print(Text.assemble((f"{name:8}", "bold"), str(path)), soft_wrap=True)
