"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class OutputPath(click.Path):
    """A place to write to; an empty name is no place, although Python takes it for the current folder."""

    def __init__(self) -> None:
        """Any name that is not empty."""
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path.

        Raises:
            click.BadParameter: it is empty.
        """
        if value == "":
            self.fail("found an empty name; allowed: a path (. is the current folder)", param, ctx)
        return super().convert(value, param, ctx)


scenario_argument = click.argument("scenario", metavar="SCENARIO")


def override_option(command: Command) -> Command:
    """``--set KEY=VALUE``, any number of times."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one key: a dotted path and a YAML value, e.g. uplink.jammer.epsilon=0.5.",
    )(command)


def plugins_option(command: Command) -> Command:
    """``--allow-plugins``: a scenario that a run left behind may name code from outside the package."""
    return click.option(
        "--allow-plugins",
        is_flag=True,
        help="Run code from outside the package that a recorded scenario names; a file of your own needs no leave.",
    )(command)


def json_option(command: Command) -> Command:
    """``--json``: machine-readable results alone on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON alone on stdout.")(command)
