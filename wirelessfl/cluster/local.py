"""Workers on this machine that are started for one run: processes of one thread, with a scheduler in this process.

Processes of their own, and not ``multiprocessing``: that would run the user's script once more in every worker. Only
who has the certificate of the run can connect, as whoever can is able to run code.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wirelessfl.cluster.connection import require
from wirelessfl.errors import InfeasibleError, precondition

_DEATHS_OF_ONE = 4
_GRACE_S = 2.0


class LocalProcesses:
    """Worker processes of one thread each; a dead one is replaced.

    Args:
        address: Of the scheduler.
        count: How many.
        environment: Variables for all of them.
        folder: For their logs and files.
        devices: Names of GPUs, of which each takes the next; empty where none is to be chosen.
    """

    def __init__(
        self, address: str, count: int, environment: dict[str, str], folder: Path, devices: Sequence[str]
    ) -> None:
        self._address, self._environment, self._folder = address, environment, folder
        self._devices = devices
        self._deaths = 0
        self._most = _DEATHS_OF_ONE * count
        self._processes = [self._started(index) for index in range(count)]

    @property
    def pids(self) -> list[int]:
        """Process numbers."""
        return [process.pid for process in self._processes]

    def _started(self, index: int) -> "subprocess.Popen[bytes]":
        path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        own = {"CUDA_VISIBLE_DEVICES": self._devices[index % len(self._devices)]} if self._devices else {}
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0", "--death-timeout", "60"]
        files = ["--local-directory", str(self._folder), "--preload", "wirelessfl.cluster.worker"]
        with (self._folder / "workers.log").open("ab") as log:
            # -P: the module is looked up where this process finds it. A session of its own: no Ctrl-C of the terminal.
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "distributed.cli.dask_worker", self._address, *options, *files],
                env={**os.environ, **self._environment, **threads, **own, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def replace_dead(self) -> None:
        """New processes in place of those that have ended.

        Raises:
            InfeasibleError: Too many have.
        """
        for index, process in enumerate(self._processes):
            if process.poll() is not None:
                self._deaths += 1
                log = (self._folder / "workers.log").read_text(encoding="utf-8", errors="replace").strip()
                last = log.rpartition("\n")[2]
                precondition(
                    self._deaths <= self._most,
                    f"{self._deaths} worker processes have died, the last with exit code {process.returncode}: {last}",
                    InfeasibleError,
                )
                self._processes[index] = self._started(index)

    def end(self) -> None:
        """End of all of them."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def local_workers(count: int) -> Iterator[tuple[Any, LocalProcesses]]:
    """A Dask client and the worker processes behind it, which are on their way.

    Raises:
        InfeasibleError: Dask is not installed.
    """
    distributed = require("distributed", "wirelessfl[cluster]", "--workers")
    security = distributed.Security.temporary()
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="wirelessfl-workers-")))
        cluster = resources.enter_context(
            distributed.LocalCluster(
                n_workers=0,
                processes=True,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address="127.0.0.1:0",
                local_directory=str(folder),
                silence_logs=50,
            )
        )
        processes = LocalProcesses(cluster.scheduler_address, count, _certificate(security), folder, _devices())
        resources.callback(processes.end)
        client = distributed.Client(cluster, set_as_default=False, direct_to_workers=True)
        yield resources.enter_context(client), processes


def _certificate(security: Any) -> dict[str, str]:
    # As Dask reads its configuration from variables, which other users of the machine do not see
    worker = security.get_tls_config_for_role("worker")
    names = {"ca_file": "CA_FILE", "cert": "WORKER__CERT", "key": "WORKER__KEY"}
    return {
        **{f"DASK_DISTRIBUTED__COMM__TLS__{name}": worker[key] for key, name in names.items()},
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
    }


def _devices() -> list[str]:
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return [] if count < 2 else [str(one) for one in range(count)] if not named else named.split(",")[:count]
