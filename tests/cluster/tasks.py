"""Tasks of worker processes, in a module that they can import; the part of a block is its number."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


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


def fails_beyond_words(shared: Any, part: int) -> int:
    raise UnsendableError(1, 2)


def ends(shared: Any, part: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return part


def leaves(shared: Any, part: int) -> int:
    os.write(2, b"no room left\n")
    os._exit(7)


class EndsWhenPickled:
    """The end of a process in the middle of its answer."""

    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def ends_once(shared: str, part: int) -> Any:
    """Every block ends the first process that it comes to, half of them in the middle of its answer."""
    mark = Path(shared) / str(part)
    if mark.exists():
        return part
    mark.touch()
    if part % 2:
        return np.zeros(10**6), EndsWhenPickled()
    return ends(shared, part)
