"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from wirelessfl.cli.terminal import remark

if TYPE_CHECKING:
    from wirelessfl.scenario import Scenario


class OutputPath(click.Path):
    """Path of an output; the empty name, which Python takes for the current folder, is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("found an empty name; allowed: a path (. is the current folder)", param, ctx)
        return super().convert(value, param, ctx)


scenario_argument = click.argument("scenario", metavar="SCENARIO")
override_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key: a dotted path and a YAML value, e.g. uplink.jammer.epsilon=0.5.",
)
plugins_option = click.option(
    "--allow-plugins",
    is_flag=True,
    help="Run code from outside the package that a recorded scenario names; a file of your own needs no leave.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON alone on stdout.")


def read_scenario(source: str, overrides: tuple[str, ...], allow_plugins: bool) -> Scenario:
    """The scenario of a command, with a note on stderr for every key that an override dropped."""
    from wirelessfl.scenario import resolve_scenario

    resolved = resolve_scenario(source, overrides, allow_plugins=allow_plugins)
    for note in resolved.notes:
        remark(f"note: {note}")
    return resolved.scenario
