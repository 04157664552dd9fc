"""Drawing of a run's figures in a process of its own, started before the run: what it imports overlaps with the run.

It is told the trace on its standard input once that is complete, doubles to draw both figures at once, and answers with
a line of JSON for each. Both end as soon as the input does, so that none outlives the process that started it, however
that ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, NoReturn

from wirelessfl.errors import TraceError
from wirelessfl.summary.run_figures import SUMMARY, TIMELINE, draw_run
from wirelessfl.summary.style import FigureOptions
from wirelessfl.trace import failure_words, inspect_file

# Modules that `draw_run` imports where it is called.
_NEEDED = ("wirelessfl.summary.picture", "wirelessfl.summary.timeline")
_LOADED_BY_THEM = "matplotlib.figure"
# The search path is that of this process, set before anything is imported; the current folder is not on it by itself.
_PROGRAM = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {__name__} import main
main()
"""
_PATIENCE_S = 2.0


class FigureProcess:
    """Figures of one run, drawn in a process of their own; in this one where that process cannot be started.

    Args:
        options: format and width.
        process: the started process; None to draw here.
    """

    def __init__(self, options: FigureOptions, process: subprocess.Popen[str] | None) -> None:
        self._options = options
        self._process = process
        self._trace: Path | None = None

    def begin(self, trace: Path) -> None:
        """Order to draw the figures of a complete trace."""
        self._trace = trace
        if self._process is not None:
            order = {"trace": os.fspath(trace.absolute()), "options": asdict(self._options)}
            with suppress(BrokenPipeError):  # it has died, as its answer will show
                print(json.dumps(order), file=_stream(self._process.stdin), flush=True)

    def missing(self) -> tuple[str, ...]:
        """Reasons for every figure that could not be written, once all are drawn.

        Raises:
            TraceError: the trace cannot be read.
        """
        assert self._trace is not None
        if self._process is None:
            return draw_run(self._trace, self._options).missing
        answers = [json.loads(line) for line in _stream(self._process.stdout) if line.endswith("\n")]
        for answer in answers:
            if answer["refused"] is not None:
                raise TraceError(answer["refused"])
        drawn = {name for answer in answers for name in answer["names"]}
        files = [self._options.file(self._trace.with_name(name)) for name in (SUMMARY, TIMELINE) if name not in drawn]
        lost = [f"{file} cannot be drawn: {_ended(self._process.wait())}" for file in files if not file.exists()]
        return tuple(words for answer in answers for words in answer["missing"]) + tuple(lost)

    def close(self) -> None:
        """End of the process: at once where it waits, and with its incomplete files removed where it draws."""
        if self._process is None:
            return
        if self._trace is None:
            self._process.kill()
        with suppress(BrokenPipeError):
            _stream(self._process.stdin).close()
        try:
            self._process.wait(_PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            _stream(self._process.stdout).close()


@contextmanager
def figure_process(options: FigureOptions) -> Iterator[FigureProcess]:
    """Figures of one run, in a process that ends with the context.

    Where matplotlib is loaded already, or no process can be started, they are drawn in this one.

    Args:
        options: format and width.
    """
    figures = FigureProcess(options, _started() if options.drawn and _LOADED_BY_THEM not in sys.modules else None)
    try:
        yield figures
    finally:
        with suppress(subprocess.TimeoutExpired):
            figures.close()


def _started() -> subprocess.Popen[str] | None:
    command = [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path)]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            process_group=0,  # Ctrl-C in a terminal is for the run, which stops this process
        )
    except OSError:  # no interpreter, or no room for another process
        return None


def _stream(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _ended(code: int) -> str:
    how = (
        "ended early"
        if code == 0
        else f"ended by {signal.Signals(-code).name}"
        if code < 0
        else f"ended with code {code}"
    )
    return f"the process that draws it {how}"


def main() -> NoReturn:
    """The process: it waits for one order, draws, and answers."""
    gc.disable()  # it ends before there is anything to collect
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    answer = os.dup(1)
    os.dup2(2, 1)  # what a library prints is no answer
    for module in _NEEDED:
        importlib.import_module(module)
    order = sys.stdin.readline()
    if order:
        _draw(order, answer)
    os._exit(0)  # without a search of all that was imported for what can be freed


def _draw(order: str, answer: int) -> None:
    with suppress(TraceError):  # which the answer tells; for both processes, and while there is one thread
        inspect_file(Path(json.loads(order)["trace"]))
    # Elsewhere than on Linux, where a process with libraries loaded is not forked safely, one figure after the other
    other = _doubled() if sys.platform == "linux" else None
    names = (SUMMARY, TIMELINE) if other is None else (SUMMARY,) if other else (TIMELINE,)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        os.write(answer, _answer(order, names).encode())
    finally:
        if other:
            os.waitpid(other, 0)


def _doubled() -> int | None:
    # Number of a second process, 0 in that one; None where there is no room for it
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
    return None


def _answer(order: str, names: tuple[str, ...]) -> str:
    given = json.loads(order)
    trace = Path(given["trace"])
    missing: tuple[str, ...] = ()
    refused: str | None = None
    try:
        missing = draw_run(trace, FigureOptions(**given["options"]), names=names).missing
    except TraceError as error:
        refused = str(error)
    except Exception as error:  # a fault of a library, which must not cost the run
        missing = (f"{' and '.join(names)} of {trace} cannot be drawn: {failure_words(error)}",)
    return json.dumps({"names": names, "missing": missing, "refused": refused}) + "\n"


def _end_with_input() -> None:
    # Nothing more is said on the input: it ends with its writer, who has the answer or does not want it any more
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)  # raises in the main thread, which removes incomplete files
    time.sleep(_PATIENCE_S)
    os._exit(1)
