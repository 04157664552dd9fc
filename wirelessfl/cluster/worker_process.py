"""The process of a worker on this machine: it trains one block after the other, until its stdin ends."""

import pickle
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wirelessfl.child_process import taken_streams
from wirelessfl.cluster.worker import RoundOnWorkers
from wirelessfl.errors import InfeasibleError, WirelessFLError
from wirelessfl.learning.cohort import CohortPart


@dataclass(frozen=True)
class Request:
    """A block to be trained.

    Attributes:
        shared: What all blocks of its round share; None for that of the request before.
        task: What is called with it and the part.
        part: The part of the block.
    """

    shared: RoundOnWorkers | None
    task: Callable[[RoundOnWorkers, CohortPart], Any]
    part: CohortPart


def main() -> None:
    """Loop over requests; the answer is the result of each, or its error."""
    requests, answers = taken_streams()
    shared = None
    with suppress(EOFError, BrokenPipeError):  # the run is gone
        while True:
            request: Request = pickle.load(requests)  # noqa: S301 - of the process that has started this one
            shared = shared if request.shared is None else request.shared
            assert shared is not None
            pickle.dump(_answer(request, shared), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _answer(request: Request, shared: RoundOnWorkers) -> Any:
    try:
        return request.task(shared, request.part)
    except Exception as error:
        if not isinstance(error, WirelessFLError):
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return _sendable(error)


def _sendable(error: Exception) -> Exception:
    # Errors of code from outside may not survive pickle
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    except Exception:
        return InfeasibleError(f"a worker process failed: {type(error).__name__}: {error}")
    return error
