"""``wirelessfl replay``: analysis, verification and counterfactual of a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirelessfl.cli.figure_options import figures_option, refuse_figure_options, width_option
from wirelessfl.cli.replay_tables import NAMES_SHOWN, print_comparison, print_paired
from wirelessfl.cli.terminal import (
    OutputPath,
    ScenarioCommand,
    json_option,
    plugins_option,
    remark,
    say,
)
from wirelessfl.errors import InfeasibleError, precondition

if TYPE_CHECKING:
    from wirelessfl.analysis.pack.layout import PackedRun
    from wirelessfl.analysis.replay.comparison import Comparison
    from wirelessfl.analysis.replay.export import Format
    from wirelessfl.analysis.replay.recording import Recording
    from wirelessfl.cli.archive import Unpacked
    from wirelessfl.scenario import Resolved
    from wirelessfl.summary.style import FigureFormat


@dataclass(frozen=True)
class Wish:
    """Options of a replay: what is to be done with a recording, and what is printed of it."""

    verify: bool
    deltas: tuple[float, ...]
    accountant: str | None
    overrides: tuple[str, ...]
    allow_plugins: bool
    export: Format | None
    form: FigureFormat
    width: float
    quiet: bool
    as_json: bool

    @property
    def analyses(self) -> bool:
        """Whether it asks for more than a summary or the verdict of a repeated run."""
        return bool(self.deltas or self.accountant or self.overrides or self.export)

    @property
    def shown(self) -> bool:
        """Whether tables are printed."""
        return not (self.quiet or self.as_json)


@click.command(cls=ScenarioCommand)
@click.argument("trace", type=click.Path(path_type=Path), metavar="TRACE")
@click.option("--verify", is_flag=True, help="Run it again and compare all recorded values, bit for bit.")
@click.option(
    "--delta",
    "deltas",
    type=float,
    multiple=True,
    metavar="D",
    help="Recompute published and accounted ε at this δ; repeatable.",
)
@click.option(
    "--accountant",
    type=click.Choice(["pld", "rdp", "gdp", "zcdp"]),
    help="Recompute published and accounted ε with this accountant.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key and run again with the recorded channels, availability and compute times; repeatable.",
)
@plugins_option
@click.option("--from", "first", type=int, metavar="ROUND", help="First round to look at [the first].")
@click.option("--to", "last", type=int, metavar="ROUND", help="Last round to look at [the last].")
@click.option(
    "--export", type=click.Choice(["parquet", "csv", "netcdf", "chrome"]), help="Write the run in this format."
)
@click.option("--out", type=OutputPath(), help="Folder for the files written [replay, beside the trace].")
@figures_option(words="Format of the figure of --set; none draws none.")
@width_option("column")
@click.option("--quiet", is_flag=True, help="Print neither progress nor a table.")
@click.option("--run", metavar="ID", help="Which run of an archive over several, by its id or name.")
@json_option
def replay(
    trace: Path, run: str | None, first: int | None, last: int | None, out: Path | None, verify: bool, **others: Any
) -> None:
    """Analyse the recorded run in TRACE: a trace.h5, the folder of a run, or an archive that `pack` has made.

    Without options its summary is printed. `--set` runs it again under the recorded conditions with another policy,
    and prints the paired difference. `--export chrome` writes a timeline for Perfetto or chrome://tracing. Of an
    archive over several runs `--verify` repeats each.
    """
    from wirelessfl.analysis.pack.reading import looks_like_archive
    from wirelessfl.analysis.replay.recording import open_recording

    wish = Wish(verify=verify, **others)
    if verify and wish.overrides:
        raise click.UsageError("--verify repeats the recorded policy, --set changes it; use one of them")
    if not wish.overrides:
        refuse_figure_options("--set")
    if looks_like_archive(trace):
        _replay_archive(trace, run, (first, last), out, wish)
        return
    if run is not None:
        raise click.UsageError("--run chooses among the runs of an archive; TRACE is not an archive")
    recording = open_recording(trace, first, last)
    _look(recording, str(recording.path), out, recording.path.parent / "replay", wish)


def _replay_archive(
    path: Path, name: str | None, rounds: tuple[int | None, int | None], out: Path | None, wish: Wish
) -> None:
    from wirelessfl.cli.archive import unpacked

    with unpacked(path, quiet=wish.quiet) as archive:
        runs = archive.archive.manifest.runs if name is None else (archive.archive.run(name),)
        if len(runs) == 1:
            folder = archive.outputs if name is None else archive.outputs / runs[0].id
            with archive.recording(runs[0], *rounds) as recording:
                _look(recording, f"{path}:{runs[0].trace}", out, folder, wish)
        elif wish.analyses or rounds != (None, None):
            raise click.UsageError(f"{path} holds {len(runs)} runs; choose one with --run, such as {runs[0].id}")
        elif wish.verify:
            _verify_every(archive, out, wish)
        else:
            _list_runs(runs, wish)


def _list_runs(runs: Sequence[PackedRun], wish: Wish) -> None:
    from wirelessfl.cli.console import print_table
    from wirelessfl.summary import to_json

    if wish.as_json:
        say(to_json({"runs": [{"id": run.id, "name": run.name, "label": run.label} for run in runs]}), nl=False)
    elif wish.shown:
        print_table(("id", "run", "rounds"), ((run.id, run.label, str(run.rounds)) for run in runs))


def _verify_every(archive: Unpacked, out: Path | None, wish: Wish) -> None:
    # Repeats run after run; one that differs does not stop the others
    from wirelessfl.errors import CheckFailed
    from wirelessfl.summary import to_json

    runs, answers = archive.archive.manifest.runs, list[dict[str, Any]]()
    for number, run in enumerate(runs, start=1):
        answer: dict[str, Any] = {"id": run.id, "name": run.name, "label": run.label, "verified": None, "error": None}
        with archive.recording(run) as recording:
            try:
                comparison = _verify(recording, None if out is None else out / run.id, wish.allow_plugins, wish.quiet)
                answer["verified"] = comparison.as_mapping()
                words = f"the same, {comparison.numbers:,} numbers"
            except CheckFailed as error:
                answer["error"] = words = archive.named(str(error))
        answers.append(answer)
        if wish.shown:
            say(f"{number} of {len(runs)}  {run.id}  {run.label}: {words}")
    if wish.as_json:
        say(to_json({"runs": answers}), nl=False)
    differing = [f"{one['id']} ({one['label']})" for one in answers if one["error"] is not None]
    if differing:
        listed = ", ".join(differing[:NAMES_SHOWN]) + (", …" if len(differing) > NAMES_SHOWN else "")
        raise CheckFailed(f"{archive.archive.path}: {len(differing)} of {len(runs)} runs differ: {listed}")


def _look(recording: Recording, name: str, out: Path | None, folder: Path, wish: Wish) -> None:
    # All that is asked of one recording; what is written goes to ``out``, else to ``folder``
    from wirelessfl.analysis.replay.export import export
    from wirelessfl.analysis.replay.ledger import recompute_privacy
    from wirelessfl.cli.console import print_summary, print_table
    from wirelessfl.summary import epsilon_text, to_json

    allow_plugins, shown = wish.allow_plugins, wish.shown
    # Refusals come before anything is printed, and alterations are found before they are used.
    comparison = _verify(recording, out, allow_plugins, wish.quiet) if wish.verify else None
    answer = recording.summary()
    recomputed = wish.deltas or wish.accountant
    rows = recompute_privacy(recording, wish.deltas, wish.accountant, allow_plugins=allow_plugins) if recomputed else []
    changed = _changed(recording, wish.overrides, allow_plugins) if wish.overrides else None
    if shown:
        print_summary(answer, {"trace": Path(name)})
        if not recording.whole:
            say(f"of the rounds {recording.first} to {recording.last} of {recording.recorded}")
    if comparison is not None:
        answer |= {"verified_numbers": comparison.numbers, "verified": comparison.as_mapping()}
        if shown:
            print_comparison(recording, comparison)
    if rows:
        answer["ledgers"] = [asdict(row) for row in rows]
        if shown:
            cells = (
                (f"{row.delta:g}", row.accountant, *map(epsilon_text, (row.epsilon_published, row.epsilon_accounted)))
                for row in rows
            )
            print_table(("δ", "accountant", "ε published", "ε accounted"), cells)
    target = folder if out is None else out
    if changed is not None:
        answer["paired"] = _counterfactual(recording, changed, target, wish)
    if wish.export is not None:
        files = export(recording, wish.export, target)
        answer["files"] = [str(path) for path in files]
        if shown:
            say("\n".join(f"written {path}" for path in files))
    if wish.as_json:
        say(to_json(answer), nl=False)


def _changed(recording: Recording, overrides: tuple[str, ...], allow_plugins: bool) -> Resolved:
    # Brings torch along, of which a look at a recording needs nothing.
    from wirelessfl.analysis.replay.counterfactual import changed_scenario

    return changed_scenario(recording, overrides, allow_plugins=allow_plugins)


def _verify(recording: Recording, out: Path | None, allow_plugins: bool, quiet: bool) -> Comparison:
    from wirelessfl.analysis.replay.recording import verify
    from wirelessfl.cli.console import progress_line

    with progress_line(recording.last, quiet=quiet) as on_round:
        comparison = verify(recording, out, on_round, allow_plugins=allow_plugins)
    for note in comparison.notes:
        remark(f"Warning: {note}")
    return comparison


def _counterfactual(recording: Recording, resolved: Resolved, folder: Path, wish: Wish) -> dict[str, Any]:
    # Paired comparison of a run of the changed policy with the recording, as JSON values
    from wirelessfl.analysis.replay.counterfactual import run_counterfactual
    from wirelessfl.analysis.replay.paired import draw_paired, paired_rows
    from wirelessfl.analysis.replay.recording import open_recording, working_in
    from wirelessfl.cli.console import progress_line
    from wirelessfl.folder import RunFolder
    from wirelessfl.outputs import replacing
    from wirelessfl.summary.style import FigureOptions

    options, allow_plugins = FigureOptions(wish.form, wish.width), wish.allow_plugins
    for note in resolved.notes:
        remark(f"note: {note}")
    picture = options.file(folder / "paired") if options.drawn else None
    with working_in(RunFolder(folder), recording):
        with progress_line(recording.last, quiet=wish.quiet) as on_round:
            coverage = run_counterfactual(recording, resolved.scenario, folder, on_round, allow_plugins=allow_plugins)
        changed = open_recording(folder / "trace.h5")
        last = min(recording.last, changed.last)
        precondition(
            last >= recording.first,
            f"--from {recording.first}: found a changed run that ended after round {changed.last}; allowed: up to that",
            InfeasibleError,
        )
        recorded, other = (part.dataset.sel(round=slice(recording.first, last)) for part in (recording, changed))
        rows = paired_rows(recorded, other)
        if picture is not None:
            with replacing(picture) as new:
                draw_paired(recorded, other, new, f"changed: {', '.join(wish.overrides)}", wish.width)
    if coverage.drawn:
        remark(
            f"note: {coverage.drawn} of {coverage.asked} channels were not recorded and came from the scenario's law"
        )
    if wish.shown:
        print_paired(rows, recording.first, last, picture)
    return {
        "rounds": [recording.first, last],
        "channels_asked": coverage.asked,
        "channels_drawn": coverage.drawn,
        "rows": [asdict(row) for row in rows],
        "picture": None if picture is None else str(picture),
        "trace": str(folder / "trace.h5"),
    }
