"""``wirelessfl scenarios``: the scenarios and studies that ship with the package."""

from pathlib import Path
from typing import Literal

import click

from wirelessfl.cli.terminal import say


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, show or copy the shipped scenarios and studies."""
    if context.invoked_subcommand is None:
        context.invoke(list_scenarios)


@command.command("list")
@click.option("--studies", is_flag=True, help="The shipped studies instead, for `wirelessfl study`.")
def list_scenarios(studies: bool) -> None:
    """List the shipped scenarios with what they show."""
    from wirelessfl.cli.console import print_table
    from wirelessfl.scenario import list_shipped

    print_table(
        ("name", "what it shows"),
        ((shipped.name, shipped.description) for shipped in list_shipped("studies" if studies else "scenarios")),
    )


@command.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a shipped scenario or study as it is written."""
    from wirelessfl.scenario import locate

    say(locate(name, _shelf(name)).read_text(encoding="utf-8"), nl=False)


@command.command()
@click.argument("name")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def copy(name: str, folder: Path) -> None:
    """Copy a shipped scenario or study into FOLDER (here without it), to make it your own."""
    from wirelessfl.scenario import copy_shipped

    say(f"copied to {copy_shipped(name, folder, _shelf(name))}")


def _shelf(name: str) -> Literal["scenarios", "studies"]:
    from wirelessfl.scenario import list_shipped

    return "studies" if any(study.name == name for study in list_shipped("studies")) else "scenarios"
