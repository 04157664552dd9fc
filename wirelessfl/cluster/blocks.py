"""Blocks of clients trained by the workers of a Dask cluster, in their fixed order.

The global model travels once a round. Of the blocks so many are on their way that every worker has another one to go
on with, so that neither this process nor a worker ever holds a whole round. A worker that dies loses nothing: its
blocks, and where it was the last to hold it the model, are sent again.
"""

import asyncio
import importlib
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.cluster import connection
from wirelessfl.cluster.local import LocalProcesses
from wirelessfl.cluster.worker import RoundOnWorkers, RunOnWorkers, TrainedBlock, forget, sum_part, train_part
from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import BlockMap, Cohort, CohortPart, SummedBlock

_POLL_S = 0.2
_LOOK_INTERVAL_S = 2.0
_AHEAD = 2  # blocks on their way for each thread of a worker
_Result = TypeVar("_Result", TrainedBlock, SummedBlock)
_MOST_LOSSES = 5  # in a row: a worker that fails so often fails again


class Workers:
    """Workers of a Dask client, as the run that waits for them sees them.

    Args:
        client: The Dask client.
        name: What it is connected to, in messages.
        check: Called while they are waited for; may raise to give up.
        processes: Those of this machine that were started for the run; None of a cluster's own.
        patient: Whether their start may take for ever, as in a queue of jobs.
    """

    def __init__(
        self, client: Any, name: str, check: Callable[[], None], processes: LocalProcesses | None, *, patient: bool
    ) -> None:
        self.client, self._name, self._check, self._patient = client, name, check, patient
        self._processes = processes
        self._alone_since: float | None = None
        self._look_at = 0.0

    def begun(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Work of the client that goes on in its own thread."""
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)

    def awaited(self, future: "Future[Any]", sound: Callable[[], bool] = lambda: True) -> Any:
        """The result of a future, asked for as long as it is ``sound``.

        Raises:
            CancelledError: It never comes.
            InfeasibleError: The scheduler is gone, or no worker comes.
        """
        while True:
            with suppress(TimeoutError):
                return future.result(_POLL_S)
            if future.done():
                continue
            self.look()
            if not sound():
                raise CancelledError

    def look(self) -> None:
        """Checks for an interrupt, and now and then for the workers.

        Raises:
            InfeasibleError: The scheduler is gone, or no worker comes.
        """
        self._check()
        if self._processes is not None:
            self._processes.replace_dead()
        now = time.monotonic()
        if now >= self._look_at and not self._patient:
            self._look_at = now + _LOOK_INTERVAL_S
            self._alone_since = None if self.threads() else self._alone_since or now
            precondition(
                self._alone_since is None or now - self._alone_since < connection.WORKER_PATIENCE_S,
                f"{self._name} has had no workers for {connection.WORKER_PATIENCE_S:g} s; start some with: "
                "dask worker SCHEDULER --nthreads 1, and continue with --resume",
                InfeasibleError,
            )

    def threads(self) -> dict[str, int]:
        """Threads of the workers that are there, by address.

        Raises:
            InfeasibleError: The scheduler is gone.
        """
        try:
            precondition(self.client.status == "running", "not connected", OSError)
            return dict(self.client.nthreads())
        except OSError as error:
            raise InfeasibleError(
                f"the connection with {self._name} is lost; finished rounds are on disk, continue with --resume"
            ) from error

    def wait(self) -> dict[str, int]:
        """Threads of the workers by address, when there is one.

        Raises:
            InfeasibleError: None comes.
        """
        while not (found := self.threads()):
            self.look()
            time.sleep(_POLL_S)
        return found


class ClusterBlocks:
    """Blocks trained by workers: a `TrainingElsewhere`.

    Args:
        workers: The workers.
        run: Which run it is.
    """

    def __init__(self, workers: Workers, run: RunOnWorkers) -> None:
        self._workers, self._run = workers, run

    def __call__(self, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Generator[CohortBlock, None, None]:
        """The finished blocks in order; the workers begin at once."""
        shared, device = RoundOnWorkers.of(self._run, cohort), cohort.start.device
        found = _begun(_Round(self._workers, shared, train_part, cohort, blocks))
        return (block.block(positions, device) for block, positions in zip(found, blocks, strict=True))

    def summing(self, total: BlockSum) -> BlockMap[SummedBlock]:
        """Training of blocks of which the parts of a sum come back."""
        return partial(self._summed, total)

    def _summed(
        self, total: BlockSum, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]
    ) -> Generator[SummedBlock, None, None]:
        shared = RoundOnWorkers.of(self._run, cohort, total)
        return _begun(_Round(self._workers, shared, sum_part, cohort, blocks))

    def forget(self) -> None:
        """The workers give up model and data of the run, as far as they can be reached."""
        with suppress(Exception):
            self._workers.begun(self._workers.client.run(forget, self._run.token, asynchronous=True)).result(_POLL_S)


class _Round(Generic[_Result]):
    # The blocks of a round on their way to a task and back; ``_there`` is the model at the workers
    def __init__(
        self,
        workers: Workers,
        shared: RoundOnWorkers,
        task: Callable[[RoundOnWorkers, CohortPart], _Result],
        cohort: Cohort,
        blocks: Sequence[NDArray[np.int64]],
    ) -> None:
        self.cohort, self.blocks = cohort, blocks
        self._workers, self._shared = workers, shared
        self._task: Callable[[RoundOnWorkers, CohortPart], _Result] = task
        self._there: Any = None
        self._tasks: dict[int, Any] = {}
        self._coming: dict[int, Future[_Result]] = {}
        self._first: set[str] = set()
        self._most = 0

    def trained(self, at: int) -> _Result:
        """A block, sent again where it is lost; the blocks behind it move up."""
        for _ in range(_MOST_LOSSES):
            try:
                found: _Result = self._workers.awaited(self._coming[at], self._sound)
            except CancelledError:
                self._workers.threads()  # the scheduler is gone, or only what its workers held
                self.end()
                self.send(at)
                continue
            except Exception as error:
                raise (_deadly(error) if type(error).__name__ == "KilledWorker" else error) from None
            self._tasks.pop(at).release()
            del self._coming[at]
            self._send_some(at + 1)
            return found
        raise InfeasibleError(f"a block of clients was lost {_MOST_LOSSES} times by workers; see their logs")

    def send(self, at: int) -> None:
        """Model, then as many blocks from ``at`` on as may be on their way."""
        client = self._workers.client
        for _ in range(_MOST_LOSSES):
            threads = self._workers.wait()
            self._first, self._most = set(threads), 1 + _AHEAD * sum(threads.values())
            with suppress(CancelledError, OSError, TimeoutError):  # the one that it went to has died
                # To one of them, from which the others take it: Dask's broadcast never ends where a worker dies in it
                scattered = client.scatter(self._shared, hash=False, asynchronous=True)
                self._there = self._workers.awaited(self._workers.begun(scattered), self._all_there)
                self._send_some(at)
                return
        raise InfeasibleError(f"the model was lost {_MOST_LOSSES} times on its way to workers; see their logs")

    def _send_some(self, at: int) -> None:
        client = self._workers.client
        for one in range(at, min(at + self._most, len(self.blocks))):
            if one not in self._tasks:
                part = self.cohort.part(self.blocks[one])
                self._tasks[one] = task = client.submit(self._task, self._there, part, pure=False)
                self._coming[one] = self._workers.begun(client.gather(task, asynchronous=True))

    def _all_there(self) -> bool:
        return self._first <= self._workers.threads().keys()

    def _sound(self) -> bool:
        # Whoever came later has the model from one of the first
        lost = any(one.status in ("lost", "cancelled") for one in (self._there, *self._tasks.values()))
        return not lost and not self._first.isdisjoint(self._workers.threads())

    def end(self) -> None:
        """Nothing more is waited for, and the workers give up what they hold."""
        for future in (*self._tasks.values(), *([] if self._there is None else [self._there])):
            future.release()
        self._tasks, self._coming, self._there = {}, {}, None


def _begun(this: "_Round[_Result]") -> Generator[_Result, None, None]:
    # The results of a round in order; the workers begin at once
    results = _results(this)
    next(results)
    return results


def _results(this: "_Round[_Result]") -> Generator[_Result, None, None]:
    try:
        this.send(0)
        yield None  # type: ignore[misc]  # the workers have begun
        for at in range(len(this.blocks)):
            yield this.trained(at)
    finally:
        this.end()


def _deadly(error: Exception) -> InfeasibleError:
    deaths = importlib.import_module("dask").config.get("distributed.scheduler.allowed-failures")
    return InfeasibleError(f"more than {deaths} workers died of one block of clients; see their logs ({error})")
