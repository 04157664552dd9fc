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
    """One row a part, with a sum; a column of minutes by hand where any were measured, with a dash for the others."""
    if not parts:
        yield _NOTHING
        return
    by_hand = any(not math.isnan(part.walked_min) for part in parts)
    yield _row("part", "goal (min)", "by hand (min)" if by_hand else None, "machine (s)")
    yield _row("---", "---", "---" if by_hand else None, "---")
    for part in parts:
        goal = str(GOALS[part.part]) if part.part in GOALS else ""
        yield _row(part.part, goal, _number(part.walked_min) if by_hand else None, _number(part.machine_s))
    walked = sum(part.walked_min for part in parts if part.part in GOALS)
    machine = sum(part.machine_s for part in parts if part.part in GOALS)
    yield _row(
        "**Together, without the installation**",
        str(sum(GOALS.values())),
        _number(walked) if by_hand else None,
        _number(machine),
    )
    yield ""
    if by_hand:
        yield "*By hand* is what a person needed for a part; a dash means that it was not measured."
    yield f"Played on {parts[-1].date}, at commit {parts[-1].commit}, by `python -m benchmarks.day` on a fresh clone."
    if parts[-1].commit == _TWO_SEEDS:
        yield "The studies had two seeds then. They have five now, so that their two parts take longer."


def _row(*cells: str | None) -> str:
    return f"| {' | '.join(cell for cell in cells if cell is not None)} |"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"
