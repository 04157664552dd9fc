"""Workers on this machine that are started for one run: processes of one thread, each behind two pipes.

Between two blocks of clients a worker waits for one pickled message each way and nothing else; Dask's scheduler would
bring it several, which cost as much as the blocks of a small model.
"""

import os
import pickle
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic

from wirelessfl.child_process import start_child
from wirelessfl.cluster.blocks import AHEAD, Result, RoundOfBlocks
from wirelessfl.cluster.worker_process import Request
from wirelessfl.errors import InfeasibleError

_DEATHS_OF_ONE = 4
_GRACE_S = 2.0
_POLL_S = 0.2


@contextmanager
def local_workers(count: int, check: Callable[[], None]) -> Iterator["LocalWorkers"]:
    """Worker processes, which are on their way; they end with the context.

    Args:
        count: How many.
        check: Called while they are waited for; may raise to give up.
    """
    with tempfile.TemporaryDirectory(prefix="wirelessfl-workers-") as folder:
        workers = LocalWorkers(count, Path(folder) / "workers.log", check)
        try:
            yield workers
        finally:
            workers.end()


class LocalWorkers:
    """Worker processes of one thread each, of which a dead one is replaced: `Workers`.

    Args:
        count: How many.
        log: File to which their stderr is appended.
        check: Called while they are waited for; may raise to give up.
    """

    def __init__(self, count: int, log: Path, check: Callable[[], None]) -> None:
        self._log, self._check = log, check
        self._most_deaths, self._deaths = _DEATHS_OF_ONE * count, 0
        self._ahead = 1 + AHEAD * count
        self._rounds: list[_Round[Any]] = []
        self._failure: Exception | None = None
        self._ended = False
        self._changed = threading.Condition()
        devices = _devices()
        self._processes = [_Process(log, devices[index % len(devices)] if devices else None) for index in range(count)]
        self._threads = [threading.Thread(target=self._keep_busy, args=(one,), daemon=True) for one in self._processes]
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> list[int]:
        """Process numbers."""
        return [process.pid for process in self._processes]

    def results(self, this: RoundOfBlocks[Result]) -> Generator[Result, None, None]:
        """The results of the blocks of a round, in their order; the workers begin at once.

        Raises:
            InfeasibleError: too many workers have died.
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
        if isinstance(found, Exception):
            raise found
        return found

    def _keep_busy(self, process: "_Process") -> None:
        # The life of one process, in a thread of its own
        while (work := self._work()) is not None:
            begun, at = work
            try:
                result = process.answer(begun, at)
            except _LostError as error:
                with self._changed:
                    begun.lost(at)
                    if not self._ended:
                        self._replace(process, error)
                    self._changed.notify_all()
            else:
                with self._changed:
                    begun.done(at, result)
                    self._changed.notify_all()

    def _work(self) -> "tuple[_Round[Any], int] | None":
        with self._changed:
            while not (self._ended or self._failure):
                for begun in self._rounds:
                    if (at := begun.begin_next()) is not None:
                        return begun, at
                self._changed.wait()
        return None

    def _replace(self, process: "_Process", error: Exception) -> None:
        code = process.ended()
        self._deaths += 1
        if self._deaths <= self._most_deaths:
            try:
                process.start()
            except OSError as refused:
                self._failure = InfeasibleError(f"no worker process can be started: {refused}")
            return
        why = f"killed by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        last = self._log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        words = f"{self._deaths} worker processes have died, the last {why}: {last or error}"
        self._failure = InfeasibleError(words)

    def end(self) -> None:
        """End of all of them."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for process in self._processes:
            process.terminate()
        for process, thread in zip(self._processes, self._threads, strict=True):
            process.ended()
            thread.join()


class _Round(Generic[Result]):
    # The blocks of a round: lost ones and those not begun yet are to be trained, done ones to be taken in order
    def __init__(self, this: RoundOfBlocks[Result], ahead: int) -> None:
        self.this: RoundOfBlocks[Result] = this
        self._ahead = ahead
        self._lost: list[int] = []
        self._done: dict[int, Result | Exception] = {}
        self._begun, self._taken = 0, 0

    def begin_next(self) -> int | None:
        if self._lost:
            return self._lost.pop(0)
        if self._begun < min(self._taken + self._ahead, len(self.this.blocks)):
            self._begun += 1
            return self._begun - 1
        return None

    def lost(self, at: int) -> None:
        self._lost.append(at)

    def done(self, at: int, result: Result | Exception) -> None:
        self._done[at] = result

    def is_next_done(self) -> bool:
        return self._taken in self._done

    def taken(self) -> Result | Exception:
        found = self._done.pop(self._taken)
        self._taken += 1
        return found


class _LostError(Exception):
    pass


class _Process:
    # A process and the round whose model it has
    def __init__(self, log: Path, device: str | None) -> None:
        self._log, self._device = log, device
        self.start()

    def start(self) -> None:
        own = {} if self._device is None else {"CUDA_VISIBLE_DEVICES": self._device}
        with self._log.open("ab") as log:
            self._child = start_child("wirelessfl.cluster.worker_process", 1, log.fileno(), own)
        assert self._child.stdin is not None and self._child.stdout is not None
        self._requests, self._answers = self._child.stdin, self._child.stdout
        self._has: _Round[Any] | None = None

    @property
    def pid(self) -> int:
        return self._child.pid

    def answer(self, begun: "_Round[Result]", at: int) -> Result | Exception:
        """The result of a block, or what it raised there.

        Raises:
            _LostError: the process has died.
        """
        try:
            shared = None if self._has is begun else begun.this.shared
            request = pickle.dumps(Request(shared, begun.this.task, begun.this.part(at)), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return error
        try:
            self._requests.write(request)
            self._requests.flush()
            self._has = begun
            found: Result | Exception = pickle.load(self._answers)  # noqa: S301 - of a process started by this one
        except Exception as error:  # whatever a broken pipe does to pickle
            raise _LostError(str(error)) from error
        return found

    def terminate(self) -> None:
        self._child.terminate()

    def ended(self) -> int:
        """The exit code, as soon as there is one."""
        try:
            code = self._child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # what was not written goes nowhere
                pipe.close()
        return code


def _devices() -> list[str]:
    # Names of GPUs, of which each process takes the next; empty where none is to be chosen
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return [] if count < 2 else [str(one) for one in range(count)] if not named else named.split(",")[:count]
