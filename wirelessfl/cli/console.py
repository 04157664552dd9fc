"""What a run looks like on a terminal: a progress line on stderr, a table on stdout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from wirelessfl.api import Result
from wirelessfl.cli.terminal import open_console
from wirelessfl.summary import epsilon_text

if TYPE_CHECKING:
    from wirelessfl.simulation import FinishedRound

__all__ = ["print_result", "print_summary", "progress_line"]


def duration_text(seconds: float) -> str:
    """A simulated time for people."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"{share:.1%}"


class _RateColumn(ProgressColumn):
    """Rounds per second of real time."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g} rounds/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress_line(rounds: int, *, quiet: bool) -> Iterator[Callable[[FinishedRound], None]]:
    """A live line on stderr; yields the function to call after each round."""
    columns = (
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[state]}"),
        _RateColumn(),
        TimeRemainingColumn(compact=True),
    )
    console = open_console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:
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


def print_result(result: Result) -> None:
    """The summary of a run as a table on stdout, and where its files lie."""
    print_summary(result.summary, {"trace": result.trace, "picture": result.picture, "timeline": result.timeline})


def print_summary(summary: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    """The numbers of a ``summary.json`` as a table on stdout, and files by what they are."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("scenario", f"{summary['name']}, seed {summary['seed']} ({summary['status']})")
    table.add_row("rounds", f"{summary['rounds']}, on average {summary['participants_mean']:.1f} clients heard")
    table.add_row("test accuracy", f"{_percent(summary['test_accuracy'])}, loss {summary['test_loss']:.4g}")
    table.add_row("model", f"{summary['d']:,} parameters, {summary['samples']:,} training samples")
    delta = f"at δ = {summary['delta']:g}"
    table.add_row("ε published", f"{epsilon_text(summary['epsilon_published'])} {delta}: what the paper's theorem says")
    table.add_row("ε accounted", f"{epsilon_text(summary['epsilon_accounted'])} {delta}: what holds for what ran")
    for reason in summary["why_different"]:
        table.add_row("", Text(f"• {reason}"))
    table.add_row("", Text(summary["privacy_scope"], style="dim"))
    if not math.isnan(summary["effective_noise_std"]):
        table.add_row("effective noise", f"σ_m = {summary['effective_noise_std']:.4g} a coordinate, before rescaling")
    if not math.isnan(summary["aggregate_noise_std"]):
        table.add_row(
            "noise on weights", f"{summary['aggregate_noise_std']:.4g} a coordinate and round, rescaled (times τ)"
        )
    table.add_row(
        "simulated time", f"{duration_text(summary['sim_time'])}, on the air {duration_text(summary['airtime'])}"
    )
    if not math.isnan(summary["energy"]):
        table.add_row("energy", f"{summary['energy']:.4g} J")
    table.add_row("real time", duration_text(summary["wall_time"]))
    for name, path in files.items():
        table.add_row(name, Text(str(path)))
    open_console().print(table)
