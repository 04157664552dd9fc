"""``wirelessfl study``: a grid of scenarios with many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.figure_options import figures_option, width_option
from wirelessfl.cli.terminal import (
    OutputPath,
    device_option,
    json_option,
    plugins_option,
    remark,
    say,
)

if TYPE_CHECKING:
    from wirelessfl.study import Study
    from wirelessfl.summary.style import FigureFormat

MOST_FAILURES = 10


@click.command()
@click.argument("source", metavar="STUDY")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key: of the base scenario, e.g. base.rounds=10, or of the study, e.g. seeds=3.",
)
@plugins_option
@click.option(
    "--workers", type=click.IntRange(min=1), help="Number of worker processes, or of Slurm workers [one per core]."
)
@click.option("--threads", type=click.IntRange(min=1), help="Torch threads of a worker [cores divided by workers].")
@device_option
@click.option(
    "--scheduler", metavar="ADDRESS", help="Run on a Dask cluster: tcp://HOST:PORT, or slurm to start Slurm jobs."
)
@click.option("--resume", is_flag=True, help="Keep finished runs, compute what is new or missing.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first run that fails.")
@click.option("--out", type=OutputPath(), help="Folder for the results [results/NAME].")
@figures_option()
@width_option()
@click.option("--quiet", is_flag=True, help="Print neither progress nor a table.")
@json_option
def study(
    source: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    workers: int | None,
    threads: int | None,
    device: str,
    scheduler: str | None,
    resume: bool,
    fail_fast: bool,
    out: Path | None,
    form: FigureFormat,
    width: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run STUDY, a YAML file or the name of a shipped study (`wirelessfl scenarios list --studies`).

    Every combination of its values is checked before the first run. Writes study.yaml, study.json, study.parquet,
    report.html, a figure (study.png) and a folder with the trace of every run, which runs/index.csv lists by settings.
    A run that fails is recorded and does not stop the others; the exit code is then 3.
    """
    from wirelessfl.analysis.report.page import write_report
    from wirelessfl.cli.study_table import print_study, study_progress
    from wirelessfl.study import load_study, run_study
    from wirelessfl.study.curves import StudyCurves
    from wirelessfl.summary import to_json
    from wirelessfl.summary.style import FigureOptions

    design = load_study(source, overrides, allow_plugins=allow_plugins)
    for note in design.notes:
        remark(f"note: {note}")
    with study_progress(design, quiet=quiet) as on_message:
        result = run_study(
            design,
            out,
            workers=workers,
            threads=threads,
            device=device,
            scheduler=scheduler,
            resume=resume,
            fail_fast=fail_fast,
            figures=FigureOptions(form, width),
            on_message=on_message,
        )
    if len(result.failures) < len(result.records):
        write_report([result.path])
        for words in StudyCurves(result).remarks():
            remark(f"note: {words}")
    if as_json:
        say(to_json(result.as_mapping()), nl=False)
    elif not quiet:
        print_study(result)
    _refuse_failures(result)


def _refuse_failures(result: Study) -> None:
    from wirelessfl.errors import InfeasibleError, precondition

    lines = [f"{result.describe(record)}: {record.error}" for record in result.failures[:MOST_FAILURES]]
    more = [f"and {len(result.failures) - MOST_FAILURES} more"] if len(result.failures) > MOST_FAILURES else []
    precondition(
        not result.failures,
        f"{len(result.failures)} of {len(result.records)} runs failed; {result.folder.record} has all, "
        "--resume tries them again:\n  " + "\n  ".join([*lines, *more]),
        InfeasibleError,
    )
