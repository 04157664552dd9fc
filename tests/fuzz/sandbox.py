"""A command of ``wirelessfl`` in a child process that cannot harm its parent: limits of time and memory, own output.

A forked child starts with all modules imported, so that thousands run in a minute; a real process starts afresh.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import io
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIME_LIMIT_S = 30.0
MEMORY_BEYOND = 2 << 30
"""Address space that a case may take beyond what its process has at the start."""
FILE_LIMIT = 1 << 30
_LOOK_MS = 2
"""How often a process is asked whether it answers signals."""


@dataclass(frozen=True)
class Ending:
    """How a process ended.

    Attributes:
        code: its exit code; None where a signal ended it.
        signal: that signal, or None.
        hung: whether it was still running at the limit of time.
        seconds: how long it took.
        cpu_s: processor time that it took.
        out: what it printed on stdout and stderr.
    """

    code: int | None
    signal: int | None
    hung: bool
    seconds: float
    cpu_s: float
    out: str


@dataclass(frozen=True)
class Kick:
    """A signal sent to a process: SIGKILL some time after its start, others after it has begun to answer them."""

    number: int
    after_s: float


def preload() -> None:
    """Import all that commands import, once, before the first fork; torch stays on one thread."""
    import matplotlib as mpl

    mpl.use("Agg")
    import h5netcdf
    import matplotlib.pyplot
    import pandas
    import pyarrow.parquet
    import torch
    import xarray

    import wirelessfl

    torch.set_num_threads(1)
    assert all((h5netcdf, matplotlib.pyplot, pandas, pyarrow.parquet, xarray))
    for module in pkgutil.walk_packages(wirelessfl.__path__, "wirelessfl."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page


def forked(
    work: Callable[[], object], folder: Path, *, limit_s: float = TIME_LIMIT_S, kick: Kick | None = None
) -> Ending:
    """Do some work in a forked child whose current folder is ``folder``; its exit code is that of ``SystemExit``."""
    log = folder / ".output"
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads in the parent: the child needs none of them
        child = os.fork()
    if not child:
        _in_child(work, folder, log)
    return _wait(child, log, start, limit_s, kick)


def command(args: Sequence[str]) -> Callable[[], object]:
    """The command line as work for a child."""

    def work() -> object:
        from wirelessfl.cli import main

        return main(list(args), prog_name="wirelessfl")

    return work


def real(args: Sequence[str], folder: Path, *, limit_s: float = TIME_LIMIT_S, kick: Kick | None = None) -> Ending:
    """The same as a process of its own, started the way a user does."""
    log = folder / ".output"
    start = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "wirelessfl", *args],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    ending = _wait(process.pid, log, start, limit_s, kick)
    process.returncode = 0  # it has been waited for above
    return ending


def _in_child(work: Callable[[], object], folder: Path, log: Path) -> None:
    """Never returns: the child ends here whatever happens."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, descriptor), (2, descriptor)):
            os.dup2(source, target)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(one, "w", closefd=False), "utf-8") for one in (1, 2))
        _limit()
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                code = code or 1
        os._exit(code)


def _limit() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    faulthandler.enable(sys.stderr)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BEYOND
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answers(child: int) -> bool:
    """Whether a process catches SIGTERM, as a command does from the moment at which it is entered."""
    try:
        status = Path(f"/proc/{child}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def _wait(child: int, log: Path, start: float, limit_s: float, kick: Kick | None) -> Ending:
    descriptor = os.pidfd_open(child)
    try:
        poll: Any = select.poll()
        poll.register(descriptor, select.POLLIN)
        ended = False
        if kick is not None:
            while kick.number != signal.SIGKILL and not ended and not _answers(child):
                ended = bool(poll.poll(_LOOK_MS)) or time.monotonic() > start + limit_s
            ended = ended or bool(poll.poll(1e3 * kick.after_s))
            if not ended:
                os.kill(child, kick.number)
        ended = ended or bool(poll.poll(1e3 * max(0.0, start + limit_s - time.monotonic())))
        if not ended:
            os.killpg(child, signal.SIGKILL)
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(child, 0)
    out = log.read_bytes().decode("utf-8", "replace") if log.exists() else ""
    seconds = time.monotonic() - start
    if os.WIFSIGNALED(status):
        return Ending(None, os.WTERMSIG(status), not ended, seconds, usage.ru_utime + usage.ru_stime, out)
    return Ending(os.WEXITSTATUS(status), None, not ended, seconds, usage.ru_utime + usage.ru_stime, out)
