"""A part in a process of its own: killed when its time is over, begun again where a workload ended it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from benchmarks.gpu.prepare import PACKAGES, ROOT
from benchmarks.gpu.setting import Measured, Setting

_POLL_S = 0.05
_BEFORE_S = 5.0  # before a part is killed it says where it stands

_REPORTED = 1  # exit code of a process whose last report is of a failure
_CHILD = ("-m", "benchmarks.gpu.child")

Announce = Callable[[str, Measured], None]


def child_environment() -> dict[str, str]:
    """That of this process, with this repository first and the packages from wheels behind it."""
    places = [str(ROOT), str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "PYTHONUNBUFFERED": "1"}


def run_part(
    name: str, workloads: Sequence[str], setting: Setting, limit_s: float, log: Path, announce: Announce
) -> None:
    """Measure the workloads of a part; what it prints stays in ``log`` if one of them fails.

    Args:
        name: Of the part.
        workloads: In this order.
        setting: Device and size.
        limit_s: Seconds for all of them together, then the process and all that it started are killed.
        log: File for stdout and stderr.
        announce: Hears of every workload at once.
    """
    deadline = time.monotonic() + limit_s
    waiting, failed = list(workloads), False
    log.parent.mkdir(parents=True, exist_ok=True)

    def done(workload: str, measured: Measured) -> None:
        nonlocal failed
        failed |= bool(measured.failure)
        waiting.remove(workload)
        announce(workload, measured)

    with log.open("w", encoding="utf-8") as output:
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                done(waiting[0], Measured(failure="not reached before the part's time was over"))
                continue
            before = len(waiting)
            code = _run_child(name, waiting, setting, left, output, done)
            if not waiting:
                break
            if code is None:
                done(waiting[0], Measured(failure=f"timed out, {limit_s:.0f} s are allowed for the part"))
            elif code != _REPORTED or len(waiting) == before:
                done(waiting[0], Measured(failure=f"the process ended with {_ending(code)}"))
    if not failed:
        log.unlink()


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _run_child(
    name: str, workloads: Sequence[str], setting: Setting, left_s: float, output: IO[str], announce: Announce
) -> int | None:
    """The exit code; None where the time was over. Reports are announced as they come."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "reports.jsonl"
        file.touch()
        size = "tiny" if setting.tiny else "full"
        arguments = [name, setting.device, size, str(file), str(max(0.1, left_s - _BEFORE_S)), *workloads]
        command = [sys.executable, *_CHILD, *arguments]
        with _process(command, output) as process, file.open(encoding="utf-8") as reports:
            deadline = time.monotonic() + left_s
            while process.poll() is None and time.monotonic() < deadline:
                _announce_new(reports, announce)
                time.sleep(_POLL_S)
            code = process.poll()
            if code is None:
                _kill(process)
            _announce_new(reports, announce)
            return code


def _announce_new(reports: IO[str], announce: Announce) -> None:
    for line in _whole_lines(reports):
        told = json.loads(line)
        announce(told.pop("workload"), Measured(**told))


def _whole_lines(file: IO[str]) -> Iterator[str]:
    while True:
        place = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(place)
            return
        yield line


@contextmanager
def _process(command: Sequence[str], output: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which does not outlive the block, nor this process.

    Its standard input ends when this process does, however that ends.
    """
    output.flush()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        if process.poll() is None:
            _kill(process)
        process.stdin.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has just ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
