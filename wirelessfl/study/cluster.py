"""Workers of a Dask cluster: of a running scheduler, or in Slurm jobs that the study starts.

The folder of the study must be on a file system that this process and all workers share. A task that dies with its
worker is given to another by the scheduler and goes on from its last round on disk.
"""

import asyncio
import importlib
import queue
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any, Self, cast

from typing_extensions import override

from wirelessfl.errors import InfeasibleError, InputError, precondition
from wirelessfl.study.task import MAX_DEATHS, Message, Outcome, Progress, Task, Workers, run_task

SLURM = "slurm"
CONNECT_TIMEOUT_S = 10.0
WORKER_PATIENCE_S = 300.0
"""Longest wait for a scheduler without any worker; clusters that grow with the load need a while."""
_LOOK_INTERVAL_S = 2.0
_LAST_PORT = 65535


def compute(task: Task, topic: str) -> Outcome:
    """Outcome of a run computed in a worker of the cluster, with that worker's threads."""
    worker = importlib.import_module("distributed").get_worker()
    return run_task(
        replace(task, threads=task.threads or worker.state.nthreads),
        lambda progress: worker.log_event(topic, {"progress": asdict(progress)}),
        anew=True,  # workers of a cluster outlive a study, and edits
    )


@contextmanager
def connect(scheduler: str, jobs: int) -> Iterator[Any]:
    """A Dask client of the cluster behind ``scheduler``, an address or the word slurm; touches no file of a study.

    Args:
        scheduler: Where the cluster is.
        jobs: The workers asked of Slurm.

    Raises:
        InputError: neither an address nor slurm.
        InfeasibleError: Dask is not installed, or the scheduler does not answer.
    """
    address = re.fullmatch(r"(?:tcp|tls)://\S+:(\d{1,5})", scheduler)
    precondition(
        scheduler == SLURM or (address and 1 <= int(address[1]) <= _LAST_PORT),
        f"--scheduler: found {scheduler!r}; allowed: tcp://HOST:PORT, tls://HOST:PORT (ports 1 to {_LAST_PORT}) "
        f"or {SLURM}",
        InputError,
    )
    distributed = _require("distributed", "wirelessfl[cluster]")
    with ExitStack() as resources:
        cluster = resources.enter_context(_slurm_cluster(jobs)) if scheduler == SLURM else None
        with _in_words(scheduler):
            if cluster is None:
                _shake_hands(distributed, scheduler)
            client = distributed.Client(cluster or scheduler, timeout=CONNECT_TIMEOUT_S, set_as_default=False)
        yield resources.enter_context(client)


def _shake_hands(distributed: Any, address: str) -> None:
    # Handshake with a scheduler within the time-out: Dask's client waits for ever for a silent listener
    async def shake_hands() -> None:
        arguments = distributed.Security().get_connection_args("client")
        connection = await distributed.comm.connect(address, timeout=CONNECT_TIMEOUT_S, **arguments)
        await connection.close()

    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop already
        thread.submit(asyncio.run, asyncio.wait_for(shake_hands(), CONNECT_TIMEOUT_S)).result()


@contextmanager
def _in_words(scheduler: str) -> Iterator[None]:
    # Failures of a connection as errors with a message
    try:
        yield
    except OSError as error:
        raise InfeasibleError(
            f"no Dask scheduler answered at {scheduler} within {CONNECT_TIMEOUT_S:g} s; "
            "is it running, and can this machine reach it?"
        ) from error
    except (TypeError, ValueError) as error:  # such as TLS without certificates
        raise InputError(f"--scheduler: {scheduler} cannot be used: {error}") from error
    except Exception as error:  # Dask takes whatever comes for its own protocol, and fails in as many ways
        raise InfeasibleError(f"what answered at {scheduler} is not a Dask scheduler ({error})") from error


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
            self._alone_since is None or now - self._alone_since < WORKER_PATIENCE_S,
            f"the scheduler {self._scheduler} has had no workers for {WORKER_PATIENCE_S:g} s; "
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


def _require(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InfeasibleError(f"--scheduler needs {module}; install it with: pip install '{package}'") from None


def _slurm_cluster(jobs: int) -> Any:
    jobqueue = _require("dask_jobqueue", "dask-jobqueue")
    config = importlib.import_module("dask").config
    missing = [name for name in ("cores", "memory") if config.get(f"jobqueue.slurm.{name}", None) is None]
    precondition(
        not missing,
        f"--scheduler slurm: the size of a job is not configured ({' and '.join(missing)} missing); set cores, "
        "memory, processes and walltime under jobqueue.slurm in ~/.config/dask/jobqueue.yaml",
        InfeasibleError,
    )
    cluster = jobqueue.SLURMCluster()
    cluster.scale(jobs)
    return cluster
