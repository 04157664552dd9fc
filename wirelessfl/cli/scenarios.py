"""``wirelessfl scenarios``: the scenarios that ship with the package."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, show or copy the shipped scenarios."""
    if context.invoked_subcommand is None:
        context.invoke(list_scenarios)


@command.command("list")
def list_scenarios() -> None:
    """List the shipped scenarios with what they show."""
    from rich.console import Console
    from rich.table import Table

    from wirelessfl.scenario import list_shipped

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows")
    for shipped in list_shipped():
        table.add_row(shipped.name, shipped.description)
    Console().print(table)


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a shipped scenario as it is written."""
    from wirelessfl.scenario import locate

    click.echo(locate(name).read_text(encoding="utf-8"), nl=False)


@command.command()
@click.argument("name")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def copy(name: str, folder: Path) -> None:
    """Copy a shipped scenario into FOLDER (here without it), to make it your own."""
    from wirelessfl.scenario import copy_shipped

    click.echo(f"copied to {copy_shipped(name, folder)}")
