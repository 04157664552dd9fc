"""``wirelessfl audit``: distinguishing games against a scenario's own mechanisms."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wirelessfl.cli.options import (
    OutputPath,
    json_option,
    override_option,
    plugins_option,
    read_scenario,
    scenario_argument,
)
from wirelessfl.cli.terminal import open_console, say


@click.command()
@scenario_argument
@override_option
@plugins_option
@click.option("--trials", type=click.IntRange(min=10), help="Games in either world [what some ten seconds allow].")
@click.option("--out", type=OutputPath(), help="Folder for audit.png [results/NAME-SEED].")
@json_option
def command(
    scenario: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    trials: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Bound ε of SCENARIO from below by attacking it, and compare with published and accounted.

    A worst-case canary goes many times through the clipping, noise and channels that a run uses, and the noise itself
    is tested. Exit code 4 says that more can be told apart than the accounted ε allows, or that noise is smaller than
    on record or used again: then a mechanism does not do what its record states. Exit code 3 says that no game can be
    played on the scenario, and what is missing. What is not tested is listed in any case.
    """
    from wirelessfl.analysis.audit.audit import audit_scenario
    from wirelessfl.analysis.audit.picture import draw_audit
    from wirelessfl.api import default_folder
    from wirelessfl.cli.console import audit_rows, print_rows
    from wirelessfl.errors import CheckFailed, OutputError
    from wirelessfl.outputs import refuse_inputs, replacing, writing
    from wirelessfl.scenario import locate
    from wirelessfl.summary import epsilon_text, to_json

    resolved = read_scenario(scenario, overrides, allow_plugins)
    folder = default_folder(resolved) if out is None else out
    picture = folder / "audit.png"
    refuse_inputs([picture], [locate(scenario)])
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _progress() as on_progress:
        audit = audit_scenario(resolved, trials, on_progress)
    missing = ""
    try:
        with replacing(picture) as new:
            draw_audit(audit, new)
    except OutputError as error:
        missing = str(error)
    if as_json:
        say(to_json({**audit.as_mapping(), "picture": str(picture)}), nl=False)
    else:
        print_rows(audit_rows(audit, picture))
    if audit.contradicts_ledger:
        raise CheckFailed(
            f"the accounted ε of {epsilon_text(audit.epsilon_accounted)} does not hold: {audit.contradiction}"
        )
    if missing:
        raise OutputError(missing)


@contextmanager
def _progress() -> Iterator[Callable[[float], None]]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = open_console(stderr=True)
    with Progress(
        TextColumn("games"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda part: progress.advance(task, part)
