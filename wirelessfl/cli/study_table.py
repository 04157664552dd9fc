"""Live table of the points of a study on stderr, results on stdout."""

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from wirelessfl.cli.console import duration_text
from wirelessfl.cli.terminal import open_console
from wirelessfl.study import Message, Outcome, Progress, Study, StudyDesign, band
from wirelessfl.summary import epsilon_text, number_text
from wirelessfl.summary.style import figure_files

_REFRESH_S = 0.25
_UNBOUNDED = 10_000  # columns of a terminal
_NARROWEST = 12  # column of labels


class LiveTable:
    """Table of the points of a study, kept up by its messages."""

    def __init__(self, design: StudyDesign, clock: Callable[[], float] = time.monotonic) -> None:
        self._design = design
        self._clock = clock
        self._latest: dict[str, Message] = {}
        self._begun_at: dict[str, int] = {}  # rounds that were there at the first message of a run
        self._first: float | None = None

    def note(self, message: Message) -> None:
        """Update by a message."""
        self._latest[message.run] = message
        if isinstance(message, Progress):
            self._first = self._first or self._clock()
            self._begun_at.setdefault(message.run, message.round)

    def seconds_left(self) -> float:
        """Estimated remaining time (s) at the rate of all workers so far; NaN before the first round."""
        rounds = {run.id: run.scenario.rounds for run in self._design.runs}
        done = {run: one.round if isinstance(one, Progress) else rounds[run] for run, one in self._latest.items()}
        computed = sum(done[run] - begun for run, begun in self._begun_at.items())
        if self._first is None or computed <= 0:
            return math.nan
        return (sum(rounds.values()) - sum(done.values())) * (self._clock() - self._first) / computed

    def status(self) -> str:
        """One line on the state of the study."""
        ended = [message for message in self._latest.values() if isinstance(message, Outcome)]
        failed = sum(_accuracy(outcome) is None for outcome in ended)
        left = self.seconds_left()
        words = (
            f"{len(ended)} of {len(self._design.runs)} runs",
            f"{len(self._latest) - len(ended)} running",
            f"{failed} failed" if failed else "",
            f"about {duration_text(round(left))} left" if left >= 0.5 else "",
        )
        return ", ".join(filter(None, words))

    def render(self, height: int) -> Group:
        """Table of at most ``height`` lines; where not all points fit, those that run come first."""
        names = (*(factor.short_name for factor in self._design.factors), "runs", "test accuracy", "now")
        columns = (Column(name, no_wrap=True) for name in names)
        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        points: dict[tuple[int, ...], list[Message | None]] = {}
        for run in self._design.runs:
            points.setdefault(run.levels, []).append(self._latest.get(run.id))
        rows = [self._cells(levels, messages) for levels, messages in points.items()]
        # Points in progress first, then those with results; the row itself keeps the order of the design.
        wanted = sorted(range(len(rows)), key=lambda at: (not rows[at][-1], not rows[at][-2], at))
        for at in sorted(wanted[: max(1, height - 3)]):
            table.add_row(*rows[at])
        return Group(table, Text(self.status(), style="dim"))

    def _cells(self, levels: tuple[int, ...], messages: Sequence[Message | None]) -> list[str]:
        labels = [factor.label(level) for factor, level in zip(self._design.factors, levels, strict=True)]
        found = [_accuracy(message) for message in messages if isinstance(message, Outcome)]
        known = [[accuracy] for accuracy in found if accuracy is not None]
        failed = f", {len(found) - len(known)} failed" if len(known) < len(found) else ""
        mean = band(known).text(0, percent=True) if known else ""
        now = ", ".join(_running_text(message) for message in messages if isinstance(message, Progress))
        return [*labels, f"{len(known)}/{len(messages)}{failed}", mean, now]


def _accuracy(outcome: Outcome) -> float | None:
    # Test accuracy of a complete run, NaN without an evaluation; None of a failed one
    if outcome.status != "complete" or outcome.summary is None:
        return None
    accuracy = outcome.summary["test_accuracy"]
    return math.nan if accuracy is None else float(accuracy)


