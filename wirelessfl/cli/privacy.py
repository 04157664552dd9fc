"""``wirelessfl privacy``: calculators for ε, noise and jammer gain."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from wirelessfl.cli.options import json_option
from wirelessfl.cli.terminal import say
from wirelessfl.errors import InputError

NAMES = {"noise_multiplier": "noise multiplier", "jammer_gain": "jammer gain α_CJ", "needed": "jamming needed"}

delta_option = click.option("--delta", type=float, required=True, metavar="D", help="δ in (0, 1).")
accountant_option = click.option(
    "--accountant", type=click.Choice(["pld", "rdp"]), default="pld", show_default=True, help="How steps compose."
)
sample_rate_option = click.option(
    "--sample-rate", type=float, default=1.0, metavar="Q", show_default=True, help="Poisson sampling rate in (0, 1]."
)


@click.group()
def command() -> None:
    """Calculate ε from noise, noise from ε, jammer power from ε.

    Noise is taken as real numbers: what the rounding of floating-point noise gives away (Mironov 2012) is not in ε.
    """


def _answer(calculate: Callable[[Any], Mapping[str, Any]], as_json: bool) -> None:
    # Output of one of the calculators; a number out of range is an input error
    from wirelessfl.privacy import calibration
    from wirelessfl.summary import epsilon_text, to_json

    try:
        result = calculate(calibration)
    except ValueError as error:
        raise InputError(str(error)) from error
    except ArithmeticError as error:
        raise InputError("these numbers lead beyond what floating-point numbers can hold") from error
    if as_json:
        say(to_json(result), nl=False)
        return
    for name, value in result.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else epsilon_text(value)
        say(f"{NAMES.get(name, name.replace('_', ' '))}: {text}")


@command.command()
@click.option("--noise-multiplier", type=float, required=True, metavar="Z", help="Noise std over the clipping norm.")
@click.option("--steps", type=int, required=True, metavar="N", help="Noised steps.")
@sample_rate_option
@accountant_option
@delta_option
@json_option
def epsilon(as_json: bool, **numbers: Any) -> None:
    """ε of N steps of the Gaussian mechanism with multiplier Z."""
    _answer(lambda calculators: {"epsilon": calculators.dp_sgd_epsilon(**numbers)}, as_json)


@command.command()
@click.option("--epsilon", type=float, required=True, metavar="E", help="ε to be met.")
@click.option("--steps", type=int, required=True, metavar="N", help="Noised steps.")
@sample_rate_option
@accountant_option
@delta_option
@json_option
def noise(as_json: bool, **numbers: Any) -> None:
    """The noise multiplier at which N steps meet (E, D)."""
    _answer(lambda calculators: {"noise_multiplier": calculators.dp_sgd_noise_multiplier(**numbers)}, as_json)


@command.command()
@click.option("--epsilon", type=float, required=True, metavar="E", help="ε to be met over the whole run.")
@click.option("--rounds", type=int, required=True, metavar="M", help="Communication rounds.")
@click.option("--samples", type=int, required=True, metavar="D", help="|D|, samples of all clients.")
@click.option("--server-gain", type=float, required=True, metavar="A", help="α_u.")
@click.option("--channel-noise-std", type=float, required=True, metavar="S", help="σ_c per real symbol.")
@click.option("--jammer-channel", type=float, default=1.0, metavar="H", show_default=True, help="|h_CJ|.")
@click.option("--margin", type=float, default=1.0, metavar="F", show_default=True, help="Factor on the gain.")
@click.option("--calibration", type=click.Choice(["theorem", "exact"]), default="theorem", show_default=True)
@click.option("--sensitivity", type=float, metavar="X", help="Per-round sensitivity for exact [1/|D|].")
@delta_option
@json_option
def jammer(as_json: bool, **numbers: Any) -> None:
    """The jammer gain α_CJ that meets (E, D) over M rounds."""
    _answer(lambda calculators: calculators.jammer_calculator(**numbers), as_json)


@command.command()
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
