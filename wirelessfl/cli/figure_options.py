"""Options of commands that draw: format and width of the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from typing_extensions import override


class FigureWidth(click.ParamType[float]):
    """Width of figures in inches: ``column``, ``page`` or a number."""

    name = "width"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from wirelessfl.errors import InputError
        from wirelessfl.summary.style import read_width

        try:
            return read_width(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def figures_option(
    default: str = "png", words: str = "Format of the figures; none draws none."
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Option of the format of figures.

    Args:
        default: the format without it.
        words: its line of help.
    """
    formats = click.Choice(["pdf", "svg", "png", "none"])
    return click.option("--figures", "form", type=formats, default=default, show_default=True, help=words)


def width_option(default: str = "page") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Option of the width of figures.

    Args:
        default: the width without it.
    """
    return click.option(
        "--width",
        type=FigureWidth(),
        default=default,
        show_default=True,
        metavar="column|page|INCHES",
        help="Width of the figures: that of a column or a page of a two-column paper, or in inches.",
    )


def refuse_other_format(picture: Path, form: str) -> None:
    """Refusal of --figures with another format than that of the file that --out names.

    Args:
        picture: the file; its suffix is the format.
        form: as given, or by default.

    Raises:
        UsageError: both are given and differ.
    """
    given = click.get_current_context().get_parameter_source("form") is ParameterSource.COMMANDLINE
    if given and picture.suffix != f".{form}":
        allowed = f"{picture.suffix[1:]}, or no --out"
        raise click.UsageError(f"--figures: found {form} with --out {picture}; allowed: {allowed}")


def refuse_figure_options(needed: str) -> None:
    """Refusal of --figures and --width where the command draws nothing.

    Args:
        needed: the option with which it draws.

    Raises:
        UsageError: one of them is given.
    """
    context = click.get_current_context()
    for name, option in (("form", "--figures"), ("width", "--width")):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} is for the figure of {needed}; without it none is drawn")
