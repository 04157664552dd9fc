"""``wirelessfl validate``: check a scenario and show its plan without running it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirelessfl.cli.options import json_option, override_option, plugins_option, scenario_argument
from wirelessfl.cli.terminal import open_console, remark, say

if TYPE_CHECKING:
    from wirelessfl.api import Plan


@click.command()
@scenario_argument
@override_option
@plugins_option
@click.option("--plot", is_flag=True, help="Draw who is where and connected with whom: NAME-topology.png.")
@json_option
def command(scenario: str, overrides: tuple[str, ...], allow_plugins: bool, plot: bool, as_json: bool) -> None:
    """Check SCENARIO and print its plan: sizes, airtime, noise, both ε to be expected, memory.

    The protocol is rehearsed over all rounds with everything but the training, so that time and privacy are those of
    the run with this seed.
    """
    from wirelessfl.api import make_plan, plot_topology
    from wirelessfl.scenario import resolve_scenario
    from wirelessfl.summary import to_json

    resolved = resolve_scenario(scenario, overrides, allow_plugins=allow_plugins)
    for note in resolved.notes:
        remark(f"note: {note}")
    if plot:
        picture = Path(f"{resolved.scenario.name}-topology.png")
        plot_topology(resolved.scenario, picture)
        remark(f"picture: {picture}")
    plan = make_plan(resolved.scenario)
    if as_json:
        say(to_json(plan.as_mapping()), nl=False)
    else:
        _print(plan)


def _print(plan: Plan) -> None:
    from rich.table import Table
    from rich.text import Text

    from wirelessfl.cli.console import duration_text
    from wirelessfl.summary import epsilon_text

    forecast = plan.forecast
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()

    def row(name: str, value: Any) -> None:
        table.add_row(name, Text(str(value)))

    row("scenario", f"{plan.name}: valid")
    row("model", f"d = {plan.dimension:,} parameters")
    row("data", f"|D| = {plan.samples:,} samples of {plan.clients:,} clients")
    row("rounds", f"{forecast.rounds}, with {forecast.participants_mean:.1f} clients heard on average")
    row("airtime", f"{duration_text(forecast.airtime)} a round")
    if math.isfinite(plan.coherence_s):
        row("coherence time", duration_text(plan.coherence_s))
    if not math.isnan(plan.upload_s):
        times = "" if math.isinf(plan.coherence_s) else f", {plan.upload_s / plan.coherence_s:.3g} coherence times"
        row("upload", f"{duration_text(plan.upload_s)} at the median path gain{times}")
    if math.isfinite(plan.coherence_s) or plan.pieces > 1:
        row("pieces", f"{plan.pieces} of a slot or upload")
    if not math.isnan(plan.training_s):
        row("deadline", f"a slot fits that starts within {duration_text(plan.training_s)} of the broadcast")
    row("simulated time", f"{duration_text(forecast.round_time)} a round, {duration_text(forecast.sim_time)} in all")
    if not math.isnan(forecast.effective_noise_std):
        row("effective noise", f"σ_m = {forecast.effective_noise_std:.4g} a coordinate, before rescaling")
    if not math.isnan(forecast.aggregate_noise_std):
        row("noise on weights", f"{forecast.aggregate_noise_std:.4g} a coordinate and round, rescaled (times τ)")
    if not math.isnan(forecast.effective_noise_std):
        row("gains", f"server α_u = {forecast.server_gain:.4g}, jammer α_CJ = {forecast.jammer_gain:.4g}")
    if plan.shortfall_probability > 0:
        row("jammer short", f"in {plan.shortfall_probability:.2%} of the rounds, allowed {plan.max_shortfall:.2%}")
    row("ε published", f"{epsilon_text(forecast.epsilon_published)} at δ = {plan.delta:g}")
    row("ε accounted", f"{epsilon_text(forecast.epsilon_accounted)} at δ = {plan.delta:g}")
    for reason in forecast.why_different:
        row("", f"• {reason}")
    for note in plan.notes:
        row("note", note)
    row("memory", f"about {forecast.memory_bytes / 2**20:,.0f} MiB")
    open_console().print(table)
