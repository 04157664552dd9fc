"""Workers of a Dask cluster that train blocks of clients."""

import asyncio
import importlib
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from typing import Any, Generic

from wirelessfl.cluster import connection
from wirelessfl.cluster.blocks import AHEAD, Result, RoundOfBlocks
from wirelessfl.cluster.worker import forget
from wirelessfl.errors import InfeasibleError, precondition

_POLL_S = 0.2
_LOOK_INTERVAL_S = 2.0
_MOST_LOSSES = 5  # in a row: a worker that fails so often fails again


class DaskWorkers:
    """Workers of a Dask client, as the run that waits for them sees them: `Workers`.

    Args:
        client: The Dask client.
        name: What it is connected to, in messages.
        check: Called while they are waited for; may raise to give up.
        patient: Whether their start may take for ever, as in a queue of jobs.
    """

    def __init__(self, client: Any, name: str, check: Callable[[], None], *, patient: bool) -> None:
        self.client, self._name, self._check, self._patient = client, name, check, patient
        self._alone_since: float | None = None
        self._look_at = 0.0
        self._runs: set[str] = set()

    def results(self, this: RoundOfBlocks[Result]) -> Generator[Result, None, None]:
        """The results of the blocks of a round, in their order; the workers begin at once.

        Raises:
            InfeasibleError: the scheduler is gone, no worker comes, or too many are lost.
        """
        self._runs.add(this.shared.run.token)
        found = _results(_Round(self, this))
        next(found)
        return found

    def forget(self) -> None:
        """The workers give up model and data of all runs, as far as they can be reached."""
        for token in self._runs:
            with suppress(Exception):
                self.begun(self.client.run(forget, token, asynchronous=True)).result(_POLL_S)

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


@contextmanager
def dask_workers(scheduler: str, jobs: int, check: Callable[[], None]) -> Iterator[DaskWorkers]:
    """Workers of the cluster behind ``scheduler``; at the end they give up what they hold of its runs.

    Args:
        scheduler: The address of a Dask scheduler, or slurm.
        jobs: The workers asked of Slurm.
        check: Called while they are waited for; may raise to give up.

    Raises:
        InputError: the address is none.
        InfeasibleError: Dask is not installed, or the scheduler does not answer.
    """
    with connection.connect(scheduler, jobs) as client:
        slurm = scheduler == connection.SLURM
        workers = DaskWorkers(client, f"the scheduler {scheduler}", check, patient=slurm)
        try:
            yield workers
        finally:
            workers.forget()


class _Round(Generic[Result]):
    # The blocks of a round on their way to a task and back; ``_there`` is the model at the workers
    def __init__(self, workers: DaskWorkers, this: RoundOfBlocks[Result]) -> None:
        self.this: RoundOfBlocks[Result] = this
        self._workers = workers
        self._there: Any = None
        self._tasks: dict[int, Any] = {}
        self._coming: dict[int, Future[Result]] = {}
        self._first: set[str] = set()
        self._most = 0

    def trained(self, at: int) -> Result:
        """A block, sent again where it is lost; the blocks behind it move up."""
        for _ in range(_MOST_LOSSES):
            try:
                found: Result = self._workers.awaited(self._coming[at], self._sound)
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
            self._first, self._most = set(threads), 1 + AHEAD * sum(threads.values())
            with suppress(CancelledError, OSError, TimeoutError):  # the one that it went to has died
                # To one of them, from which the others take it: Dask's broadcast never ends where a worker dies in it
                scattered = client.scatter(self.this.shared, hash=False, asynchronous=True)
                self._there = self._workers.awaited(self._workers.begun(scattered), self._all_there)
                self._send_some(at)
                return
        raise InfeasibleError(f"the model was lost {_MOST_LOSSES} times on its way to workers; see their logs")

    def _send_some(self, at: int) -> None:
        client = self._workers.client
        for one in range(at, min(at + self._most, len(self.this.blocks))):
            if one not in self._tasks:
                self._tasks[one] = task = client.submit(self.this.task, self._there, self.this.part(one), pure=False)
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


def _results(begun: _Round[Result]) -> Generator[Result, None, None]:
    try:
        begun.send(0)
        yield None  # type: ignore[misc]  # the workers have begun
        for at in range(len(begun.this.blocks)):
            yield begun.trained(at)
    finally:
        begun.end()


def _deadly(error: Exception) -> InfeasibleError:
    deaths = importlib.import_module("dask").config.get("distributed.scheduler.allowed-failures")
    return InfeasibleError(f"more than {deaths} workers died of one block of clients; see their logs ({error})")
