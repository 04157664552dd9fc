"""``wirelessfl papers``: the commands of the package ``publications``, which does not ship in the wheel."""

import importlib
import sys
from pathlib import Path

import click
from typing_extensions import override

from wirelessfl.errors import InfeasibleError


def find_publications() -> click.Group:
    """Commands of ``publications``, found beside this package, installed, or in the current folder.

    Raises:
        InfeasibleError: it is in none of these places.
    """
    places = [Path(__file__).resolve().parents[2], Path.cwd()]
    for folder in places:
        if (folder / "publications" / "commands.py").is_file() and str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        commands: click.Group = importlib.import_module("publications.commands").command
    except ModuleNotFoundError as error:
        if error.name not in ("publications", "publications.commands"):
            raise
        raise InfeasibleError(
            "the papers are in the package publications, which is part of the source of wirelessfl and not of its "
            f"wheel: not found in {', '.join(map(str, places))}, nor installed. Get the source (a checkout of the "
            "repository, or the sdist of this version) and run this command in its top folder"
        ) from None
    return commands


class Papers(click.Group):
    """Group of the commands of ``publications``, found on demand."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return find_publications().list_commands(ctx)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find_publications().get_command(ctx, cmd_name)


@click.command(cls=Papers, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Re-run the experiments of published papers, and see which of their claims hold.

    From the source of wirelessfl only: the wheel does not have them.
    """
    if context.invoked_subcommand is None:
        listing = find_publications().get_command(context, "list")
        assert listing is not None
        context.invoke(listing)
