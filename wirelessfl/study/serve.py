"""Local worker process: `main` takes tasks on stdin and answers on stdout.

One JSON value a line. A process of its own, and not ``multiprocessing``: that would run the user's script once more in
every worker, which a script without a main guard and a notebook do not survive.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from queue import SimpleQueue
from typing import TextIO

from wirelessfl.errors import RunInterrupted
from wirelessfl.study.task import GRACE_S, Message, Outcome, Progress, Task, run_task


def encode(message: Message) -> str:
    """A message as one line."""
    return json.dumps([type(message).__name__, asdict(message)]) + "\n"


def decode(line: str) -> Message:
    """The message of a line."""
    kind, values = json.loads(line)
    return Progress(**values) if kind == "Progress" else Outcome(**values)


def encode_task(task: Task) -> str:
    """A task as one line."""
    return json.dumps(asdict(task)) + "\n"


def decode_task(line: str) -> Task:
    """The task of a line; JSON knows no tuples."""
    values = json.loads(line)
    return Task(**{**values, "plugin_folders": tuple(values["plugin_folders"])})


def _read_tasks(requests: TextIO, tasks: SimpleQueue[Task | None]) -> None:
    # Reader of tasks; at the end of the study it stops the process as Ctrl-C does, after the round in progress.
    #
    # A round that lasts longer than the grace period is abandoned: what is on disk is whole.
    for line in requests:
        tasks.put(decode_task(line))
    tasks.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(RunInterrupted.exit_code)


def main() -> None:
    """Loop over tasks until stdin ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a user's own code prints is no answer

    def reply(message: Message) -> None:
        with suppress(BrokenPipeError):  # the study is gone, and so is soon this process
            replies.write(encode(message))
            replies.flush()

    tasks: SimpleQueue[Task | None] = SimpleQueue()
    threading.Thread(target=_read_tasks, args=(sys.stdin, tasks), daemon=True).start()
    while (task := tasks.get()) is not None:
        reply(run_task(task, reply))
