"""``wirelessfl validate``: check of a scenario, and its plan."""

from pathlib import Path

import click

from wirelessfl.cli.options import json_option, override_option, plugins_option, read_scenario, scenario_argument
from wirelessfl.cli.terminal import remark, say


@click.command()
@scenario_argument
@override_option
@plugins_option
@click.option("--plot", is_flag=True, help="Draw all nodes and their links: NAME-topology.png.")
@json_option
def command(scenario: str, overrides: tuple[str, ...], allow_plugins: bool, plot: bool, as_json: bool) -> None:
    """Check SCENARIO and print its plan: sizes, airtime, noise, both ε to be expected, memory.

    The protocol is rehearsed over all rounds with everything but the training, so that time and privacy are those of
    the run with this seed.
    """
    from wirelessfl.api import make_plan, plot_topology
    from wirelessfl.cli.console import plan_rows, print_rows
    from wirelessfl.summary import to_json

    resolved = read_scenario(scenario, overrides, allow_plugins)
    if plot:
        picture = Path(f"{resolved.name}-topology.png")
        plot_topology(resolved, picture)
        remark(f"picture: {picture}")
    plan = make_plan(resolved)
    if as_json:
        say(to_json(plan.as_mapping()), nl=False)
    else:
        print_rows(plan_rows(plan))
