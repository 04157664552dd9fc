"""The process of a worker on this machine: it trains one block after the other, until its stdin ends."""

import os
import pickle
import queue
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from wirelessfl import plugins
from wirelessfl.child_process import read_message, taken_streams, write_message
from wirelessfl.cluster.worker import RoundOnWorkers
from wirelessfl.errors import (
    InfeasibleError,
    ModelWarning,
    PlanWarning,
    ScenarioError,
    SourceWarning,
    WirelessFLError,
    command_line_words,
)
from wirelessfl.learning.cohort import CohortPart


@dataclass(frozen=True)
class Request:
    """A block to be trained.

    Attributes:
        shared: What all blocks of its round share; None for that of the request before.
        task: What is called with it and the part.
        part: The part of the block; None before the first round.
    """

    shared: RoundOnWorkers | None
    task: Callable[[RoundOnWorkers, Any], Any]
    part: CohortPart | None


def main() -> None:
    """Loop over requests; the answer is the result of each, or its error."""
    requests, answers = taken_streams()
    for category in (ModelWarning, PlanWarning, SourceWarning):  # said where the run was built
        warnings.simplefilter("ignore", category)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    shared = None
    while True:
        request: Request = pickle.loads(waiting.get())  # noqa: S301 - of the process that has started this one
        shared = shared if request.shared is None else request.shared
        assert shared is not None
        with suppress(BrokenPipeError):  # the run is gone, and so is soon this process
            write_message(answers, _answer(request, shared))


def _read(requests: IO[bytes], waiting: "queue.SimpleQueue[bytes]") -> None:
    # With the run its blocks are void: a process that nobody waits for does not train on
    with suppress(EOFError):
        while True:
            waiting.put(read_message(requests))
    os._exit(0)


def _answer(request: Request, shared: RoundOnWorkers) -> bytes:
    try:
        return pickle.dumps(request.task(shared, request.part), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:  # nobody but code from outside ends this process or interrupts it
        return _packed(error)


def _packed(error: BaseException) -> bytes:
    # With the line of code from outside, to which no traceback leads any more
    if isinstance(error, WirelessFLError):
        kind = next(one for one in type(error).__mro__ if one.__module__ == WirelessFLError.__module__)
        with command_line_words():  # the process that reads it knows which words the user typed
            return pickle.dumps(kind(plugins.refusal(error)))
    words = None if isinstance(error, MemoryError) else plugins.failure(error)
    sent = error if words is None else ScenarioError(words)
    sent.add_note(f"in a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        packed = pickle.dumps(sent)
        pickle.loads(packed)  # noqa: S301 - its own
    except Exception:  # errors of code from outside may not survive it
        return pickle.dumps(InfeasibleError(f"a worker process failed: {type(error).__name__}: {error}"))
    return packed
