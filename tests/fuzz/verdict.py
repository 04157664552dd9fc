"""What no process may do, whatever file it was given."""

from __future__ import annotations

import re
from collections.abc import Collection

from tests.fuzz.sandbox import Ending

CODES = frozenset({0, 2, 3})
"""Done; wrong input; cannot be met. A check that fails is 4, an interruption 130, only where they are possible."""

CANARY = "canary-d2f1c9-outside"
"""Content of a file that no command was pointed at."""

_CRASH = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored in|Fatal Python error|HDF5-DIAG|Segmentation fault"
    r"|^\S+\.py:\d+: \w*Warning",
    re.MULTILINE,
)


def faults(ending: Ending, allowed: Collection[int] = CODES) -> list[str]:
    """What a process did that none may do; empty where all is well."""
    found = []
    if ending.hung:
        found.append(f"hung: still running after {ending.seconds:.0f} s")
    elif ending.signal is not None:
        found.append(f"ended by signal {ending.signal}")
    elif ending.code not in allowed:
        found.append(f"exit code {ending.code}")
    crash = _CRASH.search(ending.out)
    if crash:
        found.append(f"traceback: {_last_frame(ending.out)}" if "Traceback" in crash[0] else f"printed: {crash[0]}")
    if CANARY in ending.out:
        found.append("leak: printed the content of a file that it was not pointed at")
    if ending.code and "Error" not in ending.out and "Interrupted" not in ending.out:
        found.append(f"silence: exit code {ending.code} without a word")
    return found


def _last_frame(out: str) -> str:
    """Where an exception came from in the package, and the exception."""
    places = re.findall(r'File "([^"]*wirelessfl/[^"]+)", line (\d+)', out)
    lines = [line for line in out.splitlines() if line and not line[0].isspace()]
    words = next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|Interrupt|Exit)\b", line)), "")
    place = ":".join((places[-1][0].rsplit("wirelessfl/", 1)[-1], places[-1][1])) if places else "?"
    return f"{place} {words[:160]}"
