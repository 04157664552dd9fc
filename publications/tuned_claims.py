"""Claims about methods that are all at the settings that won their sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from publications.claims import Outcome, Verdict, weigh
from publications.effects import Level
from publications.studies import Size
from publications.sweep_keys import LR, NORM_RATE, TAU, WORDS
from publications.sweeps import find_sweep
from publications.tables import Tables
from publications.tuning import at_the_edge
from publications.tuning_runs import tuned_point


def ahead_when_tuned(paper: str, sweep: str, method: str, *others: str) -> Callable[[Tables], Verdict]:
    """A check that a method is more accurate than each of the others, all at the settings that won.

    No lead is decided over a method whose learning rate, clip norm τ or rate η_C of the norm won at an end of its grid:
    another value may be better still, or the one that won may be about to diverge.

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
        behind = (method,) if found.outcome is Outcome.CONTRADICTED else others
        ends = {one: _at_an_end(paper, sweep, size, one) for one in behind}
        return _open_at_the_edge(found, {one: keys for one, keys in ends.items() if keys})

    return check


_ENDLESS = (LR, TAU, NORM_RATE)
"""Settings that could go on beyond their grid; a batch cannot, beyond all samples."""


def _at_an_end(paper: str, sweep: str, size: Size, method: str) -> str:
    """What of a method won at an end of its grid, in words."""
    one = next(one for one in find_sweep(paper, sweep, size).methods if one.name == method)
    ends = at_the_edge(one, one.setting_in(tuned_point(paper, sweep, size, method)))
    return " and ".join(WORDS[key] for key in _ENDLESS if key in ends)


def _open_at_the_edge(found: Verdict, ends: Mapping[str, str]) -> Verdict:
    """The verdict where settings of a method that is behind won at an end of their grid."""
    if not ends or found.effect is None:
        return found
    told = " and ".join(f"{words} of {one}" for one, words in ends.items())
    reason = f"{found.reason}; {told} won at an end of the grid"
    words = ends.get(found.effect.name, "")
    name = f"{found.effect.name}, {words} at an end of its grid" if words else found.effect.name
    return replace(found, outcome=Outcome.UNDECIDED, reason=reason, effect=replace(found.effect, name=name))
