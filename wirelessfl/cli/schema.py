"""``wirelessfl schema``: the JSON Schema of scenario and study files."""

import json

import click

from wirelessfl.cli.terminal import say


@click.command()
@click.option("--study", is_flag=True, help="The schema of study files.")
def command(study: bool) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from wirelessfl.scenario import scenario_schema
    from wirelessfl.study import study_schema

    say(json.dumps(study_schema() if study else scenario_schema(), indent=2, ensure_ascii=False))
