"""``wirelessfl validate``: check of a scenario, and its plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.options import json_option, override_option, plugins_option, read_scenario, scenario_argument
from wirelessfl.cli.terminal import remark, say

if TYPE_CHECKING:
    from wirelessfl.api import Plan


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
    from wirelessfl.cli.console import print_rows
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
        print_rows(_rows(plan))


def _rows(plan: Plan) -> Iterator[tuple[str, str]]:
    from wirelessfl.cli.console import duration_text
    from wirelessfl.summary import epsilon_text

    forecast = plan.forecast
    yield from (
        ("scenario", f"{plan.name}: valid"),
        ("model", f"d = {plan.dimension:,} parameters"),
        ("data", f"|D| = {plan.samples:,} samples of {plan.clients:,} clients"),
        ("rounds", f"{forecast.rounds}, with {forecast.participants_mean:.1f} clients heard on average"),
        ("airtime", f"{duration_text(forecast.airtime)} a round"),
    )
    if math.isfinite(plan.coherence_s):
        yield ("coherence time", duration_text(plan.coherence_s))
    if not math.isnan(plan.upload_s):
        times = "" if math.isinf(plan.coherence_s) else f", {plan.upload_s / plan.coherence_s:.3g} coherence times"
        yield ("upload", f"{duration_text(plan.upload_s)} at the median path gain{times}")
    if math.isfinite(plan.coherence_s) or plan.pieces > 1:
        yield ("pieces", f"{plan.pieces} of a slot or upload")
    if not math.isnan(plan.training_s):
        yield ("deadline", f"a slot fits that starts within {duration_text(plan.training_s)} of the broadcast")
    yield ("simulated time", f"{duration_text(forecast.round_time)} a round, {duration_text(forecast.sim_time)} in all")
    if not math.isnan(forecast.effective_noise_std):
        yield ("effective noise", f"σ_m = {forecast.effective_noise_std:.4g} a coordinate, before rescaling")
    if not math.isnan(forecast.aggregate_noise_std):
        yield ("noise on weights", f"{forecast.aggregate_noise_std:.4g} a coordinate and round, rescaled (times τ)")
    if not math.isnan(forecast.effective_noise_std):
        yield ("gains", f"server α_u = {forecast.server_gain:.4g}, jammer α_CJ = {forecast.jammer_gain:.4g}")
    if plan.shortfall_probability > 0:
        yield ("jammer short", f"in {plan.shortfall_probability:.2%} of the rounds, allowed {plan.max_shortfall:.2%}")
    yield from (
        ("ε published", f"{epsilon_text(forecast.epsilon_published)} at δ = {plan.delta:g}"),
        ("ε accounted", f"{epsilon_text(forecast.epsilon_accounted)} at δ = {plan.delta:g}"),
        *(("", f"• {reason}") for reason in forecast.why_different),
        *(("note", note) for note in plan.notes),
        ("memory", f"about {forecast.memory_bytes / 2**20:,.0f} MiB"),
    )
