"""The process of one part: ``python -m benchmarks.gpu.child PART DEVICE SIZE FILE SECONDS WORKLOAD…``.

Appends one line of JSON to FILE for each workload, the moment it is measured. Ends with the first that raises, since
what it left on the device may spoil the next: that one gets a fresh process. Where SECONDS pass, the places where all
threads stand are written to stderr. When standard input ends, so does the process and all that it started.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import asdict
from pathlib import Path

from benchmarks.gpu.parts import part_of
from benchmarks.gpu.setting import Device, Measured, Setting


def main(name: str, device: Device, size: str, file: str, seconds: str, *workloads: str) -> int:
    """Measure the workloads of a part, up to one that raises; 1 if one did."""
    end_with_input()
    faulthandler.dump_traceback_later(float(seconds), exit=False)
    setting = Setting(device, tiny=size == "tiny")
    part = part_of(name)
    for workload in workloads:
        print(f"\n===== {name}: {workload}", file=sys.stderr, flush=True)
        try:
            measured = part.workloads[workload](setting)
        except Exception as error:
            traceback.print_exc()
            first_line = next(iter(str(error).splitlines()), "")
            _report(file, workload, Measured(failure=f"{type(error).__name__}: {first_line}"))
            return 1
        if measured.failure:
            print(measured.failure, file=sys.stderr, flush=True)
        _report(file, workload, measured)
    return 0


def end_with_input() -> None:
    """Watch standard input from now on: when whoever holds its other end is gone, the process is killed.

    With it all that it started, where it leads a group of its own.
    """

    def watch() -> None:
        while os.read(0, 1):
            pass
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, name="end of input", daemon=True).start()


def _report(file: str, workload: str, measured: Measured) -> None:
    with Path(file).open("a", encoding="utf-8") as reports:
        reports.write(json.dumps({"workload": workload, **asdict(measured)}) + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))  # type: ignore[arg-type]
