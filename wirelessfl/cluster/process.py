"""A worker process of this machine, as the run that has started it sees it."""

import codecs
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from io import BufferedReader
from typing import cast

from wirelessfl.child_process import read_message, start_child, write_message
from wirelessfl.cluster.blocks import Result, RoundOfBlocks
from wirelessfl.cluster.worker import RoundOnWorkers
from wirelessfl.cluster.worker_process import Request
from wirelessfl.errors import InfeasibleError

_FORKS_S = 2.0  # for the last words; a process that was forked from it may speak on
_LAST_WORDS = 200
_PIECE = 1 << 16  # bytes


class WorkerProcess:
    """A worker process behind two pipes; it keeps what all blocks of the latest round share.

    What it prints goes to this process's stderr.

    Args:
        device: The GPU that it is to see; None for all.

    Raises:
        OSError: there is no room for one more process.
        RuntimeError: likewise for a thread.
    """

    def __init__(self, device: str | None) -> None:
        self._own = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
        self.start()

    def start(self) -> None:
        """Start of the process, or of another one in its place; raises as the class does."""
        self._child = start_child("wirelessfl.cluster.worker_process", 1, subprocess.PIPE, self._own)
        assert self._child.stdin is not None and self._child.stdout is not None and self._child.stderr is not None
        self._requests, self._answers = self._child.stdin, self._child.stdout
        self._has: RoundOnWorkers | None = None
        self._last_words = ""
        heard = (cast(BufferedReader, self._child.stderr),)
        self._listener = threading.Thread(target=self._listen, args=heard, daemon=True)
        self._listener.start()

    def _listen(self, stderr: BufferedReader) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with stderr:
            while piece := stderr.read1(_PIECE):
                text = decoder.decode(piece)
                self._last_words = (self._last_words + text)[-_LAST_WORDS:]
                with suppress(Exception):  # a stderr that is closed, or one of the user's own
                    sys.stderr.write(text)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._child.pid

    def answer(self, this: RoundOfBlocks[Result], at: int) -> Result | BaseException:
        """The result of block ``at`` of a round, or what it raised there.

        Raises:
            OSError: the process has died.
            EOFError: likewise.
        """
        try:
            shared = None if self._has is this.shared else this.shared
            request = pickle.dumps(Request(shared, this.task, this.part(at)), pickle.HIGHEST_PROTOCOL)
        except BaseException as error:  # of the user's own objects
            return error
        write_message(self._requests, request)
        self._has = this.shared
        answer = read_message(self._answers)
        try:
            found: Result | BaseException = pickle.loads(answer)  # noqa: S301 - of a process started by this one
        except BaseException as error:
            return InfeasibleError(f"what a worker process answered cannot be read: {type(error).__name__}: {error}")
        return found

    def terminate(self) -> None:
        """The process is asked to end."""
        self._child.terminate()

    def ended(self, patience_s: float) -> str:
        """How the process has ended, in words; after a while it is made to."""
        try:
            code = self._child.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        for pipe in (self._requests, self._answers):
            with suppress(OSError):  # what was not written goes nowhere
                pipe.close()
        if self._listener.ident is not None:  # None where there was no room for one more thread
            self._listener.join(min(patience_s, _FORKS_S))
        said = "".join(f" ({line.strip()})" for line in self._last_words.strip().splitlines()[-1:])
        return f"with exit code {code}{said}" if code >= 0 else f"killed by {_name_of(-code)}{said}"


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
