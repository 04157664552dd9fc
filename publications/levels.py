"""Comparisons of two methods at every level (data set and noise) that a study has, for claims, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from publications.claims import Verdict, scale_of, weigh
from publications.effects import Level as Tested
from publications.effects import MissingRuns
from publications.figures import COLOURS, MARKERS, cut_errors, draw_paper
from publications.studies import Point
from publications.tables import Tables, matches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATASET = "data.dataset.name"
DATASETS = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
SHORT = {"mnist": "MNIST", "fashion_mnist": "Fashion", "cifar10": "CIFAR"}

Level = dict[str, str]
"""Data set and noise, by key, as text."""


class Method(NamedTuple):
    """A method: a study, and what tells its points from those of other methods there."""

    study: str
    where: Point = {}  # noqa: RUF012 - never changed

    def at(self, level: Point) -> tuple[str, Point]:
        """The method's point at a level, as `Comparison` takes it."""
        return self.study, {**self.where, **level}


def levels_of(tables: Tables, method: Method, keys: Sequence[str]) -> list[Level]:
    """The levels at which a method has run, in the order of its study."""
    points = tables.study(method.study).points(method.where)
    return [{key: point[key] for key in keys if key in point} for point in points]


def levels_of_any(tables: Tables, methods: Iterable[Method], keys: Sequence[str]) -> list[Level]:
    """The levels at which some of the methods have run, in the order of their studies.

    Raises:
        MissingRuns: no method has.
    """
    levels: list[Level] = []
    for method in methods:
        with suppress(MissingRuns):
            levels += [level for level in levels_of(tables, method, keys) if level not in levels]
    if not levels:
        raise MissingRuns("no method has a finished point")
    return levels


def all_levels(tables: Tables, method: Method, keys: Sequence[str]) -> list[Level]:
    """The levels of a method's study, for a claim about all of them.

    Raises:
        MissingRuns: some have not run.
    """
    tables.ended(method.study)
    return levels_of(tables, method, keys)


def common_levels(tables: Tables, first: Method, second: Method, keys: Sequence[str]) -> list[Level]:
    """The levels at which both have run.

    Raises:
        MissingRuns: there is none.
    """
    other = levels_of(tables, second, keys)
    both = [level for level in levels_of(tables, first, keys) if any(matches(one, level) for one in other)]
    if not both:
        raise MissingRuns(f"{first.study} and {second.study} have no level in common")
    return both


def level_words(level: Level, symbol: str) -> str:
    """A level for people: ``MNIST σ = 1``."""
    rest = [f"{symbol} = {value}" for key, value in level.items() if key != DATASET]
    return " ".join([DATASETS[level[DATASET]], *rest])


def better(
    first: Method, second: Method, keys: Sequence[str], symbol: str, metric: str = "test_accuracy"
) -> Callable[[Tables], Verdict]:
    """A check that the first has the larger number, on average over the levels that both have."""
    return all_better(((first, second),), keys, symbol, metric=metric)


def all_better(
    pairs: Sequence[tuple[Method, Method]],
    keys: Sequence[str],
    symbol: str,
    names: Sequence[str] = (),
    metric: str = "test_accuracy",
    but: Sequence[Level] = (),
) -> Callable[[Tables], Verdict]:
    """The same for several pairs of methods, each of which is to have it; with a name for each pair.

    Nothing is said before the last run of their studies: the mean over some levels is not that over all. Levels that
    the claim excepts are left out.
    """

    def check(tables: Tables) -> Verdict:
        groups: dict[str, list[Tested]] = {}
        for at, (first, second) in enumerate(pairs):
            for method in (first, second):
                tables.ended(method.study)
            for level in (one for one in common_levels(tables, first, second, keys) if one not in but):
                difference = tables.difference(first.at(level), second.at(level), metric)
                found = Tested(level_words(level, symbol), difference)
                groups.setdefault(names[at] if names else "", []).append(found)
        return weigh(groups, scale=scale_of(metric))

    return check


_BESIDE = 0.06
"""Distance, in levels, by which a number of the paper stands right of ours."""

Stated = Callable[[str, Level], float | None]
"""The paper's own accuracy in percent of a line, by its label, at a level; None where it gives none."""


def draw_levels(
    axes: Axes,
    tables: Tables,
    lines: Sequence[tuple[str, Method]],
    levels: Sequence[Level],
    stated: Stated = lambda label, level: None,
) -> None:
    """Accuracy after the last round with its 95 % interval, methods side by side at each level.

    A method that has not run at a level is left out there; one without any run is not in the legend. Numbers that the
    paper states stand right of ours, as open diamonds.
    """
    paper: list[tuple[float, float]] = []
    spread = 0.14 * (len(lines) - 1)
    for at, (label, method) in enumerate(lines):
        places, means, halves = [], [], []
        for place, level in enumerate(levels):
            said = stated(label, level)
            if said is not None:
                paper.append((place + spread * (at / max(1, len(lines) - 1) - 0.5) + _BESIDE, said))
            try:
                one = tables.band(*method.at(level))
            except (MissingRuns, ValueError):
                continue
            places.append(place + spread * (at / max(1, len(lines) - 1) - 0.5))
            means.append(100 * float(one.mean[0]))
            halves.append(100 * float(one.half_width[0]))
        if places:
            axes.errorbar(
                places,
                means,
                yerr=cut_errors(means, halves),
                clip_on=False,
                label=label,
                color=COLOURS[at % len(COLOURS)],
                marker=MARKERS[at % len(MARKERS)],
                markersize=4,
                linestyle="none",
                capsize=2,
                linewidth=1.0,
            )
    if paper:
        draw_paper(axes, [place for place, _ in paper], [value for _, value in paper])
    axes.set_xticks(np.arange(len(levels)), tick_labels(levels))
    axes.set_xlim(-0.6, len(levels) - 0.4)


def tick_labels(levels: Sequence[Level]) -> list[str]:
    """The noise of each level, and below the middle one of a data set its name."""
    labels = []
    for data, group in groupby(levels, key=lambda level: level[DATASET]):
        noises = [next((value for key, value in level.items() if key != DATASET), "") for level in group]
        labels += [
            f"{noise}\n{SHORT[data] if place == (len(noises) - 1) // 2 else ''}" for place, noise in enumerate(noises)
        ]
    return labels
