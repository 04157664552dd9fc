"""The command line. A command parses, calls one function of the library and prints."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from wirelessfl import plugins
from wirelessfl.errors import InputError, ModelWarning, OutputWarning, VersionWarning, WirelessFLError

__all__ = ["main"]

COMMANDS = {
    "simulate": "wirelessfl.cli.simulate",
    "validate": "wirelessfl.cli.validate",
    "study": "wirelessfl.cli.study",
    "replay": "wirelessfl.cli.replay",
    "report": "wirelessfl.cli.report",
    "scenarios": "wirelessfl.cli.scenarios",
    "privacy": "wirelessfl.cli.privacy",
    "audit": "wirelessfl.cli.audit",
    "papers": "wirelessfl.cli.papers",
    "schema": "wirelessfl.cli.schema",
}
"""Each command lives in a module of its own, imported when it is asked for, so that start-up stays quick."""

INTERRUPTED = 130


class Application(click.Group):
    """The group of commands; turns every error into one message and its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the reference."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run and exit; click's own exit codes differ from ours (an interrupt is 130, not 1)."""
        kwargs["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_say, warnings.showwarning)
                code = super().main(*args, **kwargs)
        except WirelessFLError as error:
            print(f"Error: {error}" if str(error) else "", file=sys.stderr)
            sys.exit(error.exit_code)
        except click.ClickException as error:
            error.show()
            sys.exit(2)
        except (click.Abort, KeyboardInterrupt):
            print("Interrupted.", file=sys.stderr)
            sys.exit(INTERRUPTED)
        except Exception as error:
            words = plugins.failure(error)
            if words is None:
                raise
            print(f"Error: {words}", file=sys.stderr)
            sys.exit(InputError.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def _say(otherwise: Callable[..., None], message: Warning | str, category: type[Warning], *details: Any) -> None:
    """One line on stderr for models that hold in part and files of other versions; others as Python writes them."""
    if issubclass(category, ModelWarning | OutputWarning | VersionWarning):
        print(f"Warning: {message}", file=sys.stderr)
    else:
        otherwise(message, category, *details)


@click.command(cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="wirelessfl")
def main() -> None:
    """Simulate federated learning over a radio network, with the privacy accounted honestly.

    Start with `wirelessfl simulate quickstart`, then `wirelessfl scenarios` and
    `wirelessfl scenarios copy quickstart` for a file of your own.
    """
