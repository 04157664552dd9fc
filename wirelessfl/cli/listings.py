"""Commands that show what there is: shipped scenarios, families of variants, the JSON Schema, and papers."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import click
from typing_extensions import override

from wirelessfl.cli.terminal import open_console, say
from wirelessfl.errors import InfeasibleError


@click.group(invoke_without_command=True)
@click.pass_context
def scenarios(context: click.Context) -> None:
    """List, show or copy the shipped scenarios and studies."""
    if context.invoked_subcommand is None:
        context.invoke(list_scenarios)


@scenarios.command("list")
@click.option("--studies", is_flag=True, help="List the shipped studies instead, for `wirelessfl study`.")
def list_scenarios(studies: bool) -> None:
    """List the shipped scenarios with what they show."""
    from wirelessfl.cli.console import print_table
    from wirelessfl.scenario import list_shipped

    print_table(
        ("name", "what it shows"),
        ((shipped.name, shipped.description) for shipped in list_shipped("studies" if studies else "scenarios")),
    )


@scenarios.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a shipped scenario or study as it is written."""
    from wirelessfl.scenario import locate

    say(locate(name, _shelf(name)).read_text(encoding="utf-8"), nl=False)


@scenarios.command()
@click.argument("name")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def copy(name: str, folder: Path) -> None:
    """Copy a shipped scenario or study into FOLDER (by default the current one), to change it there."""
    from wirelessfl.scenario import copy_shipped

    say(f"copied to {copy_shipped(name, folder, _shelf(name))}")


def _shelf(name: str) -> Literal["scenarios", "studies"]:
    from wirelessfl.scenario import list_shipped

    return "studies" if any(study.name == name for study in list_shipped("studies")) else "scenarios"


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON on stdout.")
def families(name: str | None, as_json: bool) -> None:
    """List the families of variants, or show one: members with their keys, protocol and conformance check.

    Members are the values that a key such as channel.fading can have. Where the column own says yes, code of your own
    can be used instead of a member: write package.module:Name as the value, and its arguments under options.
    """
    from wirelessfl.assembly.objects import describe
    from wirelessfl.cli.console import print_table
    from wirelessfl.scenario.scenario import families as known

    if as_json:
        shown = describe(name) if name else [describe(one) for one in known()]
        say(json.dumps(shown, indent=2, ensure_ascii=False))
    elif name:
        for line in _lines(describe(name)):
            open_console().print(line)
    else:
        rows = (
            (one.name, f"{one.paths[0]}.{one.tag}", "no" if one.external is None else "yes", ", ".join(one.members))
            for one in known().values()
        )
        print_table(("family", "key", "own", "members"), rows)


def _lines(family: dict[str, Any]) -> Iterator[Any]:
    # Indented by what it belongs to
    from rich.padding import Padding
    from rich.text import Text

    def entry(indent: int, head: str, meaning: str) -> Padding:
        return Padding(Text.assemble((head, "bold"), "  ", meaning), (0, 0, 0, indent), expand=False)

    yield from (entry(0, f"{path}.{family['tag']}", f"default {family['default']}") for path in family["paths"])
    for tag, member in family["members"].items():
        yield entry(2, tag, member["meaning"])
        yield from (entry(6, _key(key, info), info["meaning"]) for key, info in member["keys"].items())
    outside = family["outside"]
    if outside is None:
        yield entry(2, "of your own", "no: its members belong to the package")
        return
    yield from (
        entry(2, "package.module:Name", "code of your own"),
        *(entry(6, _key(key, info), info["meaning"]) for key, info in outside["keys"].items()),
        entry(0, outside["protocol"], outside["meaning"]),
        *(entry(2, signature, "") for signature in outside["signatures"]),
    )
    if outside["context"]:
        yield entry(0, "filled in", "by name, where a parameter has no default and is no option")
        yield from (entry(2, name, kind) for name, kind in outside["context"].items())
    yield entry(0, "check", outside["check"])


def _key(key: str, info: dict[str, Any]) -> str:
    from wirelessfl.scenario.yamltree import inline_yaml

    return f"{key}: {inline_yaml(info['default'])}" if "default" in info else key


@click.command()
@click.option("--study", is_flag=True, help="Print the schema of study files instead.")
def schema(study: bool) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from wirelessfl.scenario import scenario_schema
    from wirelessfl.study import study_schema

    say(json.dumps(study_schema() if study else scenario_schema(), indent=2, ensure_ascii=False))


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
def papers(context: click.Context) -> None:
    """Re-run the experiments of published papers, and see which of their claims hold.

    From the source of wirelessfl only: the wheel does not have them.
    """
    if context.invoked_subcommand is None:
        listing = find_publications().get_command(context, "list")
        assert listing is not None
        context.invoke(listing)
