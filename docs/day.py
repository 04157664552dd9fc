"""How long the researcher's day takes: the table of the last time that it was played.

MkDocs calls the functions named ``on_…``. The line ``<!-- day: table -->`` becomes the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.day import GOALS, Part, read_parts

_PLACE = "<!-- day: table -->"
_TWO_SEEDS = "bf8c942"  # the commit of a table that is older than the five seeds of the page's studies
_NOTHING = "*Nobody has been timed yet; `python -m benchmarks.day` plays the commands.*"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the table in."""
    return markdown.replace(_PLACE, "\n".join(table(read_parts()))) if _PLACE in markdown else markdown


def table(parts: Sequence[Part]) -> Iterator[str]:
    """One row a part, with a sum; of what was not measured a dash."""
    if not parts:
        yield _NOTHING
        return
    yield from ("| part | goal (min) | by hand (min) | of which the machine (s) |", "| --- | --- | --- | --- |")
    for part in parts:
        goal = str(GOALS[part.part]) if part.part in GOALS else ""
        yield f"| {part.part} | {goal} | {_number(part.walked_min)} | {_number(part.machine_s)} |"
    sums = (sum(GOALS.values()), sum(part.walked_min for part in parts if part.part in GOALS))
    machine = sum(part.machine_s for part in parts if part.part in GOALS)
    yield f"| **Together, without the installation** | {sums[0]} | {_number(sums[1])} | {_number(machine)} |"
    yield ""
    yield f"Played on {parts[-1].date}, at commit {parts[-1].commit}, by `python -m benchmarks.day` on a fresh clone."
    if parts[-1].commit == _TWO_SEEDS:
        yield "The studies had two seeds then. They have five now, so that their two parts take longer."


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"
