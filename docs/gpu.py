"""The section on GPUs of the page on speed: the figures and words of the last measurement, or that there was none.

MkDocs calls ``on_page_markdown``. Lines ``<!-- gpu: words -->``, ``<!-- gpu: targets -->`` and ``<!-- gpu: table -->``
become a paragraph on circumstances and failures, the targets with what was reached, and all rows.
"""

from __future__ import annotations

import csv
import html
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "gpu.csv"
_PLACE = re.compile(r"^<!-- gpu: (?P<what>\w+) -->$", re.MULTILINE)

NOTHING = (
    "**Nothing has been measured on a GPU yet.** Speed on one, and whether its updates agree with those of a CPU, is "
    "therefore not vouched for: what these pages say of it was checked on a CPU, with stand-ins for the device."
)

ROWS = {
    "tests": 1,
    "workloads": 7,
    "convolutions": 6,
    "papers": 4,
    "peaks": 4,
    "profile": 3,
    "agreement": 7,
    "cohort": 1,
    "resume": 2,
}
"""The parts, and how many rows each has in a whole table."""

TRAINING = ("workloads", "convolutions", "papers")
"""The parts whose rows are rounds of local training."""

_COLUMNS = {
    "seconds": "seconds",
    "rounds/s": "rounds_per_s",
    "of peak": "share_of_peak",
    "kernels": "kernel_share",
    "launches": "launch_share",
    "copies": "copy_share",
    "difference": "max_abs_diff_cpu",
    "KS p": "ks_p",
    "result": "status",
}

Line = dict[str, str]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts words and tables in their places."""
    return _PLACE.sub(lambda place: fill(place["what"], read_lines(RESULTS)), markdown)


def read_lines(path: Path) -> list[Line]:
    """The rows; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(what: str, lines: list[Line]) -> str:
    """What belongs in a place."""
    places: dict[str, Callable[[list[Line]], str]] = {"words": words, "targets": targets, "table": table}
    return places[what](lines)


def words(lines: list[Line]) -> str:
    """Where and at which commits, and what did not work."""
    if not lines:
        return NOTHING
    where = {f"{line['device']} (driver {line['driver']}, torch {line['torch']})": None for line in lines}
    commits = {line["commit"]: None for line in lines}
    told = [f"Measured on {' and '.join(where)}, at {_commits(list(commits))}."]
    failed = [
        f"{line['part']}, {line['workload']} ({_plain(line['status'])})" for line in lines if not _is_measured(line)
    ]
    if failed:
        told.append(f"Without a measurement: {'; '.join(failed)}.")
    count = Counter(line["part"] for line in lines)
    absent = [
        f"{rows - count[part]} of the {rows} rows of {part}" if count[part] else part
        for part, rows in ROWS.items()
        if count[part] < rows
    ]
    if absent:
        told.append(f"Not run yet: {', '.join(absent)}.")
    if not failed and not absent:
        told.append("Every part ran to its end.")
    return " ".join(told)


def _commits(commits: list[str]) -> str:
    """Commits by name; where there was no git, the digest of the sources stands for one."""
    return " and ".join(
        commit.replace("sources", "sources with digest", 1) if commit.startswith("sources") else f"commit {commit}"
        for commit in commits
    )


def _plain(text: str) -> str:
    """Text as it is, whatever Markdown or HTML would make of it."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", html.escape(text, quote=False))


def _is_measured(line: Line) -> bool:
    return line["status"].split(":")[0] == "ok"


def targets(lines: list[Line]) -> str:
    """What was aimed at on an H200, for local training alone unless said otherwise, and what was measured."""
    rows = list(_targets({(line["part"], line["workload"]): line for line in lines if _is_measured(line)}))
    if not rows:
        return ""
    return "\n".join([_row(["target", "measured", "aimed at", ""]), _row(["---", "---:", "---:", "---"]), *rows])


def _targets(measured: dict[tuple[str, str], Line]) -> Iterator[str]:
    for (part, workload), line in measured.items():
        share = _value(line, "share_of_peak")
        if part in TRAINING and not math.isnan(share):
            yield _verdict(f"{workload}, of its roofline", percent(share), "≥ 50 %", reached=share >= 0.5)
    w1, w2, cores, shell, resnet = (
        measured.get(key, {})
        for key in (
            ("workloads", "W1"),
            ("workloads", "W2"),
            ("workloads", "W2, two CPU cores"),
            ("workloads", "W1, shell and trace"),
            ("convolutions", "resnet18_gn, tf32"),
        )
    )
    faster = _value(cores, "seconds") / _value(w2, "seconds")
    if not math.isnan(faster):
        yield _verdict("W2, times two CPU cores", number(faster), "≥ 100", reached=faster >= 100)
    seconds = _value(resnet, "seconds")
    if not math.isnan(seconds):
        yield _verdict("resnet18_gn, TF32, 100 × 100 images", f"{number(seconds)} s", "< 4 s", reached=seconds < 4)
    beside = _value(shell, "seconds") * _value(w1, "rounds_per_s")
    if not math.isnan(beside):
        yield _verdict("shell and trace, of a whole round of W1", percent(beside), "< 10 %", reached=beside < 0.1)


def _verdict(what: str, found: str, aim: str, *, reached: bool) -> str:
    return _row([what, found, aim, "reached" if reached else "missed"])


def table(lines: list[Line]) -> str:
    """All rows in one table for each part, training in one; columns that hold nothing are left out."""
    by_part: dict[str, list[Line]] = {}
    for line in lines:
        by_part.setdefault("local training" if line["part"] in TRAINING else line["part"], []).append(line)
    return "\n\n".join(_part(part, own) for part, own in by_part.items())


def _part(part: str, lines: list[Line]) -> str:
    cells = [[_cell(line, column) for column in _COLUMNS.values()] for line in lines]
    used = [at for at in range(len(_COLUMNS)) if any(row[at] for row in cells)]
    headings = list(_COLUMNS)
    rule = ["---", *("---" if headings[at] == "result" else "---:" for at in used)]
    rows = [_row([line["workload"], *(row[at] for at in used)]) for line, row in zip(lines, cells, strict=True)]
    return "\n".join([_row([part, *(headings[at] for at in used)]), _row(rule), *rows])


def _cell(line: Line, column: str) -> str:
    if column == "status":
        return "" if line["status"] == "ok" else _plain(line["status"].removeprefix("ok: "))
    value = _value(line, column)
    if math.isnan(value):
        return ""
    return percent(value) if column.endswith("share") or column == "share_of_peak" else number(value)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _value(line: Line, column: str) -> float:
    return float(line.get(column) or "nan")


def percent(share: float) -> str:
    """Three digits, so that what misses a target narrowly does not read as if it were reached."""
    return f"{number(100 * share)}\N{NO-BREAK SPACE}%"


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
