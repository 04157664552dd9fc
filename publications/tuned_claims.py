"""Claims about methods that are all at the settings that won their sweep."""

from __future__ import annotations

from collections.abc import Callable

from publications.claims import Verdict, weigh
from publications.effects import Level
from publications.tables import Tables
from publications.tuning_runs import tuned_point


def ahead_when_tuned(paper: str, sweep: str, method: str, *others: str) -> Callable[[Tables], Verdict]:
    """A check that a method is more accurate than each of the others, all at the settings that won.

    Args:
        paper: Name of the paper.
        sweep: Name of its sweep.
        method: Name of the method in the sweep.
        others: Names of those it is compared with.
    """

    def check(tables: Tables) -> Verdict:
        study, size = f"tuned-{sweep}", str(tables.about["size"])
        points = {one: tuned_point(paper, sweep, size, one) for one in (method, *others)}
        return weigh(
            {
                other: [Level("difference", tables.difference((study, points[method]), (study, points[other])))]
                for other in others
            }
        )

    return check
