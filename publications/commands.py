"""The commands of ``wirelessfl papers`` and ``python -m publications``."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

import wirelessfl as wfl
from publications.catalogue import PAPERS, find_paper
from publications.check import check_page, check_runs
from publications.page import claim_rows, paper_folder, read_tables, remake_page, table_for_people, write_page
from publications.paper import Paper
from publications.runner import Request, run_paper
from publications.studies import Size
from publications.tables import Tables
from wirelessfl.errors import CheckFailed


def _folder(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    if not value:
        raise click.BadParameter("found an empty name; allowed: a path (. is the current folder)")
    return Path(value)


size_option = click.option(
    "--size",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
    help="full is the paper's own size, for a GPU; small the same structure for two cores.",
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
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change every study: base.rounds=2, seeds=1. The result then is no longer the paper's.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes [one a core].")
@click.option("--resume", is_flag=True, help="Keep finished runs, compute what is new or missing.")
@click.option("--no-audit", is_flag=True, help="Leave the audits out.")
@out_option
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
def run(
    name: str,
    size: Size,
    overrides: tuple[str, ...],
    workers: int | None,
    resume: bool,
    no_audit: bool,
    out: Path,
    quiet: bool,
) -> None:
    """Run every study of the paper NAME, judge its claims and write its page to results/papers/NAME.

    Traces go to results/papers-runs/NAME/SIZE. A claim that is not confirmed is a result, not an error.
    """
    paper = find_paper(name)
    words = ["wirelessfl", "papers", "run", name, "--size", size]
    words += [word for override in overrides for word in ("--set", override)]
    work = out / "papers-runs" / paper.name / size
    request = Request(paper, size, work, overrides, workers, resume, audits=not no_audit, command=shlex.join(words))
    tables = run_paper(request, lambda design: wfl.study_progress(design, quiet=quiet))
    folder = paper_folder(out, paper, size)
    write_page(paper, tables, folder)
    if not quiet:
        _print(paper, tables)
        click.echo(f"page  {folder}")


@command.command()
@click.argument("name")
@size_option
@out_option
def table(name: str, size: Size, out: Path) -> None:
    """Print the tables and verdicts of the paper NAME from its results, and write them anew."""
    paper = find_paper(name)
    folder = paper_folder(out, paper, size)
    tables = read_tables(paper, folder)
    remake_page(paper, tables, folder)
    _print(paper, tables)


@command.command()
@click.argument("name")
@size_option
@click.option("--sample", type=click.IntRange(min=1), help="Also re-run so many runs, drawn from all studies.")
@out_option
def check(name: str, size: Size, sample: int | None, out: Path) -> None:
    """Check the results of the paper NAME: tables and verdicts against its runs, and runs against new ones.

    A difference in any number, at the six digits of the results, ends with exit code 4.
    """
    paper = find_paper(name)
    folder = paper_folder(out, paper, size)
    tables = read_tables(paper, folder)
    found = check_page(paper, tables, folder)
    if sample is not None:
        with tempfile.TemporaryDirectory() as place:
            found += check_runs(paper, tables, sample, Path(place), click.echo)
    if found:
        recorded = f"recorded with wirelessfl {tables.about['version']}, torch {tables.about['torch']}"
        raise CheckFailed(f"{folder}: {len(found)} differences ({recorded}):\n  " + "\n  ".join(found))
    click.echo(f"{folder}: no difference")


def _print(paper: Paper, tables: Tables) -> None:
    console = Console(markup=False, emoji=False)
    console.print(Text(f"{paper.title} ({paper.reference})", style="bold"))
    for name in tables.studies:
        study = paper.study(name)
        rows = table_for_people(tables, study)
        console.print(Text(f"\n{name}: {study.title}", style="italic"))
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
    for head in ("claim", "verdict", "numbers"):
        verdicts.add_column(head, overflow="fold")
    for row in claim_rows(paper, tables):
        told = ". ".join(part for part in (row["numbers"], row["reason"]) if part)
        verdicts.add_row(Text(row["claim"]), Text(row["verdict"], style=_STYLES[row["verdict"]]), Text(told))
    console.print(verdicts)


_STYLES = {"confirmed": "green", "not confirmed": "red", "not tested": "yellow"}
