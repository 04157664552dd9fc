"""Mean curves of a study of which some runs are here and others were stored before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from publications.effects import ALPHA

PointKey = tuple[tuple[str, str], ...]
"""A point with its keys in alphabetical order, for comparison."""


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


def joint_curves(stored: Sequence[CurveRow], added: Iterable[Sequence[CurveRow]]) -> tuple[CurveRow, ...]:
    """Mean curves of one point over the seeds that were stored and over further runs.

    Means and half widths have six digits where they were stored, and so has what follows from them.

    Args:
        stored: Rows of the stored mean curves.
        added: Of each further run its own rows, with one seed.

    Returns:
        Rows of the rounds that all of them have.
    """
    rows = {(row.metric, row.round): row for row in stored}
    for run in added:
        own = {(row.metric, row.round): row for row in run}
        rows = {at: _over_all_seeds(row, own[at]) for at, row in rows.items() if at in own}
    return tuple(row for row in rows.values() if not math.isnan(row.mean))


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
