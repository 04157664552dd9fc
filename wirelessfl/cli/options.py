"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

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


def json_option(command: Command) -> Command:
    """``--json``: machine-readable results alone on stdout."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON alone on stdout.")(command)
