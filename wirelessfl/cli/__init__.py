"""Command line: each command parses, calls one function of the library and prints."""

import atexit
import gc
import importlib
import io
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import click
from typing_extensions import override

from wirelessfl import plugins
from wirelessfl.cli.terminal import escape_what_is_lacking, remark, standard_streams
from wirelessfl.errors import (
    InfeasibleError,
    InputError,
    ModelWarning,
    OutputError,
    OutputWarning,
    PlanWarning,
    RunInterrupted,
    SourceWarning,
    VersionWarning,
    WirelessFLError,
    command_line_words,
)
from wirelessfl.interrupts import stop_at_once
from wirelessfl.outputs import FULL, READ_ONLY

__all__ = ["main"]

COMMANDS = {
    "simulate": "run",
    "validate": "run",
    "study": "study",
    "replay": "replay",
    "pack": "archive",
    "report": "report",
    "scenarios": "listings",
    "families": "listings",
    "channels": "channels",
    "privacy": "privacy",
    "audit": "privacy",
    "papers": "listings",
    "schema": "listings",
}
"""Module of each command, imported on demand for a quick start-up."""


class Application(click.Group):
    """Group of commands; every error becomes one message and its exit code."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"wirelessfl.cli.{COMMANDS[cmd_name]}"), cmd_name)
        return command

    @override
    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["obj"] = time.perf_counter()
        kwargs["standalone_mode"] = False  # click's exit codes differ: an interrupt is 130 here, not 1
        if not args and "args" not in kwargs:  # the process is that of the command, whose arguments are its own
            gc.freeze()  # what runs freeze stays so: neither they nor the end of the process search it for garbage
            atexit.register(gc.freeze)
        with standard_streams() as failure, command_line_words():
            escape_what_is_lacking()
            code = self._exit_code(partial(super().main, *args, **kwargs))
            unwritten = failure()
            if unwritten is not None:
                remark(f"Error: {unwritten}")
                code = code or OutputError.exit_code
        sys.exit(code)

    def _exit_code(self, command: Callable[[], Any]) -> int:
        try:
            with warnings.catch_warnings(), stop_at_once():
                warnings.showwarning = partial(_say, warnings.showwarning)
                code = command()
        except WirelessFLError as error:
            _show_beneath(error)
            words = plugins.refusal(error)
            remark(f"Error: {words}" if words else "")
            return error.exit_code
        except click.ClickException as error:
            shown = io.StringIO()
            error.show(shown)
            remark(shown.getvalue().rstrip("\n"))
            return InputError.exit_code
        except (click.Abort, KeyboardInterrupt):
            remark("Interrupted.")
            return RunInterrupted.exit_code
        except MemoryError as error:
            _show_beneath(error)
            place = plugins.place_of(error)
            remark(f"Error: {f'{place}: ' if place else ''}this takes more memory than there is ({error})")
            return InfeasibleError.exit_code
        except plugins.RAISED as error:
            failed = plugins.failure(error)
            if isinstance(error, OSError) and error.errno in FULL | READ_ONLY:
                failed = failed or f"{error.filename or 'a file'} cannot be written or read: {error.strerror}"
            if failed is None:
                raise
            _show_beneath(error)
            remark(f"Error: {failed}")
            return InputError.exit_code
        return code if isinstance(code, int) else 0


def _show_beneath(error: BaseException) -> None:
    # The whole traceback below code from outside, where the environment asks for it
    if plugins.place_of(error) is not None:
        from wirelessfl.trace import debugging  # brings h5py along

        if debugging():
            remark("".join(traceback.format_exception(error)).rstrip())


def _say(otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *details: Any) -> None:
    # Line on stderr for a warning of this package; others are shown as Python does
    if issubclass(category, ModelWarning | OutputWarning | PlanWarning | SourceWarning | VersionWarning):
        remark(f"Warning: {message}")
    else:
        otherwise(message, category, *details)


def _print_version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from wirelessfl.version import package_version

        click.echo(f"wirelessfl, version {package_version()}")
        context.exit()


@click.command(cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Simulate federated learning over a radio network, with privacy accounted for what runs.

    Start with `wirelessfl simulate quickstart`, then `wirelessfl scenarios` and
    `wirelessfl scenarios copy quickstart` for a file of your own.
    """
