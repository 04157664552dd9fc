"""The lists of the page on what stays stable, made from the package when the site is built.

MkDocs calls the functions named ``on_…``. A line ``<!-- stable: WHAT -->`` becomes the list of that name.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import wirelessfl as wfl
from wirelessfl import errors
from wirelessfl.cli import main
from wirelessfl.folder import RunFolder
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.scenario import families as all_families
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import GROUPS
from wirelessfl.trace.layout import VERSION
from wirelessfl.version import package_version

_PLACE = re.compile(r"^<!-- stable: (?P<what>.+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the lists in."""
    return _PLACE.sub(lambda place: LISTS[place["what"]](), markdown)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def commands() -> str:
    """Every command with its first sentence and the names of its options."""
    assert isinstance(main, click.Group)
    context = click.Context(main, info_name="wirelessfl")
    rows = []
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        below = command.list_commands(context) if isinstance(command, click.Group) else []
        longest = [max(option.opts, key=len) for option in options if not option.hidden]
        rows.append((f"`{name}`", command.get_short_help_str(200), _names([*below, *longest])))
    return _table(("command", "does", "commands below it, and options"), rows)


def exit_codes() -> str:
    """Every exit code with the exceptions that lead to it."""
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.WirelessFLError)
    ]
    roots = [kind for kind in kinds if "exit_code" in vars(kind) and kind is not errors.WirelessFLError]
    rows = [("0", "done"), *((str(kind.exit_code), (kind.__doc__ or "").partition("\n")[0]) for kind in roots)]
    return _table(("code", "when"), rows)


def sections() -> str:
    """Keys of the first level."""
    return _names(Scenario.model_fields)


def groups() -> str:
    """Groups of a trace with their dimensions."""
    rows = []
    for group in GROUPS:
        dims = {dim: None for variable in group.variables for dim in variable.dims}
        rows.append((f"`{group.path}`", _names(dims), str(len(group.variables))))
    return _table(("group", "dimensions", "variables"), rows)


def files() -> str:
    """Names of the files in the folder of a run."""
    return _names(sorted(file.name for file in RunFolder(Path()).files))


def summary() -> str:
    """Keys of the summary of a small run."""
    keys = {"clients.count": 4, "data.limit": 40, "training.epochs": 1, "rounds": 1}
    with tempfile.TemporaryDirectory() as folder:
        run = wfl.simulate("quickstart", folder, overrides=keys, device="cpu", pictures=False)
    return _names(run.summary)


def names() -> str:
    """Public names of the package."""
    return _names(f"wirelessfl.{name}" for name in wfl.__all__)


def families() -> str:
    """Names of the families."""
    return _names(all_families())


def versions() -> str:
    """Versions of package, streams and trace."""
    rows = [("package", package_version()), ("random streams", str(STREAM_VERSION)), ("trace", str(VERSION))]
    return _table(("of", "version"), rows)


LISTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "exit codes": exit_codes,
    "sections": sections,
    "groups": groups,
    "files": files,
    "summary": summary,
    "names": names,
    "families": families,
    "versions": versions,
}
"""List of each name."""
