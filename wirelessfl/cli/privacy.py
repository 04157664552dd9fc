"""``wirelessfl privacy``: calculators for ε, noise and jammer gain, meaning of an ε; ``wirelessfl audit``: games."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from wirelessfl.cli.figure_options import figures_option, width_option
from wirelessfl.cli.observer_map import observer_map_command
from wirelessfl.cli.terminal import (
    OutputPath,
    ScenarioCommand,
    json_option,
    open_console,
    override_option,
    plugins_option,
    progress_of,
    read_scenario,
    say,
    scenario_argument,
    time_shown,
)
from wirelessfl.errors import CheckFailed, InputError, OutputError, precondition

if TYPE_CHECKING:
    from wirelessfl.analysis.audit.audit import Audit
    from wirelessfl.summary.style import FigureFormat

NAMES = {"noise_multiplier": "noise multiplier", "jammer_gain": "jammer gain α_CJ", "needed": "jamming needed"}

delta_option = click.option("--delta", type=float, required=True, metavar="D", help="δ in (0, 1).")
accountant_option = click.option(
    "--accountant",
    type=click.Choice(["pld", "rdp"]),
    default="pld",
    show_default=True,
    help="Accountant that composes the steps.",
)
sample_rate_option = click.option(
    "--sample-rate", type=float, default=1.0, metavar="Q", show_default=True, help="Poisson sampling rate in (0, 1]."
)


@click.group()
def privacy() -> None:
    """Calculate ε from noise, noise from ε, jammer power from ε; explain what an ε means.

    Noise is taken as real numbers: what the rounding of floating-point noise gives away (Mironov 2012) is not in ε.
    """


def _answer(calculate: Callable[[Any], Mapping[str, Any]], as_json: bool) -> None:
    # Output of one of the calculators; a number out of range is an input error
    from wirelessfl.privacy import calibration
    from wirelessfl.summary import epsilon_text, to_json

    try:
        with time_shown("composing privacy losses"):
            result = calculate(calibration)
    except ValueError as error:
        raise InputError(str(error)) from error
    except ArithmeticError as error:
        raise InputError("the result is outside the range of floating-point numbers") from error
    if as_json:
        say(to_json(result), nl=False)
        return
    for name, value in result.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else epsilon_text(value)
        say(f"{NAMES.get(name, name.replace('_', ' '))}: {text}")


@privacy.command()
@click.option("--noise-multiplier", type=float, required=True, metavar="Z", help="Noise std over the clipping norm.")
@click.option("--steps", type=int, required=True, metavar="N", help="Noised steps.")
@sample_rate_option
@accountant_option
@delta_option
@json_option
def epsilon(as_json: bool, **numbers: Any) -> None:
    """ε of N steps of the Gaussian mechanism with multiplier Z."""
    _answer(lambda calculators: {"epsilon": calculators.dp_sgd_epsilon(**numbers)}, as_json)


@privacy.command()
@click.option("--epsilon", type=float, required=True, metavar="E", help="ε to be met.")
@click.option("--steps", type=int, required=True, metavar="N", help="Noised steps.")
@sample_rate_option
@accountant_option
@delta_option
@json_option
def noise(as_json: bool, **numbers: Any) -> None:
    """The noise multiplier at which N steps meet (E, D)."""
    _answer(lambda calculators: {"noise_multiplier": calculators.dp_sgd_noise_multiplier(**numbers)}, as_json)


@privacy.command()
@click.option("--epsilon", type=float, required=True, metavar="E", help="ε to be met over the whole run.")
@click.option("--rounds", type=int, required=True, metavar="M", help="Communication rounds.")
@click.option("--samples", type=int, required=True, metavar="D", help="|D|, samples of all clients.")
@click.option("--server-gain", type=float, required=True, metavar="A", help="Power-control factor of the server α_u.")
@click.option(
    "--channel-noise-std", type=float, required=True, metavar="S", help="Noise std of the receiver σ_c per real symbol."
)
@click.option(
    "--jammer-channel",
    type=float,
    default=1.0,
    metavar="H",
    show_default=True,
    help="Magnitude of the jammer's channel |h_CJ|.",
)
@click.option("--margin", type=float, default=1.0, metavar="F", show_default=True, help="Safety factor on the gain.")
@click.option(
    "--calibration",
    type=click.Choice(["theorem", "exact"]),
    default="theorem",
    show_default=True,
    help="By the paper's theorem, or exact for the given sensitivity.",
)
@click.option("--sensitivity", type=float, metavar="X", help="Per-round sensitivity for exact [1/|D|].")
@delta_option
@json_option
def jammer(as_json: bool, **numbers: Any) -> None:
    """The jammer gain α_CJ that meets (E, D) over M rounds."""
    _answer(lambda calculators: calculators.jammer_calculator(**numbers), as_json)


@privacy.command()
@click.option("--clip", type=float, required=True, metavar="G", help="Clipping norm of a gradient.")
@click.option("--noise-std", type=float, required=True, metavar="S", help="Noise std on a mini-batch mean.")
@click.option("--batch-size", type=int, required=True, metavar="B", help="Samples in a mini-batch, γ.")
@click.option("--samples", type=int, required=True, metavar="N", help="Samples of the client, n.")
@click.option("--local-steps", type=int, required=True, metavar="T", help="Local steps a round, τ.")
@click.option("--participations", type=int, required=True, metavar="C", help="Rounds the client takes part in.")
@click.option("--clients-per-round", type=int, required=True, metavar="R", help="Clients in a round, r.")
@delta_option
@json_option
def zcdp(as_json: bool, **numbers: Any) -> None:
    """ρ and ε of the zCDP mechanism with secure aggregation, published and accounted.

    Accounted as in a run: one sample exchanged, batches shuffled afresh in every round, the smallest batch of a pass,
    masked sums of integers.
    """
    _answer(lambda calculators: calculators.zcdp_calculator(**numbers), as_json)


class _EpsilonCommand(click.Command):
    """Command over values of ε: a negative number is refused as a value, not as an option."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            word = next((one for one in given if re.fullmatch(r"-[0-9.][0-9.eE+-]*", one)), None)
            if word is None or not word.startswith(error.option_name):
                raise
            raise click.UsageError(f"EPSILON: found {word}; allowed: a number of at least 0, or inf", ctx) from error


