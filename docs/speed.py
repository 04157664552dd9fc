"""The numbers of the page on speed: those of the last run of the benchmarks on each kind of processor, and no others.

MkDocs calls the functions named ``on_…``. A line ``<!-- benchmarks: W1, W2 -->`` becomes the table of these groups,
``<!-- benchmarks: targets -->`` that of the targets, ``<!-- benchmarks: picture -->`` the picture,
``<!-- benchmarks: processors -->`` what the letters of the processors stand for, and ``<!-- benchmarks: when -->`` a
sentence on the circumstances.
"""

from __future__ import annotations

import csv
import math
import re
import string
from collections.abc import Iterable, Iterator, Mapping
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
    "on",
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
    if not lines:
        return _NOTHING
    match what:
        case "processors":
            return "\n".join(f"- **{letter}**: {name or 'kind not kept'}" for name, letter in letters(lines).items())
        case "targets":
            return _targets(lines) or _NOTHING
        case "when":
            return _when([line for line in lines if line["case"] == SIMULATOR]) or _NOTHING
        case "when convolutions":
            return _when([line for line in lines if line["group"] in CONVOLUTIONS]) or _NOTHING
        case "picture":
            return "![Ratios to the plain loop, and scaling curves](benchmarks.png)"
        case _:
            return _groups(what.split(", "), lines) or _NOTHING


def letters(lines: list[Line]) -> dict[str, str]:
    """A letter for each kind of processor, in the order of the file."""
    return dict(zip(dict.fromkeys(line.get("processor", "") for line in lines), string.ascii_uppercase, strict=False))


def _when(measured: list[Line]) -> str:
    """When some lines were measured, and how busy the machine was."""
    if not measured:
        return ""
    dates = sorted({line["date"].partition("T")[0] for line in measured})
    period = f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"
    load, runs = (max(_value(line, column) for line in measured) for column in ("load", "runs"))
    return (
        f"Measured {period}, up to {number(runs)} times each, at a load average of up to {number(load)}: above the "
        "number of cores the machine was busy with other things too, and only ratios mean something."
    )


def _targets(lines: list[Line]) -> str:
    """Rows of the targets, a column for each kind of processor; nothing where none was measured."""
    named = letters(lines)
    rows = [
        _row([target.group, target.meaning, _aim(target), *(found.get(name, "") for name in named)])
        for target in TARGETS
        if (found := dict(_found(target, lines)))
    ]
    if not rows:
        return ""
    head = [_row(["workload", "", "aimed at", *named.values()]), _row(["---", "---", *["---:"] * (1 + len(named))])]
    return "\n".join([*head, *rows])


def _aim(target: Target) -> str:
    """The bound of a target, with its sign."""
    return f"{'≥' if target.at_least else '≤'} {number(target.bound)}"


def _found(target: Target, lines: list[Line]) -> Iterator[tuple[str, str]]:
    # Of each processor what was measured: bold where the target is reached, in brackets where that is not decided
    for line in lines:
        value = _value(line, target.column)
        if (line["group"], line["case"]) != (target.group, target.case) or math.isnan(value):
            continue
        reached = value >= target.bound if target.at_least else value <= target.bound
        told = f"**{number(value)}**" if reached else number(value)
        if target.at_least and _value(line, "load") > _BUSY:
            told = f"({number(value)})"
        yield line.get("processor", ""), told


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _groups(groups: list[str], lines: list[Line]) -> str:
    """Table of some groups, without columns that hold nothing; a unit that all share stands in the heading."""
    chosen = [line for group in groups for line in lines if line["group"] == group]
    units = {line["unit"] for line in chosen}
    shared = units.pop() if len(units) == 1 else None
    named = letters(lines)
    cells = [_cells(line, named, with_unit=shared is None) for line in chosen]
    used = [index for index in range(len(_HEADINGS)) if any(row[index] for row in cells)]
    headings = [f"{one}, {shared}" if one == "median" and shared else one for one in _HEADINGS]
    head = [_row(headings[index] for index in used), _row("---:" if i > 2 else "---" for i in used)]
    return "\n".join([*head, *(_row(row[index] for index in used) for row in cells)]) if cells else ""


def _cells(line: Line, named: Mapping[str, str], *, with_unit: bool) -> list[str]:
    share, median = _value(line, "share_of_peak"), number(_value(line, "median"))
    return [
        line["group"],
        line["case"],
        named[line.get("processor", "")],
        f"{median} {line['unit']}" if with_unit else median,
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
