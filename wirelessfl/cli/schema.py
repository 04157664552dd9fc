"""``wirelessfl schema``: the JSON Schema of scenario files."""

from __future__ import annotations

import json

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from wirelessfl.scenario import scenario_schema

    click.echo(json.dumps(scenario_schema(), indent=2, ensure_ascii=False))
