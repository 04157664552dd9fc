"""Connection with a Dask cluster: of a running scheduler, or in Slurm jobs that are started for it."""

import asyncio
import importlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from wirelessfl.errors import InfeasibleError, InputError, precondition

SLURM = "slurm"
CONNECT_TIMEOUT_S = 10.0
WORKER_PATIENCE_S = 300.0
"""Longest wait for a scheduler without any worker; clusters that grow with the load need a while."""
_LAST_PORT = 65535


@contextmanager
def connect(scheduler: str, jobs: int) -> Iterator[Any]:
    """A Dask client of the cluster behind ``scheduler``, an address or the word slurm; touches no file of a run.

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
    distributed = require("distributed", "wirelessfl[cluster]")
    with ExitStack() as resources:
        cluster = resources.enter_context(_slurm_cluster(jobs)) if scheduler == SLURM else None
        with _in_words(scheduler):
            if cluster is None:
                with _address_in_words(scheduler):
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
    except InputError:
        raise
    except Exception as error:  # Dask takes whatever comes for its own protocol, and fails in as many ways
        raise InfeasibleError(f"what answered at {scheduler} is not a Dask scheduler ({error})") from error


@contextmanager
def _address_in_words(scheduler: str) -> Iterator[None]:
    # An address that nothing can be asked at, such as one with TLS and without certificates
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"--scheduler: {scheduler} cannot be used: {error}") from error


def require(module: str, package: str) -> Any:
    """A module of Dask.

    Raises:
        InfeasibleError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InfeasibleError(f"--scheduler needs {module}; install it with: pip install '{package}'") from None


def _slurm_cluster(jobs: int) -> Any:
    jobqueue = require("dask_jobqueue", "dask-jobqueue")
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
