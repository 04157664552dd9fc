"""Workers on this machine that are started for one run: processes of one thread, each behind two pipes.

Between two blocks of clients a worker waits for one pickled message each way and nothing else; Dask's scheduler would
bring it several, which cost as much as the blocks of a small model.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Generic

from wirelessfl.cluster.blocks import AHEAD, Result, RoundOfBlocks
from wirelessfl.cluster.process import WorkerProcess
from wirelessfl.errors import InfeasibleError

_MOST_LOSSES = 5  # of a block: one that so many processes died of ends the next one, too
_SHUTDOWN_S = 30.0  # that an interpreter on a busy machine may take for its end
_GRACE_S = 2.0
_POLL_S = 0.2


@contextmanager
def local_workers(count: int, check: Callable[[], None]) -> Iterator["LocalWorkers"]:
    """Worker processes, which are on their way; they end with the context.

    What they print, user's code included, goes to this process's stderr.

    Args:
        count: How many.
        check: Called while they are waited for; may raise to give up.

    Raises:
        InfeasibleError: so many cannot be started.
    """
    workers = LocalWorkers(count, check)
    try:
        workers.start(count)
        yield workers
    finally:
        workers.end()


class LocalWorkers:
    """Worker processes of one thread each, of which a dead one is replaced: `Workers`.

    Args:
        count: How many.
        check: Called while they are waited for; may raise to give up.
    """

    def __init__(self, count: int, check: Callable[[], None]) -> None:
        self._check, self._ahead = check, 1 + AHEAD * count
        self._rounds: list[_Round[Any]] = []
        self._failure: BaseException | None = None
        self._ended = False
        self._changed = threading.Condition()
        self._processes: list[WorkerProcess] = []
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        """Start of the processes.

        Raises:
            InfeasibleError: there is no room for so many.
        """
        devices = _devices()
        try:
            for index in range(count):
                self._processes.append(process := WorkerProcess(devices[index % len(devices)] if devices else None))
                thread = threading.Thread(target=self._keep_busy, args=(process,), daemon=True)
                thread.start()
                self._threads.append(thread)
        except (OSError, RuntimeError) as refused:  # of processes, files or threads
            raise InfeasibleError(f"worker process {index + 1} of {count} cannot be started: {refused}") from refused

    @property
    def pids(self) -> list[int]:
        """Process numbers."""
        return [process.pid for process in self._processes]

    def results(self, this: RoundOfBlocks[Result]) -> Generator[Result, None, None]:
        """The results of the blocks of a round, in their order; the workers begin at once.

        Raises:
            InfeasibleError: too many processes have died of one of them.
        """
        found = self._results(_Round(this, self._ahead))
        next(found)
        return found

    def _results(self, begun: "_Round[Result]") -> Generator[Result, None, None]:
        with self._changed:
            self._rounds.append(begun)
            self._changed.notify_all()
        try:
            yield None  # type: ignore[misc]  # the workers have begun
            for _ in begun.this.blocks:
                yield self._next_of(begun)
        finally:
            with self._changed:
                self._rounds.remove(begun)

    def _next_of(self, begun: "_Round[Result]") -> Result:
        with self._changed:
            while not begun.is_next_done():
                if self._failure is not None:
                    raise self._failure
                self._check()
                self._changed.wait(_POLL_S)
            found = begun.taken()
            self._changed.notify_all()  # one more may begin
        if isinstance(found, BaseException):
            raise found
        return found

    def _keep_busy(self, process: WorkerProcess) -> None:
        # The life of one process, in a thread of its own
        try:
            while (work := self._work()) is not None:
                self._done(process, *work)
        except BaseException as error:  # without this thread the run would wait for ever
            with self._changed:
                self._failure = self._failure or error
                self._changed.notify_all()

    def _work(self) -> "tuple[_Round[Any], int] | None":
        with self._changed:
            while not (self._ended or self._failure):
                for begun in self._rounds:
                    if (at := begun.begin_next()) is not None:
                        return begun, at
                self._changed.wait()
        return None

    def _done(self, process: WorkerProcess, begun: "_Round[Any]", at: int) -> None:
        try:
            result = process.answer(begun.this, at)
        except (OSError, EOFError):
            end = process.ended(_SHUTDOWN_S)
            with self._changed:
                if self._ended:
                    return
                if begun.lost(at) == _MOST_LOSSES:
                    raise InfeasibleError(
                        f"{_MOST_LOSSES} worker processes have died of one block of clients, the last {end}; finished "
                        "rounds are on disk, continue with --resume"
                    ) from None
                try:
                    process.start()
                except (OSError, RuntimeError) as refused:  # of processes, files or threads
                    raise InfeasibleError(f"no worker process can be started: {refused}") from refused
                self._changed.notify_all()
            return
        with self._changed:
            begun.done(at, result)
            self._changed.notify_all()

    def end(self) -> None:
        """End of all of them."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + _GRACE_S
        for process in self._processes:
            process.ended(max(0.0, deadline - time.monotonic()))
        for thread in self._threads:
            thread.join()


class _Round(Generic[Result]):
    # The blocks of a round: lost ones and those not begun yet are to be trained, done ones to be taken in order
    def __init__(self, this: RoundOfBlocks[Result], ahead: int) -> None:
        self.this: RoundOfBlocks[Result] = this
        self._ahead = ahead
        self._lost: list[int] = []
        self._losses: Counter[int] = Counter()
        self._done: dict[int, Result | BaseException] = {}
        self._begun, self._taken = 0, 0

    def begin_next(self) -> int | None:
        if self._lost:
            return self._lost.pop(0)
        if self._begun < min(self._taken + self._ahead, len(self.this.blocks)):
            self._begun += 1
            return self._begun - 1
        return None

    def lost(self, at: int) -> int:
        """How often the block is lost by now."""
        self._lost.append(at)
        self._losses[at] += 1
        return self._losses[at]

    def done(self, at: int, result: Result | BaseException) -> None:
        self._done[at] = result

    def is_next_done(self) -> bool:
        return self._taken in self._done

    def taken(self) -> Result | BaseException:
        found = self._done.pop(self._taken)
        self._taken += 1
        return found


def _devices() -> list[str]:
    # Names of GPUs, of which each process takes the next; empty where none is to be chosen
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return [] if count < 2 else [str(one) for one in range(count)] if not named else named.split(",")[:count]
