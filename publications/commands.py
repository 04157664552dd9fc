"""The commands of ``wirelessfl papers`` and ``python -m publications``."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

import wirelessfl as wfl
from publications.catalogue import PAPERS, find_paper
from publications.check import check_claims, check_page, check_runs
from publications.claims import Outcome
from publications.page import claim_rows, remake_page, stored_text, write_page
from publications.paper import Paper
from publications.results import largest, read_results, read_tables, size_folder, stored_tables
from publications.runner import Request, collect_paper, run_paper
from publications.stored import MOST_SECONDS, draw, drawn_text, foreign_trials, is_short, stored_runs, stored_trials
from publications.studies import SIZES, Size
from publications.texts import table_for_people
from publications.tuning_command import tune_paper
from wirelessfl.errors import CheckFailed, OutputError


def _folder(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    if not value:
        raise click.BadParameter("found an empty name; allowed: a path (. is the current folder)")
    return Path(value)


SIZE_HELP = "full is the paper's own size; small has the same structure for two cores; medium lies between, for some."
size_option = click.option("--size", type=click.Choice(SIZES), default="small", show_default=True, help=SIZE_HELP)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change every study: base.rounds=2, seeds=1. The result then is no longer the paper's.",
)
out_option = click.option(
    "--out",
    default="results",
    callback=_folder,
    show_default=True,
    metavar="PATH",
    help="Folder below which papers/NAME lies.",
)


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Re-run the experiments of published papers, and see which of their claims hold."""
    if context.invoked_subcommand is None:
        context.invoke(list_papers)


