"""``wirelessfl families``: the families of variants, their members, and what code of your own must be."""

import json
from collections.abc import Iterator
from typing import Any

import click

from wirelessfl.cli.terminal import open_console, say


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON on stdout.")
def command(name: str | None, as_json: bool) -> None:
    """List the families of variants, or show one: members with their keys, protocol and conformance check.

    Members are what a key such as channel.fading can be. Where the list says own: yes, code of your own takes the
    place of a member: write package.module:Name under the tag, and its arguments under options.
    """
    from rich.table import Table

    from wirelessfl.assembly.objects import describe
    from wirelessfl.scenario.scenario import families

    if as_json:
        shown = describe(name) if name else [describe(one) for one in families()]
        say(json.dumps(shown, indent=2, ensure_ascii=False))
    elif name:
        for line in _lines(describe(name)):
            open_console().print(line)
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for title in ("family", "key", "own", "members"):
            table.add_column(title, no_wrap=title != "members")
        for family in families().values():
            own = "no" if family.external is None else "yes"
            table.add_row(family.name, f"{family.paths[0]}.{family.tag}", own, ", ".join(family.members))
        open_console().print(table)


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
