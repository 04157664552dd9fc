"""Claims about methods that are all at the settings that won their sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from publications.claims import Outcome, Verdict, weigh
from publications.effects import Level, MissingRuns
from publications.studies import STUDIES, Point, Size
from publications.sweep_keys import BATCH, CLIP, GRADIENT_CLIP, LR, WORDS
from publications.sweeps import SWEEPS, find_sweep
from publications.tables import StudyTable, Tables, value_of
from publications.tuning import Sweep, TunedMethod, at_the_edge, value_in
from publications.tuning_runs import tuned_point
from wirelessfl.study import load_study


def ahead_when_tuned(paper: str, sweep: str, method: str, *others: str) -> Callable[[Tables], Verdict]:
    """A check that a method is more accurate than each of the others, all at the settings that won.

    No lead is decided over a method of which a setting, but for batch and C, won at an end of its grid: another value
    may be better still, or the one that won may be about to diverge.

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


def decided_where_tuned(paper: str, study: str, check: Callable[[Tables], Verdict]) -> Callable[[Tables], Verdict]:
    """A check that decides nothing in a size in which no sweep gave a study its learning rates.

    Nor where one of them is the first or last that was tried, whosever it is: another may be better still, or the one
    that won may be about to diverge.

    Args:
        paper: Name of the paper, which does not state the rate.
        study: Name of the study of the methods that are compared; its points differ in what tells these apart, and in
            the learning rate.
        check: Gives the effect at the rate of the study, which stays.
    """

    def judged(tables: Tables) -> Verdict:
        found = check(tables)
        if not found.is_decided:
            return found
        # A sweep that reports runs writes a study of its own, and this one stays as it is
        there = [one for one in SWEEPS[paper] if (one.study, one.size) == (study, tables.about["size"])]
        sweeps = [one for one in there if one.reported == 0]
        if not sweeps:
            return open_untuned(found)
        ends = [name for sweep in sweeps for name in _rates_at_an_end(sweep, tables.study(study))]
        if ends:
            reason = f"{found.reason}; the learning rate of {' and '.join(ends)} won at an end of the grid"
            return replace(found, outcome=Outcome.UNDECIDED, reason=reason, remark="a rate at the end of its grid")
        return found

    return judged


def open_untuned(found: Verdict) -> Verdict:
    """The verdict on methods whose learning rate no sweep of the size chose for their study: nothing is decided."""
    why = "no sweep of this size chose the learning rate of the study, so that nothing is decided about the methods"
    return found.opened(why, "a rate of no sweep")


def decided_between_rates(
    paper: str, study: str, sweep: str, methods: Sequence[str], check: Callable[[Tables], Verdict]
) -> Callable[[Tables], Verdict]:
    """A check on methods at one learning rate that decides nothing where tuning chose only larger or only smaller ones.

    Args:
        paper: Name of the paper, which does not state the rate.
        study: Name of the study, all of whose runs have the rate.
        sweep: Name of the sweep that tuned the methods beside it.
        methods: What the sweep calls those that are compared.
        check: Gives the effect at the rate of the study, which stays.
    """

    def judged(tables: Tables) -> Verdict:
        found, size = check(tables), tables.about["size"]
        if not found.is_decided:
            return found
        design = load_study(STUDIES / paper / size / f"{study}.yaml", tables.about.get("overrides", ()))
        (rate,) = {run.scenario.training.optimizer.lr for run in design.runs}
        points = [tuned_point(paper, sweep, size, one) for one in methods]
        chosen = [float(point[LR]) for point in points if point]
        if len(chosen) == len(points) and min(chosen) <= rate <= max(chosen):
            return found
        told = f"the learning rate is {rate:g} for all, {chosen_words(chosen)}"
        return found.opened(f"{told}, so that nothing is decided about the methods", "at one rate for all")

    return judged


def chosen_words(rates: Sequence[float]) -> str:
    """Which learning rates tuning chose in a size, if any, in words."""
    if not rates:
        return "not tuned at this size"
    ends = dict.fromkeys(f"{rate:g}" for rate in (min(rates), max(rates)))
    return f"and tuning chose {' to '.join(ends)}"


def _rates_at_an_end(sweep: Sweep, table: StudyTable) -> list[str]:
    """Methods of a sweep that have the first or last learning rate of their grid in the study that takes what won.

    Raises:
        MissingRuns: a method has no run there.
        ValueError: a point is that of two methods, or its rate is on no grid.
    """
    found, taken = [], set()
    for method in sweep.methods:
        points = table.points(_told_apart(sweep, method, table.keys))
        if not points:
            raise MissingRuns(f"{table.name}: {method.name} has not run")
        for point in points:
            place = tuple(point.values())
            if place in taken:
                raise ValueError(f"{sweep.name}: {table.name} does not tell {method.name} from another method")
            taken.add(place)
            rates = {value_of(rate): rate for rate in method.grid[LR]}
            if point[LR] not in rates:
                raise ValueError(f"{sweep.name}, {method.name}: {table.name} has the learning rate {point[LR]}")
            if LR in at_the_edge(method, {**method.start, LR: rates[point[LR]]}):
                found.append(method.name)
    return list(dict.fromkeys(found))


def _told_apart(sweep: Sweep, method: TunedMethod, keys: Sequence[str]) -> Point:
    """What of a method and its sweep is fixed of the keys that a study varies."""
    fixed = {**method.fixed, **sweep.change}
    where = {}
    for key in keys:
        if key not in method.grid:
            with suppress(KeyError):
                where[key] = value_in(fixed, key)
    return where


_NO_END = (BATCH, CLIP, GRADIENT_CLIP)
"""Settings whose ends do not count; pages say where one won at an end. Where most gradients are longer than C, a step
is the rate times C, of which the rate lies inside its grid; and the noise has the same ε whatever the batch."""


def _at_an_end(paper: str, sweep: str, size: Size, method: str) -> str:
    """What of a method won at an end of its grid, in words."""
    one = next(one for one in find_sweep(paper, sweep, size).methods if one.name == method)
    ends = at_the_edge(one, one.setting_in(tuned_point(paper, sweep, size, method)))
    return " and ".join(WORDS[key] for key in one.grid if key in ends and key not in _NO_END)


def _open_at_the_edge(found: Verdict, ends: Mapping[str, str]) -> Verdict:
    """The verdict where settings of a method that is behind won at an end of their grid."""
    if not ends or found.effect is None:
        return found
    told = " and ".join(f"{words} of {one}" for one, words in ends.items())
    reason = f"{found.reason}; {told} won at an end of the grid"
    words = ends.get(found.effect.name, "")
    name = f"{found.effect.name}, {words} at an end of its grid" if words else found.effect.name
    return replace(found, outcome=Outcome.UNDECIDED, reason=reason, effect=replace(found.effect, name=name))
