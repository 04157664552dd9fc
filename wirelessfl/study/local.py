"""Worker processes on this machine: their pool, and `main`, which takes tasks on stdin and answers on stdout.

One JSON value a line.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
import warnings
from collections import Counter, deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from typing_extensions import override

from wirelessfl.child_process import start_child, taken_streams
from wirelessfl.errors import RunInterrupted
from wirelessfl.outputs import writing
from wirelessfl.study.task import GRACE_S, MAX_DEATHS, Message, Outcome, Progress, Task, Workers, run_task
from wirelessfl.trace import trust_trace


def available_cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Warned:
    """A warning in a worker process.

    Attributes:
        text: what Python would print.
    """

    text: str


class LocalWorkers(Workers):
    """Processes of this machine that each compute one run at a time.

    They start with the first task, serve several, and are replaced when they die. They do not see the terminal's
    Ctrl-C: the study decides, and its end, by a kill as well, is the end of their stdin.

    Args:
        count: Number of processes.
        threads: Threads of each.
        log: File to which their stderr is appended; a warning is written there once, whoever says it how often.

    Raises:
        OutputError: it cannot be written.
    """

    def __init__(self, count: int, threads: int, log: Path) -> None:
        self._count, self._threads, self._log_file = count, threads, log
        with writing(log):  # a link might lead anywhere
            self._log = os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666), "ab")
        self._waiting: deque[Task] = deque()
        self._workers: list[_Worker] = []
        self._deaths: Counter[str] = Counter()
        self._warnings: set[str] = set()
        self._inbox: queue.SimpleQueue[tuple[_Worker, bytes | None]] = queue.SimpleQueue()

    @override
    def submit(self, task: Task) -> None:
        self._waiting.append(task)
        self._feed()

    @override
    def next_message(self, timeout: float) -> Message | None:
        try:
            worker, line = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        if line is None:
            return self._replace(worker)
        message: Message | Warned = decode(line)
        if isinstance(message, Warned):
            if message.text not in self._warnings:
                self._warnings.add(message.text)
                self._log.write(message.text.encode("utf-8", "replace"))
                self._log.flush()
            return None
        if isinstance(message, Outcome):
            worker.task = None
            self._feed()
            if message.trace_state is not None:  # of this machine, written by a process of this study
                trust_trace(message.trace_state)
        return message

    def _feed(self) -> None:
        while self._waiting:
            idle = next((worker for worker in self._workers if worker.task is None), None)
            if idle is None:
                if len(self._workers) == self._count:
                    return
                idle = _Worker(self._threads, self._log.fileno(), self._inbox)
                self._workers.append(idle)
            idle.give(self._waiting.popleft())

    def _replace(self, worker: _Worker) -> Outcome | None:
        # Requeue of the task of a dead worker; its failure where too many workers died of it
        worker.close()
        code = worker.process.wait()
        self._workers.remove(worker)
        task, failed = worker.task, None
        if task is not None:
            self._deaths[task.run] += 1
            if self._deaths[task.run] < MAX_DEATHS:
                self._waiting.appendleft(task)
            else:
                why = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
                lost = f"{MAX_DEATHS} worker processes died of it, the last {why}; see {self._log_file}"
                failed = Outcome(task.run, "failed", lost)
        self._feed()
        return failed

    @override
    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close_stdin()
        deadline = time.monotonic() + GRACE_S
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.close()
        self._workers.clear()
        self._log.close()
        with suppress(FileNotFoundError):  # the user may have taken the folder away
            if self._log_file.stat().st_size == 0:
                self._log_file.unlink()


class _Worker:
    def __init__(self, threads: int, log: int, inbox: queue.SimpleQueue[tuple[_Worker, bytes | None]]) -> None:
        self.task: Task | None = None
        self.process = start_child("wirelessfl.study.local", threads, log)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._stdin, self._stdout, self._inbox = self.process.stdin, self.process.stdout, inbox
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._stdout:
            self._inbox.put((self, line))
        self._inbox.put((self, None))

    def give(self, task: Task) -> None:
        self.task = task
        with suppress(BrokenPipeError):  # of a process that has just died: the end of its output requeues the task
            self._stdin.write(encode(task))
            self._stdin.flush()

    def close_stdin(self) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        # Close both pipes of an ended process
        self.close_stdin()
        self._reader.join()
        self._stdout.close()


def encode(value: Task | Message | Warned) -> bytes:
    """A task or message as one line."""
    return json.dumps([type(value).__name__, asdict(value)]).encode() + b"\n"


def decode(line: bytes) -> Any:
    """The task or message of a line; JSON knows no tuples."""
    kind, values = json.loads(line)
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return {"Task": Task, "Progress": Progress, "Outcome": Outcome, "Warned": Warned}[kind](**plain)


def _read_tasks(requests: BinaryIO, tasks: queue.SimpleQueue[Task | None]) -> None:
    # Reader of tasks; at the end of the study it stops the process as Ctrl-C does, after the round in progress.
    #
    # A round that lasts longer than the grace period is abandoned: what is on disk is whole.
    for line in requests:
        tasks.put(decode(line))
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(RunInterrupted.exit_code)


def main() -> None:
    """Loop over tasks until stdin ends."""
    requests, replies = taken_streams()
    speaking = threading.Lock()

    def reply(message: Message | Warned) -> None:
        with speaking, suppress(BrokenPipeError):  # the study is gone, and so is soon this process
            replies.write(encode(message))
            replies.flush()

    def warned(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        reply(Warned(warnings.formatwarning(message, category, filename, lineno)))

    warnings.showwarning = warned  # type: ignore[assignment]
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    threading.Thread(target=_read_tasks, args=(requests, tasks), daemon=True).start()
    while (task := tasks.get()) is not None:
        reply(run_task(task, reply))
