"""Exceptions of the package, as a tree; each branch has an exit code of the command line.

WirelessFLError              1   never raised itself
├── InputError               2   the input is wrong: what the user wrote or pointed at
│   ├── ScenarioError            a scenario or study file
│   ├── TraceError               a trace that is foreign, truncated or of another version
│   ├── ArchiveError             an archive of runs that is damaged, or asks for too much
│   ├── DataError                a dataset that is missing or damaged
│   │   └── MissingDataError         it is not there
│   └── OutputError              a place that cannot be written
├── InfeasibleError          3   the request is understood and cannot be met
├── CheckFailed              4   a check found a difference
└── RunInterrupted         130   stopped by the user; the trace is intact and resumable
"""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_SWITCHES = {"resume", "overwrite", "fail-fast", "allow-plugins"}
_WITH_VALUES = {"out", "device", "threads", "workers", "scheduler", "delta", "accountant"}
_OPTION = re.compile(rf"(?<![\w-])--(?P<name>{'|'.join(sorted(_SWITCHES | _WITH_VALUES))})(?![\w-])(?P<colon>:?)")

_called_from = {"python": True}


@contextmanager
def command_line_words() -> Iterator[None]:
    """Messages with options as they are typed (``--resume``); elsewhere they are arguments (``resume=True``)."""
    before = _called_from["python"]
    _called_from["python"] = False
    try:
        yield
    finally:
        _called_from["python"] = before


def _argument(option: re.Match[str]) -> str:
    name = option["name"].replace("-", "_")
    if option["colon"]:
        return f"{name}:"
    return f"{name}=True" if option["name"] in _SWITCHES else f"{name}="


class WirelessFLError(Exception):
    """Base of everything the package raises on purpose.

    The message is complete and written for the user: the command line prints it as it is, and in Python it names the
    arguments of functions in place of options.
    """

    exit_code = 1

    def __str__(self) -> str:
        text = super().__str__()
        return _OPTION.sub(_argument, text) if _called_from["python"] else text


class InputError(WirelessFLError):
    """The input is wrong; the message says where, what was found and what is allowed."""

    exit_code = 2


class ScenarioError(InputError):
    """A scenario or study file that is refused."""


class TraceError(InputError):
    """A file that is not a readable trace of this version."""


class ArchiveError(InputError):
    """A file that is not an archive of runs as this version packs it, or not a harmless one."""


class DataError(InputError):
    """A dataset that is missing, damaged or too small for the request."""


class MissingDataError(DataError):
    """A dataset of which no file is there."""


class OutputError(InputError):
    """A place that cannot be written: it exists, is read-only, or its disk is full."""


class InfeasibleError(WirelessFLError):
    """The request is valid but no allowed setting meets it."""

    exit_code = 3


class CheckFailed(WirelessFLError):
    """A verification ran to its end and found a difference."""

    exit_code = 4


def require(holds: bool, found: str) -> None:
    """Requirement of a family; raises CheckFailed with what was found where it does not hold."""
    precondition(holds, f"not conforming: {found}", CheckFailed)


class RunInterrupted(WirelessFLError):
    """Interruption of a run by the user; its files are intact."""

    exit_code = 130


class ModelWarning(UserWarning):
    """A model outside the range in which it is valid; the run continues."""


class VersionWarning(UserWarning):
    """A file comes from another version of the package; what is asked for goes on."""


class PlanWarning(UserWarning):
    """A run goes on as its trace records, with another device or other threads than asked for."""


class SourceWarning(UserWarning):
    """Code from outside is another than that which was recorded; the message says which of them counts."""


class OutputWarning(UserWarning):
    """Something that a command writes is less safe than usual, or is missing; what was asked for goes on."""


def precondition(condition: object, message: str, error: type[Exception] = ValueError) -> None:
    """A precondition on numbers, on what a message holds, or on data that are read.

    Raises:
        ValueError: the condition does not hold; or ``error``.
    """
    if not condition:
        raise error(message)


def instance_of(kind: type) -> str:
    """The article and the name of a type, for messages: ``an int``, ``a str``."""
    name = kind.__name__
    return f"{'an' if name.lower().startswith(tuple('aeio')) else 'a'} {name}"


def shown_path(file: str) -> str:
    """A path as the user would write it here: relative where it lies below the current folder."""
    with suppress(ValueError, OSError):
        return str(Path(file).resolve().relative_to(Path.cwd().resolve()))
    return file


def defined_at(thing: Any) -> str:
    """Where a class or function is defined, as `` (file:line)``; nothing where Python does not know."""
    with suppress(TypeError, OSError):
        plain = inspect.unwrap(thing) if callable(thing) else thing
        code = getattr(plain, "__code__", None)
        file = inspect.getsourcefile(plain) if code is None else code.co_filename
        line = inspect.getsourcelines(plain)[1] if code is None else code.co_firstlineno
        return f" ({shown_path(str(file))}:{line})"
    return ""
