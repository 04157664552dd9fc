"""Mean curves of a study of which some runs are here and others were stored before."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtrit

from publications.effects import ALPHA


@dataclass(frozen=True)
class CurveRow:
    """A number at a point after a round: mean over the seeds that have run and half width of its 95 % interval."""

    point: dict[str, str]
    round: int
    mean: float
    half_width: float
    seeds: int
    metric: str = "test_accuracy"

    @property
    def place(self) -> tuple[object, ...]:
        """What tells it from the other rows of its study."""
        return (*self.point.values(), self.metric, self.round)


def joint_curves(
    here: Sequence[CurveRow], stored: Sequence[CurveRow], ids_here: Collection[str], ids_stored: Collection[str]
) -> tuple[CurveRow, ...]:
    """The curves of one point, over the runs here and those that were stored, as far as their means allow.

    Of runs that are both here and stored, and are not all of the stored ones, no mean over all of them follows from two
    means: the stored curve then stays as it is.

    Args:
        here: Means over the runs that are here.
        stored: Means over the runs that were stored, other seeds or the same runs.
        ids_here: Of the runs that are here.
        ids_stored: Of those that were stored, and that the study still has.
    """
    if set(ids_stored) <= set(ids_here):
        return tuple(here)
    if set(ids_stored) & set(ids_here) or not here:
        return tuple(stored)
    beside = {row.place: row for row in stored if row.seeds == len(ids_stored)}
    return tuple(_over_all_seeds(row, beside[row.place]) for row in here if row.place in beside)


def _over_all_seeds(row: CurveRow, other: CurveRow) -> CurveRow:
    """The mean over the seeds of two rows, from their means and intervals."""
    seeds = row.seeds + other.seeds
    mean = (row.seeds * row.mean + other.seeds * other.mean) / seeds
    # Squares within either, by its own interval, and between them
    squares = sum(
        one.seeds * (one.mean - mean) ** 2
        + (0.0 if one.seeds == 1 else one.seeds * (one.seeds - 1) * (one.half_width / _quantile(one.seeds)) ** 2)
        for one in (row, other)
    )
    half_width = _quantile(seeds) * math.sqrt(squares / (seeds * (seeds - 1)))
    return replace(row, mean=mean, half_width=half_width, seeds=seeds)


def _quantile(seeds: int) -> float:
    """Of Student's t, for a two-sided interval of the mean of so many."""
    return float(stdtrit(seeds - 1, 1 - ALPHA / 2))
