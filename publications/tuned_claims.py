"""Claims about methods that are all at the settings that won their sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from publications.claims import Outcome, Verdict, weigh
from publications.effects import Level
from publications.studies import Size
from publications.sweeps import LR, find_sweep
from publications.tables import Tables
from publications.tuning import at_the_edge
from publications.tuning_runs import tuned_point


def ahead_when_tuned(paper: str, sweep: str, method: str, *others: str) -> Callable[[Tables], Verdict]:
    """A check that a method is more accurate than each of the others, all at the settings that won.

    It is not confirmed against one whose learning rate won at an end of its grid: another rate may be better still, or
    the one that won may be about to diverge.

    Args:
        paper: Name of the paper.
        sweep: Name of its sweep.
        method: Name of the method in the sweep.
        others: Names of those it is compared with.
    """

    def check(tables: Tables) -> Verdict:
        study, size = f"tuned-{sweep}", tables.about["size"]
        points = {one: tuned_point(paper, sweep, size, one) for one in (method, *others)}
        found = weigh(
            {
                other: [Level("difference", tables.difference((study, points[method]), (study, points[other])))]
                for other in others
            }
        )
        return _open_at_the_edge(found, [one for one in others if _rate_at_the_edge(paper, sweep, size, one)])

    return check


def _rate_at_the_edge(paper: str, sweep: str, size: Size, method: str) -> bool:
    one = next(one for one in find_sweep(paper, sweep, size).methods if one.name == method)
    rate = tuned_point(paper, sweep, size, method)[LR]
    return LR in at_the_edge(one, {**one.start, LR: rate})


def _open_at_the_edge(found: Verdict, others: list[str]) -> Verdict:
    """The verdict where the learning rates of some others won at an end of their grid; a contradiction stands."""
    if not others or found.effect is None or found.outcome is Outcome.CONTRADICTED:
        return found
    reason = f"{found.reason}; the learning rate of {' and '.join(others)} won at an end of its grid"
    name = f"{found.effect.name}, learning rate at an end of its grid"
    effect = replace(found.effect, name=name) if found.effect.name in others else found.effect
    return replace(found, outcome=Outcome.UNDECIDED, reason=reason, effect=effect)
