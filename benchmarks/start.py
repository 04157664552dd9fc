"""Start to end of a small command: ``wirelessfl simulate quickstart``, warm and cold, beside the import of torch.

    python -m benchmarks --only start

Warm: every file that is read lies in memory. Cold: before each run the files of Python, of all installed packages and
of this one are dropped from memory (``posix_fadvise``), as after the start of a machine; files that another process has
open as a library stay, so nothing else that uses torch should run. Compiled Python files (.pyc) are there in both.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import partial
from pathlib import Path

import wirelessfl
from benchmarks.measurement import Case, Sample

GROUP = "start"
_QUICKSTART = ("-m", "wirelessfl", "simulate", "quickstart", "--quiet", "--overwrite", "--out")


def folders_read() -> set[Path]:
    """Folders that a start may read: Python's own, installed packages, this package."""
    installed = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    return {*installed, Path(wirelessfl.__file__).parent}


def forget_files() -> None:
    """Removal of all files there from the memory of the system, as far as no process has them mapped."""
    for path in (path for folder in folders_read() for path in folder.rglob("*") if path.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


class Starts:
    """One command, measured in seconds from start to end and in seconds of the processor, its processes together.

    Args:
        arguments: of the Python interpreter; the folder of the results follows where they end in ``--out``.
        cold: forget the files before each run.
    """

    def __init__(self, *arguments: str, cold: bool = False) -> None:
        self._arguments = arguments
        self._cold = cold
        self._processor_s = 0.0

    def wall(self) -> Sample:
        """Seconds of real time."""
        if self._cold:
            forget_files()
        with tempfile.TemporaryDirectory(prefix="wirelessfl-start-") as folder:
            place = [str(Path(folder) / "run")] if self._arguments[-1] == "--out" else []
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([sys.executable, *self._arguments, *place], check=True, stdout=subprocess.DEVNULL)
            seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        self._processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Sample(seconds)

    def processor(self) -> Sample:
        """Seconds of the processor in the run that was measured just before."""
        return Sample(self._processor_s)


def start_cases(*, quick: bool) -> list[Case]:
    """Quickstart with and without figures, warm and cold, and what importing torch alone takes."""
    commands = {
        "quickstart, warm": Starts(*_QUICKSTART),
        "quickstart without figures, warm": Starts(
            "-m", "wirelessfl", "simulate", "--figures", "none", *_QUICKSTART[3:]
        ),
        "import torch, warm": Starts("-c", "import torch"),
    }
    if not quick:
        commands["quickstart, cold"] = Starts(*_QUICKSTART, cold=True)
    return [
        Case(GROUP, name, unit, partial(measure, starts))
        for name, starts in commands.items()
        for unit, measure in (("s", Starts.wall), ("CPU s", Starts.processor))
    ]
