"""Tasks of worker processes, in a module that they can import; the part of a block is its number."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from wirelessfl.errors import ModelWarning, ScenarioError


class UnsendableError(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def negative(shared: Any, part: int) -> int:
    """Later blocks are done earlier."""
    time.sleep(0.02 / (1 + part))
    return -part


def sum_with_shared(shared: int, part: int) -> int:
    return shared + part


def slow(shared: Any, part: int) -> int:
    time.sleep(60.0)
    return part


def fails(shared: Any, part: int) -> int:
    if part == 2:
        raise ZeroDivisionError("in block 2")
    return part


def refuses(shared: Any, part: int) -> int:
    raise ScenarioError("not so; try --resume")


def fails_beyond_words(shared: Any, part: int) -> int:
    raise UnsendableError(1, 2)


def ends(shared: Any, part: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return part


def leaves(shared: Any, part: int) -> int:
    os.write(2, b"no room left\n")
    os._exit(7)


def ends_by_a_signal_without_a_name(shared: Any, part: int) -> int:
    os.kill(os.getpid(), 40)
    return part


def ends_with_a_fork(shared: Any, part: int) -> int:
    if os.fork() == 0:
        time.sleep(30.0)
        os._exit(0)
    return ends(shared, part)


def speaks(shared: Any, part: int) -> int:
    print("said on stdout")
    sys.stderr.write("\rwithout an end")
    warnings.warn("of the package", ModelWarning, stacklevel=1)
    with warnings.catch_warnings():  # this process may speak twice
        warnings.simplefilter("always", UserWarning)
        warnings.warn("a warning", UserWarning, stacklevel=1)
    return part


def gives_a_lock(shared: Any, part: int) -> Any:
    return threading.Lock()


class Mine(ScenarioError):
    """A refusal with arguments of its own."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"mine {one}, {other}")


def refuses_in_its_own_words(shared: Any, part: int) -> int:
    raise Mine(1, 2)


def interrupts(shared: Any, part: int) -> int:
    raise KeyboardInterrupt("by itself")


class EndsElsewhere:
    """An object that ends whoever else reads it."""

    def __reduce__(self) -> Any:
        return _leave, (os.getpid(),)


def _leave(pid: int) -> None:
    if os.getpid() != pid:
        raise SystemExit(3)


def gives_what_ends_the_reader(shared: Any, part: int) -> Any:
    return EndsElsewhere()


class OnlyThere:
    """An object that cannot be read elsewhere."""

    def __reduce__(self) -> Any:
        return _refused, (os.getpid(),)


def _refused(pid: int) -> None:
    if os.getpid() != pid:
        raise ValueError("only here")


def gives_what_cannot_be_read(shared: Any, part: int) -> Any:
    return OnlyThere()


def ends_once(shared: str, part: int) -> int:
    """Every block ends the first process that it comes to."""
    mark = Path(shared) / str(part)
    if not mark.exists():
        mark.touch()
        return ends(shared, part)
    return part
