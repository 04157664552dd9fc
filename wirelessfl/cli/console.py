"""Progress line on stderr and tables on stdout."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text
from typing_extensions import override

from wirelessfl.cli.meaning import advice
from wirelessfl.cli.terminal import open_console
from wirelessfl.summary import epsilon_text, number_text, of_clients_text, personal_text, rounds_text

if TYPE_CHECKING:
    from wirelessfl.analysis.audit.audit import Audit
    from wirelessfl.result import Plan
    from wirelessfl.simulation import FinishedRound


_NEW_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
_SCOPE = (
    "Both ε cover what the adversary sees of one run, not its trace, which holds private data of the clients, nor "
    "floating-point rounding (Mironov 2012)."
)


def duration_text(seconds: float) -> str:
    """A duration in ms, s, min or h, from seconds."""
    if seconds < 120:
        return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
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


def print_summary(summary: Mapping[str, Any], files: Mapping[str, Path], command_s: float | None = None) -> None:
    """Table of the numbers of a ``summary.json`` and of files by their kind, the trace among them, on stdout.

    Args:
        summary: the numbers.
        files: paths by what they are.
        command_s: seconds of real time since the command was called; None where it did not run the rounds. Where it
            did, reasons are their first sentences, and the noise is left to the report, which is named.
    """
    rows = _summary_rows(summary, files["trace"], command_s)
    print_rows([*rows, *((name, Text(str(path))) for name, path in files.items())])


def print_rows(rows: Iterable[tuple[str, str | Text]]) -> None:
    """Table on stdout of texts beside their names in bold."""
    # A path is folded: with an ellipsis nobody could copy it
    columns = Column(style="bold", no_wrap=True), Column(overflow="fold")
    table = Table(*columns, show_header=False, box=None, pad_edge=False)
    for name, words in rows:
        table.add_row(name, words)
    open_console().print(table)


def print_table(heads: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: bool = False) -> None:
    """Table on stdout with bold heads; with ``numbers`` all columns but the first are flush right."""
    columns = (
        Column(head, overflow="fold", justify="right" if numbers and at else "left") for at, head in enumerate(heads)
    )
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*row)
    open_console().print(table)


def _summary_rows(summary: Mapping[str, Any], trace: Path, command_s: float | None) -> Iterator[tuple[str, str | Text]]:
    # A row whose number is not known has no text
    accuracy = "unknown" if math.isnan(summary["test_accuracy"]) else f"{summary['test_accuracy']:.1%}"
    validated = not math.isnan(summary["validation_accuracy"])
    delta = f"at δ = {summary['delta']:g}"
    command = "" if command_s is None else f"{duration_text(command_s)} for this command, "
    energy, reasons = summary["energy"], summary["why_different"]
    if command_s is not None:
        reasons = [_NEW_SENTENCE.split(reason, maxsplit=1)[0] for reason in reasons]
    rows: Sequence[tuple[str, str | Text]] = (
        ("scenario", f"{summary['name']}, seed {summary['seed']} ({summary['status']})"),
        ("rounds", rounds_text(summary)),
        ("test accuracy", f"{accuracy}, loss {number_text(summary['test_loss'])}"),
        (
            "validation accuracy",
            f"{summary['validation_accuracy']:.1%}, loss {number_text(summary['validation_loss'])}"
            if validated
            else "",
        ),
        ("clients' accuracy", of_clients_text(summary)),
        ("personal models", personal_text(summary)),
        ("model", f"{summary['d']:,} parameters, {summary['samples']:,} training samples"),
        ("ε published", _published_text(summary["epsilon_published"], delta)),
        ("ε accounted", f"{epsilon_text(summary['epsilon_accounted'])} {delta}: what holds for what ran"),
        *(("", Text(f"• {reason}")) for reason in reasons),
        ("", advice(summary, trace)),
        *(_noise_rows(summary) if command_s is None else [("", Text(_rest(trace), style="dim"))]),
        ("simulated time", f"{duration_text(summary['sim_time'])}, on the air {duration_text(summary['airtime'])}"),
        ("energy", "" if math.isnan(energy) else f"{energy:.4g} J"),
        ("real time", f"{command}{duration_text(summary['wall_time'])} for the rounds of the run"),
    )
    return ((name, words) for name, words in rows if words)


def _noise_rows(summary: Mapping[str, Any]) -> list[tuple[str, str | Text]]:
    noise, on_mean = summary["effective_noise_std"], summary["aggregate_noise_std"]
    return [
        ("", Text(_SCOPE, style="dim")),
        ("effective noise", "" if math.isnan(noise) else _noise_text(noise)),
        ("noise on the mean", "" if math.isnan(on_mean) else _mean_update_text(on_mean)),
    ]


def _rest(trace: Path) -> str:
    return f"Neither ε covers the trace itself. More: `wirelessfl report {shlex.quote(str(trace.parent))}`"


def _published_text(epsilon: float, delta: str) -> str:
    says = "what the paper's theorem says" if math.isfinite(epsilon) else "no theorem of a paper gives a finite one"
    return f"{epsilon_text(epsilon)} {delta}: {says}"


def _noise_text(std: float) -> str:
    return f"σ_m = {std:.4g} a coordinate, before rescaling"


def _mean_update_text(std: float) -> str:
    return f"{std:.4g} a coordinate and round, rescaled (times τ)"


def _multiplier_text(first: float, last: float) -> str:
    if math.isnan(first):
        return ""
    return f"{first:.4g}" if first == last else f"{first:.4g} in the first round, {last:.4g} in the last"


def plan_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Rows on what a scenario will cost and what its ε will be."""
    forecast, pieces = plan.forecast, f"{plan.pieces} of a slot or upload"
    noise, on_mean = forecast.effective_noise_std, forecast.aggregate_noise_std
    gains = f"server α_u = {forecast.server_gain:.4g}, jammer α_CJ = {forecast.jammer_gain:.4g}"
    short = f"in {plan.shortfall_probability:.2%} of the rounds, allowed {plan.max_shortfall:.2%}"
    mean, largest = duration_text(forecast.airtime_mean), duration_text(forecast.airtime)
    fades = math.isfinite(plan.coherence_s)
    times = f", {plan.upload_s / plan.coherence_s:.3g} coherence times" if fades else ""
    upload = "" if math.isnan(plan.upload_s) else f"{duration_text(plan.upload_s)} at the median path gain{times}"
    start = "" if math.isnan(plan.training_s) else duration_text(plan.training_s)
    rows = (
        ("scenario", f"{plan.name}: valid"),
        ("model", f"d = {plan.dimension:,} parameters"),
        ("data", f"|D| = {plan.samples:,} samples of {plan.clients:,} clients"),
        ("rounds", f"{forecast.rounds}, with {forecast.participants_mean:.1f} clients heard on average"),
        ("downlink", _downlink_text(forecast.broadcast_mean, forecast.missed_mean)),
        ("airtime", f"{mean} a round" if mean == largest else f"{mean} a round on average, {largest} at most"),
        ("coherence time", duration_text(plan.coherence_s) if fades else ""),
        ("upload", upload),
        ("pieces", pieces if fades or plan.pieces > 1 else ""),
        ("deadline", start and f"a slot fits that starts within {start} of the broadcast"),
        ("simulated time", f"{duration_text(forecast.round_time)} a round, {duration_text(forecast.sim_time)} in all"),
        ("effective noise", "" if math.isnan(noise) else _noise_text(noise)),
        ("noise on the mean", "" if math.isnan(on_mean) else _mean_update_text(on_mean)),
        ("gains", "" if math.isnan(noise) else gains),
        ("noise multiplier", _multiplier_text(forecast.noise_multiplier, forecast.noise_multiplier_last)),
        ("jammer short", short if plan.shortfall_probability > 0 else ""),
        ("ε published", f"{epsilon_text(forecast.epsilon_published)} at δ = {plan.delta:g}"),
        ("ε accounted", f"{epsilon_text(forecast.epsilon_accounted)} at δ = {plan.delta:g}"),
        *(("", f"• {reason}") for reason in forecast.why_different),
        *(("note", note) for note in plan.notes),
        ("memory", f"about {forecast.memory_bytes / 2**20:,.0f} MiB"),
    )
    return ((name, words) for name, words in rows if words)


