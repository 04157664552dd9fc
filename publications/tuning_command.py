"""The command ``python -m publications tune``."""

from __future__ import annotations

from pathlib import Path

import click

import wirelessfl as wfl
from publications.provenance import current_commit
from publications.studies import Size
from publications.sweeps import SWEEPS
from publications.tuning import Sweep
from publications.tuning_page import choice_rows, write_sweep_figure
from publications.tuning_runs import read_trials, run_sweep, tuned_file, tuned_study, write_trials
from wirelessfl.errors import OutputError, ScenarioError


def tune_paper(
    paper: str,
    size: Size,
    only: tuple[str, ...],
    folder: Path,
    work: Path,
    *,
    workers: int | None,
    resume: bool,
    quiet: bool,
) -> None:
    """Run the sweeps of a paper, and write results, pictures and, where a sweep has one, its tuned study.

    Args:
        paper: Its name.
        size: In which size.
        only: These sweeps alone; all if empty.
        folder: Where results go.
        work: Where traces go.
        workers: Processes.
        resume: Keep what is finished.
        quiet: Print nothing.

    Raises:
        ScenarioError: a sweep is not known.
        OutputError: a file cannot be written.
    """
    sweeps = _chosen(paper, size, only)
    commit = current_commit()  # before the first sweep writes its study beside those that are committed
    for sweep in sweeps:
        trials = run_sweep(
            paper,
            sweep,
            work,
            commit,
            lambda design: wfl.study_progress(design, quiet=quiet),
            workers=workers,
            resume=resume,
        )
        try:
            write_trials(folder, sweep, trials)
            # From the file, whose numbers have six digits: whoever reads it chooses the same.
            kept = read_trials(folder, sweep)
            write_sweep_figure(folder, paper, sweep, kept)
            if sweep.reported:
                tuned_file(paper, sweep).write_text(tuned_study(paper, sweep, kept), encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{error.filename} cannot be written: {error.strerror or error}") from error
        if not quiet:
            click.echo(f"{sweep.title}")
            for row in choice_rows(sweep, kept):
                click.echo("  " + "; ".join(f"{head}: {text}" for head, text in row.items()))
            if sweep.reported:
                click.echo(f"study  {tuned_file(paper, sweep)}")


def _chosen(paper: str, size: Size, only: tuple[str, ...]) -> list[Sweep]:
    here = [sweep for sweep in SWEEPS.get(paper, ()) if sweep.size == size]
    known = [sweep.name for sweep in here]
    wrong = [name for name in only if name not in known]
    if wrong or not here:
        found = ", ".join(wrong) if wrong else f"no sweep in size {size}"
        raise ScenarioError(f"{paper}: found {found}; allowed: {', '.join(known) or 'no sweep'}")
    return [sweep for sweep in here if not only or sweep.name in only]