def _running_text(progress: Progress) -> str:
    accuracy = "" if math.isnan(progress.test_accuracy) else f" at {progress.test_accuracy:.1%}"
    return f"round {progress.round}/{progress.rounds}{accuracy}"


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
        with Live(table.render(console.height), console=console, auto_refresh=False) as live:
            due = 0.0

            def refresh(message: Message) -> None:
                nonlocal due
                table.note(message)
                if time.monotonic() >= due:
                    live.update(table.render(console.height), refresh=True)
                    due = time.monotonic() + _REFRESH_S

            try:
                yield refresh
            finally:
                live.update(table.render(console.height), refresh=True)


def _outcome_text(outcome: Outcome) -> str:
    if outcome.summary is None:
        return f"{outcome.status}: {outcome.error}"
    accuracy = outcome.summary["test_accuracy"]
    if outcome.summary["status"] == "diverged":
        return f"{outcome.status}, diverged in round {outcome.summary['diverged_in']}"
    return outcome.status if accuracy is None else f"{outcome.status}: test accuracy {accuracy:.1%}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    table = Table(*(Column(head, overflow="fold") for head in heads), box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _fitting(heads: Sequence[str], rows: Sequence[Sequence[str]], labels: int, console: Console) -> Table:
    # Where a terminal is too narrow, heads are broken first, then labels of the factors, the widest of them first
    def excess(table: Table) -> int:
        return console.measure(table, options=console.options.update(width=_UNBOUNDED)).maximum - console.width

    table = _table(heads, rows)
    if excess(table) > 0:
        heads = [head.replace(".", ".\n").replace(" ", "\n") for head in heads]
        table = _table(heads, rows)
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(labels)]
    while (more := excess(table)) > 0 and max(widths, default=0) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] = max(_NARROWEST, widths[widest] - more)
        table = _table(
            heads, [[*(_in_lines(*one) for one in zip(row, widths, strict=False)), *row[labels:]] for row in rows]
        )
    return table


def _in_lines(text: str, width: int) -> str:
    # Lines of at most so many letters, broken between words and behind hyphens, dots, colons and underscores
    lines = [""]
    for part in re.findall(r"[^\s_:.-]*[_:.-]|[^\s_:.-]+\s*|\s+", text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def print_study(study: Study) -> None:
    """Table of the points of a study, means over the seeds, and the places of its files."""
    rows = []
    names = ("test_accuracy", "epsilon_published", "epsilon_accounted", "participants_mean", "airtime")
    final = {name: study.final(name) for name in names}
    for levels, records in study.points().items():
        labels = [factor.label(level) for factor, level in zip(study.factors, levels, strict=True)]
        epsilons = [
            epsilon_text(float(final[name][levels].mean[0])) for name in ("epsilon_published", "epsilon_accounted")
        ]
        heard, airtime = (float(final[name][levels].mean[0]) for name in ("participants_mean", "airtime"))
        diverged = sum(record.summary is not None and record.summary["status"] == "diverged" for record in records)
        runs = f"{len(records)}, {diverged} diverged" if diverged else str(len(records))
        spent = (number_text(heard, 3), number_text(airtime, 3))
        rows.append((*labels, runs, final["test_accuracy"][levels].text(0, percent=True), *epsilons, *spent))
    factors = (factor.short_name for factor in study.factors)
    heads = (*factors, "runs", "test accuracy", "ε published", "ε accounted", "heard", "airtime (s)")
    console = open_console()
    console.print(_fitting(heads, rows, len(study.factors), console))
    words = "means over the seeds; ± is the 95 % confidence interval; heard: clients a round; airtime: of a whole run"
    console.print(Text(words, style="dim"))
    figures = (("picture", figure) for figure in figure_files(study.folder.figure))
    for name, path in (
        ("table", study.folder.table),
        *figures,
        ("report", study.folder.report),
        ("runs", study.folder.index),
    ):
        if path.exists():
            console.print(Text.assemble((f"{name:8}", "bold"), str(path)), soft_wrap=True)
