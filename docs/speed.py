"""The numbers of the page on speed: those of the last run of the benchmarks on each kind of processor, and no others.

MkDocs calls the functions named ``on_…``. A line ``<!-- benchmarks: W1, W2 -->`` becomes the table of these groups,
``<!-- benchmarks: targets -->`` that of the targets, ``<!-- benchmarks: picture -->`` the picture, and
``<!-- benchmarks: when -->`` a sentence on the circumstances.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).resolve().parents[1] / "results" / "benchmarks"
_BUSY = 4.0  # load average above which a single ratio is a matter of luck
PICTURE = "explanation/benchmarks.png"
SIMULATOR = "simulator, over the air"
IDEAL = "simulator, ideal uplink"
CONVOLUTIONS = ("C1", "C1 DP", "C2", "C3", "C3 DP", "C4")

_PLACE = re.compile(r"^<!-- benchmarks: (?P<what>.+) -->$", re.MULTILINE)
_NOTHING = "*Nothing was measured here yet; `make bench` does it.*"

_HEADINGS = (
    "",
    "case",
    "processor",
    "median",
    "× plain",
    "× plain, CPU",
    "× limit",
    "× Opacus",
    "of peak",
    "loss",
    "MiB",
)

_RATIOS = ("to_plain_loop", "to_plain_loop_cpu", "to_near_limit", "to_opacus")

Line = dict[str, str]


class Target(NamedTuple):
    """What a column of a workload should be, at least or at most."""

    group: str
    column: str
    meaning: str
    bound: float
    at_least: bool = True
    case: str = SIMULATOR


TARGETS = (
    Target("W1", "to_plain_loop", "× plain loop", 4.5),
    Target("W1", "to_near_limit", "× near-limit", 1.0),
    Target("W2", "to_opacus", "× Opacus' best", 5.0),
    Target("W2", "to_near_limit", "× near-limit", 1.0),
    Target("W3", "to_plain_loop", "× plain loop", 14.0),
    Target("W3", "to_near_limit", "× near-limit", 0.9),
    Target("C1", "to_plain_loop", "× plain loop", 2.3, case=IDEAL),
    Target("C2", "to_plain_loop", "× plain loop", 2.5, case=IDEAL),
    Target("C3", "to_plain_loop", "× plain loop", 6.0, case=IDEAL),
    Target("C4", "to_plain_loop", "× plain loop", 1.2, case=IDEAL),
    Target("C1 DP", "to_opacus", "× Opacus' best", 4.0, case=IDEAL),
    Target("C3 DP", "to_opacus", "× Opacus' best", 4.0, case=IDEAL),
    Target("evaluation", "share_of_peak", "of peak", 0.5, case="resnet18_gn, 2,000 images"),
    *(Target(group, "memory_mib", "largest memory, MiB", 600.0, at_least=False) for group in ("W1", "W2", "W3")),
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the picture of the last run."""
    picture = RESULTS / "benchmarks.png"
    if picture.exists():
        files.append(File.generated(config, PICTURE, content=picture.read_bytes()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts the tables in their places."""
    return _PLACE.sub(lambda place: fill(place["what"], read_lines(RESULTS / "benchmarks.csv")), markdown)


def read_lines(path: Path) -> list[Line]:
    """The lines of a run; none where there was none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(what: str, lines: list[Line]) -> str:
    """What belongs in a place."""
    match what:
        case "targets":
            rows = list(_targets(lines))
            head = ["| workload | processor | measured | | aimed at | |", "| --- | --- | ---: | --- | ---: | --- |"]
        case "when":
            return _when([line for line in lines if line["case"] == SIMULATOR]) or _NOTHING
        case "when convolutions":
            return _when([line for line in lines if line["group"] in CONVOLUTIONS]) or _NOTHING
        case "picture":
            return "![Ratios to the plain loop, and scaling curves](benchmarks.png)" if lines else _NOTHING
        case _:
            cells = [row for group in what.split(", ") for row in _group(group, lines)]
            used = [index for index in range(len(_HEADINGS)) if any(row[index] for row in cells)]
            rows = [_row(row[index] for index in used) for row in cells]
            head = [_row(_HEADINGS[index] for index in used), _row("---:" if i > 2 else "---" for i in used)]
    return "\n".join([*head, *rows]) if rows else _NOTHING


def _when(measured: list[Line]) -> str:
    """When some lines were measured, and how busy the machine was."""
    if not measured:
        return ""
    dates = sorted({line["date"].partition("T")[0] for line in measured})
    load, runs = (max(_value(line, column) for line in measured) for column in ("load", "runs"))
    return (
        f"Measured on {' and '.join(dates)}, {number(runs)} times each, at a load average of {number(load)}: above the "
        "number of cores the machine was busy with other things too, and only ratios mean something."
    )


def _targets(lines: list[Line]) -> Iterator[str]:
    for target, line in itertools.product(TARGETS, lines):
        if (line["group"], line["case"]) != (target.group, target.case):
            continue
        found = _value(line, target.column)
        if math.isnan(found):
            continue
        reached = found >= target.bound if target.at_least else found <= target.bound
        sign = "≥" if target.at_least else "≤"
        verdict = "reached" if reached else "missed"
        if target.at_least and _value(line, "load") > _BUSY:
            verdict = "not decided: a busy machine"
        aim = f"{sign} {number(target.bound)}"
        yield _row([target.group, _processor(line), number(found), target.meaning, aim, verdict])


def _processor(line: Line) -> str:
    return line.get("processor") or "not kept"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _group(group: str, lines: list[Line]) -> Iterator[list[str]]:
    for line in (line for line in lines if line["group"] == group):
        share = _value(line, "share_of_peak")
        yield [
            group,
            line["case"],
            _processor(line),
            f"{number(_value(line, 'median'))} {line['unit']}",
            *(number(_value(line, column)) for column in _RATIOS),
            "" if math.isnan(share) else f"{share:.0%}",
            *(number(_value(line, column)) for column in ("loss", "memory_mib")),
        ]


def _value(line: Line, column: str) -> float:
    return float(line.get(column) or "nan")


def number(value: float) -> str:
    """Three digits; nothing for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
