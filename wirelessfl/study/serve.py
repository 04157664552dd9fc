"""A local worker process: `main` takes tasks on stdin and answers on stdout.

One JSON value a line. A process of its own, and not ``multiprocessing``: that would run the user's script once more in
every worker, which a script without a main guard and a notebook do not survive.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from queue import SimpleQueue
from typing import TextIO

from wirelessfl.study.task import Message, Outcome, Progress, Task, run_task


def encode(message: Message) -> str:
    """A message as one line."""
    return json.dumps([type(message).__name__, asdict(message)]) + "\n"


def decode(line: str) -> Message:
    """The message of a line."""
    kind, values = json.loads(line)
    return Progress(**values) if kind == "Progress" else Outcome(**values)


def _read_tasks(requests: TextIO, tasks: SimpleQueue[Task | None]) -> None:
    """Hand on tasks as they come; when the study is gone, stop as for Ctrl-C: after the round in progress."""
    for line in requests:
        tasks.put(Task(**json.loads(line)))
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Compute one task after another until stdin ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a user's own code prints is no answer

    def reply(message: Message) -> None:
        replies.write(encode(message))
        replies.flush()

    tasks: SimpleQueue[Task | None] = SimpleQueue()
    threading.Thread(target=_read_tasks, args=(sys.stdin, tasks), daemon=True).start()
    while (task := tasks.get()) is not None:
        reply(run_task(task, reply))
