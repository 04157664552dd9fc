"""Progress line on stderr and tables on stdout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from wirelessfl.cli.terminal import open_console
from wirelessfl.summary import epsilon_text

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound


def duration_text(seconds: float) -> str:
    """A duration in ms, s, min or h, from seconds."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


class _RateColumn(ProgressColumn):
    @override
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g} rounds/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress_line(rounds: int, *, quiet: bool) -> Iterator[Callable[[FinishedRound], None]]:
    """Progress line on stderr; yields the function to call after each round."""
    console = open_console(stderr=True)
    with Progress(
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[state]}"),
        _RateColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=quiet or not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=rounds, state="")
        accuracy = math.nan

        def on_round(finished: FinishedRound) -> None:
            nonlocal accuracy
            values = finished.values
            if not math.isnan(values["test_accuracy"]):
                accuracy = values["test_accuracy"]
            state = (
                f"accuracy {accuracy:.1%}  "
                f"ε {epsilon_text(values['epsilon_published'])} published, "
                f"{epsilon_text(values['epsilon_accounted'])} accounted  "
                f"clock {duration_text(values['sim_time'])}"
            )
            progress.update(task, completed=finished.index, state=state)

        yield on_round


def print_summary(summary: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    """Table of the numbers of a ``summary.json`` and of files by their kind, on stdout."""
    print_rows([*_summary_rows(summary), *((name, Text(str(path))) for name, path in files.items())])


def print_rows(rows: Iterable[tuple[str, str | Text]]) -> None:
    """Table on stdout of texts beside their names in bold."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, words in rows:
        table.add_row(name, words)
    open_console().print(table)


def print_table(heads: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: bool = False) -> None:
    """Table on stdout with bold heads; with ``numbers`` all columns but the first are flush right."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for at, head in enumerate(heads):
        table.add_column(head, overflow="fold", justify="right" if numbers and at else "left")
    for row in rows:
        table.add_row(*row)
    open_console().print(table)


def _summary_rows(summary: Mapping[str, Any]) -> Iterator[tuple[str, str | Text]]:
    accuracy = "unknown" if math.isnan(summary["test_accuracy"]) else f"{summary['test_accuracy']:.1%}"
    delta = f"at δ = {summary['delta']:g}"
    rows: Sequence[tuple[str, str | Text]] = (
        ("scenario", f"{summary['name']}, seed {summary['seed']} ({summary['status']})"),
        ("rounds", f"{summary['rounds']}, on average {summary['participants_mean']:.1f} clients heard"),
        ("test accuracy", f"{accuracy}, loss {summary['test_loss']:.4g}"),
        ("model", f"{summary['d']:,} parameters, {summary['samples']:,} training samples"),
        ("ε published", f"{epsilon_text(summary['epsilon_published'])} {delta}: what the paper's theorem says"),
        ("ε accounted", f"{epsilon_text(summary['epsilon_accounted'])} {delta}: what holds for what ran"),
        *(("", Text(f"• {reason}")) for reason in summary["why_different"]),
        ("", Text(summary["privacy_scope"], style="dim")),
    )
    yield from rows
    if not math.isnan(summary["effective_noise_std"]):
        yield ("effective noise", f"σ_m = {summary['effective_noise_std']:.4g} a coordinate, before rescaling")
    if not math.isnan(summary["aggregate_noise_std"]):
        yield ("noise on weights", f"{summary['aggregate_noise_std']:.4g} a coordinate and round, rescaled (times τ)")
    yield ("simulated time", f"{duration_text(summary['sim_time'])}, on the air {duration_text(summary['airtime'])}")
    if not math.isnan(summary["energy"]):
        yield ("energy", f"{summary['energy']:.4g} J")
    yield ("real time", duration_text(summary["wall_time"]))
