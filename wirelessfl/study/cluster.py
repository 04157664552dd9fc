"""Workers of a Dask cluster: of a running scheduler, or in Slurm jobs that the study starts.

The folder of the study must be on a file system that this process and all workers share. A task that dies with its
worker is given to another by the scheduler and goes on from its last round on disk.
"""

import importlib
import queue
import time
from dataclasses import asdict, replace
from typing import Any, Self, cast

from typing_extensions import override

from wirelessfl.cluster import connection
from wirelessfl.cluster.connection import SLURM
from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.study.task import MAX_DEATHS, Message, Outcome, Progress, Task, Workers, run_task

_LOOK_INTERVAL_S = 2.0


def compute(task: Task, topic: str) -> Outcome:
    """Outcome of a run computed in a worker of the cluster, with that worker's threads."""
    worker = importlib.import_module("distributed").get_worker()
    return run_task(
        replace(task, threads=task.threads or worker.state.nthreads),
        lambda progress: worker.log_event(topic, {"progress": asdict(progress)}),
        anew=True,  # workers of a cluster outlive a study, and edits
    )


class ClusterWorkers(Workers):
    """All workers of a Dask cluster.

    Args:
        client: Dask client.
        scheduler: What it is connected to, an address or ``slurm``.
    """

    def __init__(self, client: Any, scheduler: str) -> None:
        self._client = client
        self._scheduler = scheduler
        self._inbox: queue.SimpleQueue[Message | InfeasibleError] = queue.SimpleQueue()
        self._futures: list[Any] = []
        self._alone_since: float | None = None
        self._look_at = 0.0
        self._topic = f"wirelessfl-{client.id}"

    @override
    def __enter__(self) -> Self:
        self._client.subscribe_topic(self._topic, lambda event: self._inbox.put(Progress(**event[1]["progress"])))
        return self

    @override
    def submit(self, task: Task) -> None:
        # The key is new in every session: an older task of that name may still be on its way out.
        future = self._client.submit(compute, task, self._topic, key=f"{task.run}-{self._topic}", pure=False)
        self._futures.append(future)
        future.add_done_callback(lambda done: self._inbox.put(_outcome(done, task.run)))

    @override
    def next_message(self, timeout: float) -> Message | None:
        self._require_workers()
        try:
            message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(message, InfeasibleError):
            raise message
        return message

    def _require_workers(self) -> None:
        now = time.monotonic()
        if now < self._look_at or self._scheduler == SLURM:  # Slurm may keep its jobs waiting for days
            return
        self._look_at = now + _LOOK_INTERVAL_S
        try:
            alone = not self._client.nthreads()
        except OSError:
            raise _gone() from None
        self._alone_since = (self._alone_since or now) if alone else None
        precondition(
            self._alone_since is None or now - self._alone_since < connection.WORKER_PATIENCE_S,
            f"the scheduler {self._scheduler} has had no workers for {connection.WORKER_PATIENCE_S:g} s; "
            "start some with: dask worker SCHEDULER --nthreads 1, and continue with --resume",
            InfeasibleError,
        )

    @override
    def __exit__(self, *_: object) -> None:
        for future in self._futures:
            future.release()  # a run in progress stops when it finds the claim gone


def _outcome(future: Any, run: str) -> Outcome | InfeasibleError:
    if future.status != "error":
        return cast("Outcome", future.result()) if future.status == "finished" else _gone()
    error = future.exception()
    died = f"{MAX_DEATHS} or more workers of the cluster died of it; see their logs"
    killed = type(error).__name__ == "KilledWorker"
    return Outcome(run, "failed", died if killed else f"{type(error).__name__}: {error}")


def _gone() -> InfeasibleError:
    return InfeasibleError(
        "the connection to the Dask scheduler is lost; finished rounds are on disk, continue with --resume"
    )
