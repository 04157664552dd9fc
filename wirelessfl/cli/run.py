"""``wirelessfl simulate`` and ``wirelessfl validate``: run of one scenario, or its check and plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.figure_options import figures_option, refuse_figure_options, width_option
from wirelessfl.cli.terminal import (
    OutputPath,
    ScenarioCommand,
    device_option,
    json_option,
    override_option,
    plugins_option,
    read_scenario,
    remark,
    say,
    scenario_argument,
    seconds_of_the_command,
)

if TYPE_CHECKING:
    from wirelessfl.result import Result
    from wirelessfl.simulation import FinishedRound
    from wirelessfl.summary.style import FigureFormat


@click.command(cls=ScenarioCommand)
@scenario_argument
@override_option
@plugins_option
@click.option("--seed", type=click.IntRange(min=0), help="Random seed; overrides the scenario's.")
@click.option("--out", type=OutputPath(), help="Folder for the results [results/NAME-SEED].")
@device_option
@click.option("--threads", type=click.IntRange(min=1), help="Torch threads [as the scenario says, else all cores].")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Train blocks of clients in N processes, one thread each [in this one].",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Train on a Dask cluster: tcp://HOST:PORT, or slurm to start Slurm jobs."
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run; start it where there is none.")
@click.option("--overwrite", is_flag=True, help="Replace the run that lies in the results folder.")
@click.option(
    "--tensorboard",
    is_flag=False,
    flag_value="",  # beside the trace
    metavar="[DIR]",
    help="Also log every round for TensorBoard [tensorboard, in the results folder].",
)
@figures_option()
@width_option()
@click.option("--quiet", is_flag=True, help="Print neither progress nor a table.")
@json_option
def simulate(
    scenario: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    seed: int | None,
    out: Path | None,
    device: str,
    threads: int | None,
    workers: int | None,
    scheduler: str | None,
    resume: bool,
    overwrite: bool,
    tensorboard: str | None,
    form: FigureFormat,
    width: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run SCENARIO, a YAML file or the name of a shipped scenario.

    Writes trace.h5, scenario.yaml, summary.json and, as figures, summary.png and timeline.png into the results
    folder.
    """
    from wirelessfl import api
    from wirelessfl.scenario import locate
    from wirelessfl.summary.style import FigureOptions

    if seed is not None:
        overrides = (*overrides, f"seed={seed}")
    resolved = read_scenario(scenario, overrides, allow_plugins)
    folder = api.default_folder(resolved) if out is None else out
    log = None if tensorboard is None else Path(tensorboard or folder / "tensorboard")
    with _watching(resolved.rounds, log, quiet=quiet) as on_round:
        result = api.simulate(
            resolved,
            folder,
            device=device,
            threads=threads,
            workers=workers,
            scheduler=scheduler,
            resume=resume,
            overwrite=overwrite,
            figures=FigureOptions(form, width),
            inputs=[locate(scenario)],
            on_round=on_round,
        )
    _show(result, quiet=quiet, as_json=as_json)
    result.require_files()


@contextmanager
def _watching(rounds: int, log: Path | None, *, quiet: bool) -> Iterator[Callable[[FinishedRound], None]]:
    # What is called after each round: the progress line, and the log for TensorBoard
    from wirelessfl.cli.console import progress_line
    from wirelessfl.summary import TensorBoardLog

    with ExitStack() as watchers:
        watching = [watchers.enter_context(progress_line(rounds, quiet=quiet))]
        if log is not None:
            watching.append(watchers.enter_context(TensorBoardLog(log)))

        def on_round(finished: FinishedRound) -> None:
            for watch in watching:
                watch(finished)

        yield on_round


def _show(result: Result, *, quiet: bool, as_json: bool) -> None:
    # Warnings of a run, then its numbers
    from wirelessfl.cli.console import print_summary
    from wirelessfl.summary import to_json

    silent = quiet and result.summary["status"] != "diverged"
    for words in [] if silent else result.summary["warnings"]:
        remark(f"warning: {words}")
    if as_json:
        say(to_json(result.summary), nl=False)
    elif not quiet:
        pictures = {"picture": result.picture, "timeline": result.timeline} if result.figures.drawn else {}
        print_summary(result.summary, {"trace": result.trace, **pictures}, seconds_of_the_command())


@click.command(cls=ScenarioCommand)
@scenario_argument
@override_option
@plugins_option
@click.option("--plot", is_flag=True, help="Draw nodes and links, classes, and beam and spectrum of round 1.")
@figures_option(words="Format of the pictures of --plot; none draws none.")
@width_option("5")
@json_option
def validate(
    scenario: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    plot: bool,
    form: FigureFormat,
    width: float,
    as_json: bool,
) -> None:
    """Check SCENARIO and print its plan: sizes, airtime, noise, expected ε (published and accounted), memory.

    All rounds are simulated with everything but the training, so that time and privacy are those of the run with this
    seed.
    """
    from wirelessfl import api
    from wirelessfl.cli.console import plan_rows, print_rows
    from wirelessfl.summary import to_json
    from wirelessfl.summary.style import FigureOptions

    if not plot:
        refuse_figure_options("--plot")
    resolved, options = read_scenario(scenario, overrides, allow_plugins), FigureOptions(form, width)
    if plot and options.drawn:
        for what, draw in api.plots_of(resolved).items():
            picture = options.file(Path(f"{resolved.name}-{what}"))
            draw(resolved, picture, width_in=width)
            remark(f"picture: {picture}")
    plan = api.make_plan(resolved)
    if as_json:
        say(to_json(plan.as_mapping()), nl=False)
    else:
        print_rows(plan_rows(plan))