@privacy.command(cls=_EpsilonCommand)
@click.argument("epsilons", nargs=-1, type=float, metavar="[EPSILON]...")
@click.option("--delta", type=float, default=1e-5, show_default=True, metavar="D", help="δ in (0, 1).")
@json_option
def explain(epsilons: tuple[float, ...], delta: float, as_json: bool) -> None:
    """What an attacker can do at EPSILON (several for a comparison; inf is allowed), in plain words.

    Without EPSILON: 2, 8, 50 and 367, the accounted ε of quickstart.
    """
    from wirelessfl.cli.console import print_table
    from wirelessfl.cli.meaning import LEGEND, ON_THE_PAGE, SIDE_BY_SIDE, as_mapping, meaning_rows
    from wirelessfl.privacy import meaning_of
    from wirelessfl.summary import epsilon_text, to_json

    try:
        meanings = [meaning_of(one, delta) for one in epsilons or ON_THE_PAGE]
    except ValueError as error:
        raise InputError(str(error)) from error
    if as_json:
        say(to_json({"meanings": [as_mapping(one) for one in meanings]}), nl=False)
        return
    console = open_console()
    for first in range(0, len(meanings), SIDE_BY_SIDE):
        some = meanings[first : first + SIDE_BY_SIDE]
        heads = (f"at δ = {delta:g}", *(f"ε = {epsilon_text(one.epsilon)}" for one in some))
        if first:
            console.print()
        print_table(heads, meaning_rows(some), numbers=True)
    for words in ("", *LEGEND):
        console.print(words, highlight=False)


privacy.add_command(observer_map_command)


@click.command(cls=ScenarioCommand)
@scenario_argument
@override_option
@plugins_option
@click.option(
    "--trials",
    type=click.IntRange(min=10),
    help="Games with and without the canary, each [as many as ten seconds allow].",
)
@click.option("--out", type=OutputPath(), help="Folder for audit.png [results/NAME-SEED].")
@figures_option(words="Format of the figure; none draws none.")
@width_option("column")
@json_option
def audit(
    scenario: str,
    overrides: tuple[str, ...],
    allow_plugins: bool,
    trials: int | None,
    out: Path | None,
    form: FigureFormat,
    width: float,
    as_json: bool,
) -> None:
    """Bound ε of SCENARIO from below by attacking it, and compare with published and accounted.

    A worst-case canary goes many times through the clipping, noise and channels that a run uses, and the noise itself
    is tested. Exit code 4 says that more can be told apart than the accounted ε allows, or that noise is smaller than
    on record or used again: then a mechanism does not do what its record states. Exit code 3 says that no game can be
    played on the scenario, and what is missing. What is not tested is listed in any case.
    """
    from wirelessfl.analysis.audit.audit import audit_scenario
    from wirelessfl.api import default_folder
    from wirelessfl.cli.console import audit_rows, print_rows
    from wirelessfl.outputs import refuse_inputs, writing
    from wirelessfl.scenario import locate
    from wirelessfl.summary import epsilon_text, to_json
    from wirelessfl.summary.style import FigureOptions

    resolved = read_scenario(scenario, overrides, allow_plugins)
    folder = default_folder(resolved) if out is None else out
    options = FigureOptions(form, width)
    picture = options.file(folder / "audit") if options.drawn else None
    if picture is not None:
        refuse_inputs([picture], [locate(scenario)])
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
    with progress_of("games") as on_progress:
        found = audit_scenario(resolved, trials, on_progress)
    missing = "" if picture is None else _draw(found, picture, width)
    if as_json:
        say(to_json({**found.as_mapping(), "picture": None if picture is None else str(picture)}), nl=False)
    else:
        print_rows(audit_rows(found, picture))
    words = f"the accounted ε of {epsilon_text(found.epsilon_accounted)} does not hold: {found.contradiction}"
    precondition(not found.contradicts_ledger, words, CheckFailed)
    precondition(not missing, missing, OutputError)


def _draw(found: Audit, picture: Path, width_in: float) -> str:
    # Why there is no figure, which is said after the result
    from wirelessfl.analysis.audit.picture import draw_audit
    from wirelessfl.outputs import replacing

    try:
        with replacing(picture) as new:
            draw_audit(found, new, width_in)
    except OutputError as error:
        return str(error)
    return ""
