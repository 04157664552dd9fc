"""Mean curves of a study of which some runs are here and others were stored before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from scipy.special import stdtrit

from publications.effects import ALPHA

PointKey = tuple[tuple[str, str], ...]
"""A point with its keys in alphabetical order, for comparison."""


class _AtPoint(Protocol):
    @property
    def point(self) -> dict[str, str]: ...


Row = TypeVar("Row", bound=_AtPoint)


@dataclass(frozen=True)
class CurveRow:
    """A number at a point after a round: mean over the seeds that have run and half width of its 95 % interval."""

    point: dict[str, str]
    round: int
    mean: float
    half_width: float
    seeds: int
    metric: str = "test_accuracy"


def key_of(point: dict[str, str]) -> PointKey:
    """The key of a point, the same in whatever order its own keys are."""
    return tuple(sorted(point.items()))


def by_point(rows: Iterable[Row]) -> dict[PointKey, list[Row]]:
    """Rows by the key of their point, in the order of the points' first rows."""
    found: dict[PointKey, list[Row]] = {}
    for row in rows:
        found.setdefault(key_of(row.point), []).append(row)
    return found


def curves_of_all(
    present: Mapping[PointKey, Sequence[str]],
    here: Iterable[CurveRow],
    series: Mapping[str, Sequence[CurveRow]],
    stored: Iterable[CurveRow],
    averaged: Mapping[PointKey, Sequence[str]],
) -> tuple[CurveRow, ...]:
    """The mean curves of all points over the runs that are here and those that were stored.

    Stored means of a point are used where they are over runs that the study has as they were; else its means are over
    the runs here alone.

    Args:
        present: Ids of all runs of each point, in the order of the study.
        here: Means over the runs that are here.
        series: Curves of each run that is here, by id.
        stored: Means that were stored.
        averaged: Ids of the runs over which a point's stored means are, where they can be used.
    """
    own, before = by_point(here), by_point(stored)
    curves: list[CurveRow] = []
    for key, ids in present.items():
        means, over = before.get(key, []), averaged.get(key, ())
        usable = {row.seeds for row in means} == {len(over)}
        if usable and any(run not in series for run in ids):
            curves.extend(_joined(means, [series[run] for run in ids if run not in over]))
        else:
            curves.extend(own.get(key, []))
    return tuple(curves)


def _joined(stored: Sequence[CurveRow], added: Iterable[Sequence[CurveRow]]) -> list[CurveRow]:
    """Mean curves of one point over the seeds that were stored and over further runs, of the rounds that all have.

    A mean that was stored has six digits, so that its half width is exact to a few 10⁻⁶ of the mean.
    """
    rows = {(row.metric, row.round): row for row in stored}
    for run in added:
        single = {(row.metric, row.round): row for row in run}
        rows = {at: _over_all_seeds(row, single[at]) for at, row in rows.items() if at in single}
    return [row for row in rows.values() if not math.isnan(row.mean)]


def _over_all_seeds(row: CurveRow, single: CurveRow) -> CurveRow:
    """The row with one seed more."""
    seeds, values = row.seeds + 1, np.array([row.mean, single.mean])
    with np.errstate(over="ignore", invalid="ignore"):  # infinite values and those whose squares are
        mean = np.average(values, weights=[row.seeds, 1])
        squares = np.dot([row.seeds, 1], (values - mean) ** 2)
        if row.seeds > 1:
            squares += row.seeds * (row.seeds - 1) * np.square(row.half_width / _quantile(row.seeds))
        half_width = _quantile(seeds) * np.sqrt(squares / (seeds * (seeds - 1)))
    return replace(row, mean=float(mean), half_width=float(half_width), seeds=seeds)


def _quantile(seeds: int) -> float:
    """The quantile of Student's t by which the half width of so many seeds is a multiple of the standard error."""
    return float(stdtrit(seeds - 1, 1 - ALPHA / 2))
