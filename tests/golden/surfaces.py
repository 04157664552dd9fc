"""Every stable name of the package, as the page on stability has it: what is written down here does not go unnoticed.

``python -m tests.golden.surfaces`` adds the names that are new, at a release; one that goes is taken out by hand, with
its line in the changelog.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

import wirelessfl as wfl
from wirelessfl.cli import main
from wirelessfl.folder import RunFolder
from wirelessfl.scenario import Scenario, all_keys
from wirelessfl.study.file import StudyFile
from wirelessfl.trace import GROUPS

WRITTEN = Path(__file__).with_name("surfaces.json")

Surfaces = dict[str, list[str]]


def surfaces() -> Surfaces:
    """Names of every surface, ascending."""
    assert isinstance(main, click.Group)
    return {
        "commands": sorted(_commands(main, click.Context(main), "")),
        "scenario": sorted({f"{key.path} ({key.variant})" if key.variant else key.path for key in all_keys(Scenario)}),
        "study": sorted({key.path for key in all_keys(StudyFile)}),
        "trace": sorted(_variables()),
        "files": sorted(file.name for file in RunFolder(Path()).files),
        "python": sorted(wfl.__all__),
    }


def _commands(command: click.Command, context: click.Context, name: str) -> Iterator[str]:
    for parameter in command.params:
        options = isinstance(parameter, click.Option)
        yield from (f"{name} {option}".strip() for option in parameter.opts if options)
        if not options:
            yield f"{name} {parameter.make_metavar(context)}"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from _commands(found, context, f"{name} {below}".strip())
    else:
        yield name


def _variables() -> Iterator[str]:
    for group in GROUPS:
        for variable in (*group.coordinates, *group.variables):
            yield f"{group.path.rstrip('/')}/{variable.name} ({', '.join(variable.dims)}) {variable.units}"
        yield from (f"{group.path}@{attribute.name}" for attribute in group.attributes)


def written() -> Surfaces:
    """Names that were written down."""
    surfaces: Surfaces = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return surfaces


if __name__ == "__main__":
    before = written() if WRITTEN.exists() else {}
    now = {kind: sorted({*names, *before.get(kind, [])}) for kind, names in surfaces().items()}
    WRITTEN.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
