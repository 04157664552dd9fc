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

    from wirelessfl.scenario import shipped_scenarios

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows")
    for name, description in shipped_scenarios().items():
        table.add_row(name, description)
    Console().print(table)


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a shipped scenario as it is written."""
    from wirelessfl.scenario import show_scenario

    click.echo(show_scenario(name), nl=False)


@command.command()
@click.argument("name")
@click.argument("target", required=False, type=click.Path(path_type=Path))
def copy(name: str, target: Path | None) -> None:
    """Copy a shipped scenario to NAME.yaml here, or to TARGET, to make it your own."""
    from wirelessfl.scenario import copy_scenario

    click.echo(f"copied to {copy_scenario(name, target)}")