def _downlink_text(broadcast_s: float, missed: float) -> str:
    if math.isnan(missed):
        return ""
    return f"{duration_text(broadcast_s)} a broadcast on average, which {missed:.1f} clients of a round miss"


def audit_rows(audit: Audit, picture: Path | None) -> list[tuple[str, str]]:
    """Rows on published, empirical and accounted ε, findings, and what is not tested."""
    statement = audit.statement
    delta = f"at δ = {statement.delta:g}"
    empirical = f"at least {epsilon_text(audit.epsilon_empirical)} {delta}, with {audit.confidence:.4g} confidence"
    return [
        ("scenario", f"{audit.name}: {audit.trials} games in either world over {audit.rounds} rounds"),
        ("canary", f"{audit.canary} (client {audit.client}, the one that the ledger charges most)"),
        ("adversary", f"{statement.adversary}: sees {audit.view}"),
        ("ε published", _published_text(audit.epsilon_published, delta)),
        ("ε empirical", empirical),
        ("ε accounted", f"{epsilon_text(audit.epsilon_accounted)} {delta}: what holds for what runs"),
        *(("", f"• {sentence}") for sentence in audit.findings()),
        *(("" if place else "not tested", f"• {phrase}") for place, phrase in enumerate(audit.not_tested)),
        *([] if picture is None else [("picture", str(picture))]),
    ]