@command.command("list")
def list_papers() -> None:
    """List the papers with their studies."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("paper")
    table.add_column("studies")
    table.add_column("claims", justify="right")
    for paper in PAPERS.values():
        studies = ", ".join(study.name for study in paper.studies)
        table.add_row(paper.name, f"{paper.title} ({paper.reference})", studies, str(len(paper.claims)))
    Console(markup=False, emoji=False).print(table)


@command.command()
@click.argument("name")
@size_option
@click.option(
    "--study", "only", multiple=True, metavar="NAME", help="This study alone; give it several times for more."
)
@set_option
@click.option("--workers", type=click.IntRange(min=1), help="Processes [one a core].")
@click.option("--resume", is_flag=True, help="Keep finished runs, compute what is new or missing.")
@click.option("--no-audit", is_flag=True, help="Leave the audits out.")
@out_option
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
def run(
    name: str,
    size: Size,
    only: tuple[str, ...],
    overrides: tuple[str, ...],
    workers: int | None,
    resume: bool,
    no_audit: bool,
    out: Path,
    quiet: bool,
) -> None:
    """Run every study of the paper NAME, judge its claims and write its page to results/papers/NAME.

    Traces go to results/papers-runs/NAME/SIZE, with the commit of every run in provenance.json. A claim that does not
    hold is a result, not an error.
    """
    paper = find_paper(name)
    request = Request(
        paper,
        size,
        out / "papers-runs" / paper.name / size,
        overrides,
        workers,
        resume,
        audits=not no_audit,
        command=_words(name, size, overrides),
        only=only,
        stored=stored_tables(paper, size_folder(out, paper, size), overrides),
    )
    run_paper(request, lambda design: wfl.study_progress(design, quiet=quiet))
    _write(request, out, quiet=quiet)


@command.command()
@click.argument("name")
@size_option
@set_option
@out_option
@click.option("--quiet", is_flag=True, help="No tables.")
def collect(name: str, size: Size, overrides: tuple[str, ...], out: Path, quiet: bool) -> None:
    """Write the page of the paper NAME from the runs that have ended so far; nothing is computed.

    Points of which a seed is missing are stored, and judged when their last run has ended. It may be done while the
    studies run.
    """
    paper = find_paper(name)
    request = Request(
        paper,
        size,
        out / "papers-runs" / paper.name / size,
        overrides,
        command=_words(name, size, overrides),
        stored=stored_tables(paper, size_folder(out, paper, size), overrides),
    )
    _write(request, out, quiet=quiet)


def _words(name: str, size: Size, overrides: tuple[str, ...]) -> str:
    words = ["wirelessfl", "papers", "run", name, "--size", size]
    return shlex.join([*words, *(word for override in overrides for word in ("--set", override))])


def _write(request: Request, out: Path, *, quiet: bool) -> None:
    tables = collect_paper(request)
    folder = write_page(request.paper, tables, out)
    if not quiet:
        _print(request.paper, out)
        click.echo(f"runs  {stored_text(tables)} of size {request.size}")
        click.echo(f"page  {folder}")


@command.command()
@click.argument("name")
@size_option
@click.option("--sweep", "only", multiple=True, metavar="NAME", help="This sweep alone; repeat it for more.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes [one a core].")
@click.option("--resume", is_flag=True, help="Keep finished runs, compute what is new or missing.")
@out_option
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
def tune(
    name: str, size: Size, only: tuple[str, ...], workers: int | None, resume: bool, out: Path, quiet: bool
) -> None:
    """Tune every compared method of the paper NAME on validation samples, all by the same budget.

    Writes tuning-SWEEP.csv and its picture to results/papers/NAME, and beside the other studies of the paper the study
    tuned-SWEEP, which runs every method at the setting that won. Traces go to results/papers-runs/NAME/tuning/SIZE.
    """
    tune_paper(
        name,
        size,
        only,
        size_folder(out, find_paper(name), size),
        out / "papers-runs" / name / "tuning" / size,
        workers=workers,
        resume=resume,
        quiet=quiet,
    )


@command.command()
@click.argument("name")
@out_option
def table(name: str, out: Path) -> None:
    """Print the tables and verdicts of the paper NAME from its results, and write them anew."""
    paper = find_paper(name)
    read_results(paper, out)
    remake_page(paper, out)
    _print(paper, out)


@command.command()
@click.argument("name", required=False)
@click.option("--size", type=click.Choice(SIZES), help="Only this size [all that have results].")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Also re-run so many runs and tuning trials, drawn evenly; without --size those of at most "
    f"{MOST_SECONDS:g} s.",
)
@out_option
def check(name: str | None, size: Size | None, sample: int | None, out: Path) -> None:
    """Check the results of the paper NAME, or of all papers: what follows from the runs, and runs against new ones.

    A run that comes out differently in the last digit of any number ends with exit code 4. Another version of torch or
    of wirelessfl, another processor or a GPU rounds differently: what was learnt is then compared within a limit that
    the line says, and everything else to nine digits.
    """
    found, compared = [], 0
    for paper in [find_paper(name)] if name else PAPERS.values():
        lines, runs = _check(paper, size, sample, out)
        found += [f"{paper.name}, {line}" for line in lines]
        compared += runs
    if found:
        raise CheckFailed(f"{out}: {len(found)} differences:\n  " + "\n  ".join(found))
    alone = " of tables and verdicts; no run was compared" if sample is not None and not compared else ""
    click.echo(f"{out}: no difference{alone}")


def _check(paper: Paper, size: Size | None, sample: int | None, out: Path) -> tuple[list[str], int]:
    """Differences of a paper, and how many runs and trials were made again to find them."""
    results = read_results(paper, out)
    if size is not None and size not in results:
        raise OutputError(f"{size_folder(out, paper, size)}: found no results of {paper.name} in size {size}")
    found = check_claims(paper, results, size_folder(out, paper, "small"))

    for one, tables in results.items():
        if size in (None, one):
            found += check_page(paper, tables, size_folder(out, paper, one))
    if sample is None:
        return found, 0
    sizes = tuple(results) if size is None else (size,)
    lines, compared = _check_sample(paper, sizes, size is not None, sample, out)
    return found + lines, compared


def _check_sample(paper: Paper, sizes: Sequence[Size], long: bool, sample: int, out: Path) -> tuple[list[str], int]:
    """Differences of runs and trials that are drawn from some sizes, long ones among them or not, and their number."""
    there, found = [], []
    for size in sizes:
        folder = size_folder(out, paper, size)
        there += [*stored_runs(paper, read_tables(paper, folder, unfinished=True))]
        there += [*stored_trials(paper, size, folder)]
        found += [f"{size}, {line}" for line in foreign_trials(paper, size, folder)]
    allowed = [one for one in there if long or is_short(one)]
    chosen = draw(allowed, sample)
    click.echo(f"{paper.name}: {drawn_text(chosen, allowed, there, sizes)}")
    with tempfile.TemporaryDirectory() as place:
        found += check_runs(chosen, Path(place), lambda line: click.echo(f"{paper.name}, {line}"))
    return found, len(chosen)


def _print(paper: Paper, out: Path) -> None:
    console = Console(markup=False, emoji=False)
    console.print(Text(f"{paper.title} ({paper.reference})", style="bold"))
    results = read_results(paper, out)
    for study in paper.studies:
        size = largest(results, study.name)
        if size is None:
            continue
        rows = table_for_people(results[size], study)
        console.print(Text(f"\n{study.name} ({size}): {study.title}", style="italic"))
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for head in rows[0]:
            # A heading breaks between words, a number never: on a narrow terminal the lines run over instead.
            longest = max(len(text) for text in (*head.split(), *(row[head] for row in rows)))
            shown.add_column(head, min_width=longest)
        for row in rows:
            shown.add_row(*(Text(text) for text in row.values()))
        console.print(shown, crop=False)
    console.print()
    verdicts = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("claim", "outcome", "effect", "at the paper's size"):
        verdicts.add_column(head, overflow="fold")
    for row in claim_rows(paper, results):
        style = _STYLES[Outcome(row["outcome"])]
        effect = row["effect"] or row["reason"]
        verdicts.add_row(
            Text(row["claim"]), Text(row["outcome"], style=style), Text(effect), Text(row["at_paper_size"])
        )
    console.print(verdicts)


_STYLES = {
    Outcome.CONFIRMED: "green",
    Outcome.CONTRADICTED: "red",
    Outcome.UNDECIDED: "yellow",
    Outcome.NOT_TESTED: "dim",
}
