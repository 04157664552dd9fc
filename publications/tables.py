"""The numbers of a paper's studies: one row a run, and from them means, intervals and paired differences.

Everything here is read from the CSV files in ``results/papers/``, so that a table, a verdict or a picture can be made
again without a single trace.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from publications.studies import PaperStudy, Point
from wirelessfl.study import Band, Run, StudyDesign, band, value_text

METRICS = (
    "test_accuracy",
    "late_accuracy",
    "first_accuracy",
    "test_loss",
    "train_loss",
    "epsilon_published",
    "epsilon_accounted",
    "server_gain",
    "effective_noise_std",
    "jammer_gain",
    "jammer_energy",
    "energy",
    "sim_time",
    "d",
    "samples",
)
"""The numbers of a run, beside its point and seed.

``test_accuracy``, ``test_loss``, ``train_loss`` and both ε are those after the last round; ``late_accuracy`` is the
mean over the last quarter of the evaluated rounds (less noisy than the last one alone), ``first_accuracy`` the first
evaluated one; ``server_gain``, ``effective_noise_std`` and ``jammer_gain`` are means over the rounds, ``jammer_energy``
and ``energy`` sums."""

FIXED = ("run", "seed", "rounds", *METRICS)


class MissingRuns(Exception):
    """A number is asked for that no run has given; a claim that needs it is not tested."""


@dataclass(frozen=True)
class RunRow:
    """One finished run: its point as text by key, its seed, and its numbers."""

    point: dict[str, str]
    seed: int
    rounds: int
    numbers: dict[str, float]
    run: str = ""


@dataclass(frozen=True)
class CurveRow:
    """Test accuracy at a point after a round: mean over the seeds and half width of its 95 % interval."""

    point: dict[str, str]
    round: int
    mean: float
    half_width: float
    seeds: int


@dataclass(frozen=True)
class AuditRow:
    """What an audit of a point found."""

    point: dict[str, str]
    seed: int
    trials: int
    unit: str
    epsilon_published: float
    epsilon_empirical: float
    epsilon_accounted: float
    delta: float
    canary: str


@dataclass(frozen=True)
class Difference:
    """A paired difference over seeds: the mean of (first − second) seed by seed, with its 95 % interval.

    Attributes:
        mean: Of the differences.
        half_width: Of the two-sided 95 % confidence interval by Student's t; NaN with fewer than two seeds.
        seeds: How many seeds both have.
    """

    mean: float
    half_width: float
    seeds: int

    @classmethod
    def of(cls, differences: Sequence[float]) -> Difference:
        """From the difference of every seed.

        Raises:
            MissingRuns: there are fewer than two.
        """
        if len(differences) < 2:
            raise MissingRuns(f"{len(differences)} seeds, an interval needs two")
        over = band([[one] for one in differences])
        return cls(float(over.mean[0]), float(over.half_width[0]), over.seeds)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    def text(self, *, percent: bool = True) -> str:
        """For people; in percentage points where it is one of accuracies."""
        scale, unit = (100.0, " points") if percent else (1.0, "")
        return f"{scale * self.mean:+.3g} ± {scale * self.half_width:.2g}{unit}"


@dataclass(frozen=True)
class StudyTable:
    """The runs of one study, from its CSV files."""

    name: str
    keys: tuple[str, ...]
    runs: tuple[RunRow, ...]
    curves: tuple[CurveRow, ...] = ()
    audits: tuple[AuditRow, ...] = ()

    def points(self, where: Point | None = None) -> list[dict[str, str]]:
        """The points that agree with ``where``, in the order of the study, values as text."""
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for run in self.runs:
            if matches(run.point, where or {}):
                found.setdefault(tuple(run.point.values()), run.point)
        return list(found.values())

    def levels(self, key: str) -> list[str]:
        """The values of a key, as text, in the order of the study."""
        return list(dict.fromkeys(run.point[key] for run in self.runs))

    def by_seed(self, metric: str, where: Point) -> dict[int, float]:
        """A number of the runs at one point, by seed.

        Args:
            metric: One of `METRICS`.
            where: Enough keys to tell the point from all others.

        Raises:
            MissingRuns: no run stands there.
            ValueError: several points agree with ``where``, or a key that the study does not vary.
        """
        if unknown := set(where) - set(self.keys):
            raise ValueError(f"{self.name} varies {', '.join(self.keys)}, not {', '.join(sorted(unknown))}")
        points = self.points(where)
        if not points:
            raise MissingRuns(f"{self.name}: no run at {dict(where)}")
        if len(points) > 1:
            raise ValueError(f"{self.name}: {len(points)} points agree with {dict(where)}")
        return {run.seed: run.numbers[metric] for run in self.runs if run.point == points[0]}

    def band(self, metric: str, where: Point) -> Band:
        """Mean of a number at one point with its 95 % confidence interval over seeds."""
        return band([[value] for value in self.by_seed(metric, where).values()])

    def curve(self, where: Point) -> list[CurveRow]:
        """Test accuracy at one point over the rounds."""
        return [row for row in self.curves if matches(row.point, where)]

    def audit(self, where: Point) -> AuditRow | None:
        """The audit of a point, if there was one."""
        return next((row for row in self.audits if matches(row.point, where)), None)


@dataclass(frozen=True)
class Tables:
    """All studies of a paper; what claims, figures and tables are made of.

    Attributes:
        about: What ``about.json`` holds: size, seeds, version, command.
        studies: By name; a study that has not run is absent.
    """

    about: Mapping[str, Any]
    studies: Mapping[str, StudyTable]

    def study(self, name: str) -> StudyTable:
        """A study that has run.

        Raises:
            MissingRuns: it has not.
        """
        if name not in self.studies:
            raise MissingRuns(f"the study {name} has not run")
        return self.studies[name]

    def band(self, study: str, where: Point, metric: str = "test_accuracy") -> Band:
        """Mean of a number at one point of a study with its 95 % confidence interval over seeds."""
        return self.study(study).band(metric, where)

    def difference(
        self, first: tuple[str, Point], second: tuple[str, Point], metric: str = "test_accuracy"
    ) -> Difference:
        """The paired difference of a number between two points, of one study or of two: first − second.

        All runs of a seed share their random numbers, so the difference is far surer than two means.

        Args:
            first: Name of a study and a point in it.
            second: The other.
            metric: One of `METRICS`.

        Raises:
            MissingRuns: fewer than two seeds have both.
        """
        one = self.study(first[0]).by_seed(metric, first[1])
        other = self.study(second[0]).by_seed(metric, second[1])
        seeds = sorted(one.keys() & other.keys())
        if len(seeds) < 2:
            raise MissingRuns(f"{len(seeds)} common seeds of {first[1]} and {second[1]}, an interval needs two")
        return Difference.of([one[seed] - other[seed] for seed in seeds])


def value_of(value: Any) -> str:
    """A value of a key as it stands in the CSV; equal numbers have equal texts."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value_text(value, limit=10_000)
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def matches(point: Mapping[str, str], where: Point) -> bool:
    """Whether a point agrees with all of ``where``."""
    return all(point.get(key) == value_of(value) for key, value in where.items())


def run_at(design: StudyDesign, where: Point) -> Run | None:
    """The first run of a study at a point that agrees with all of ``where``."""
    for run in design.runs:
        if matches({key: value_of(value) for key, value in design.values(run.levels).items()}, where):
            return run
    return None


def mean_of(values: Iterable[float]) -> float:
    """The mean, NaN of nothing."""
    known = list(values)
    return float(np.mean(known)) if known else math.nan


def long_table(tables: Tables, study: PaperStudy) -> list[dict[str, Any]]:
    """``<study>.csv``: one row a point, with everything that stands side by side on the page.

    Columns: the keys, ``seeds``, ``accuracy`` with ``accuracy_half_width`` (95 %), ``paper_accuracy`` and
    ``paper_source`` where the paper gives a number, both ε (means over the seeds), ``accuracy_equal_epsilon`` with its
    half width and the accounted ε it was reached at, and ``epsilon_empirical``, the audit's lower bound. Columns that
    would be empty everywhere are left out.
    """
    table = tables.study(study.name)
    rows = [_row(tables, study, table, point) for point in table.points()]
    empty = {key for key in rows[0] if all(row[key] is None for row in rows)} if rows else set()
    return [{key: value for key, value in row.items() if key not in empty} for row in rows]


def _row(tables: Tables, study: PaperStudy, table: StudyTable, point: dict[str, str]) -> dict[str, Any]:
    accuracy = table.band("test_accuracy", point)
    paper = next((one for one in study.numbers if matches(point, one.point)), None)
    audit = table.audit(point)
    return {
        **point,
        "seeds": accuracy.seeds,
        "accuracy": float(accuracy.mean[0]),
        "accuracy_half_width": float(accuracy.half_width[0]),
        "paper_accuracy": paper.value if paper else None,
        "paper_source": paper.source if paper else None,
        "epsilon_published": float(table.band("epsilon_published", point).mean[0]),
        "epsilon_accounted": float(table.band("epsilon_accounted", point).mean[0]),
        **_at_equal_epsilon(tables, study, point),
        "epsilon_empirical": audit.epsilon_empirical if audit else None,
    }


def _at_equal_epsilon(tables: Tables, study: PaperStudy, point: Point) -> dict[str, Any]:
    names = ("accuracy_equal_epsilon", "accuracy_equal_epsilon_half_width", "equal_epsilon_accounted")
    there = study.equal.place(point) if study.equal else None
    if study.equal is None or there is None or study.equal.study not in tables.studies:
        return dict.fromkeys(names)
    other = tables.studies[study.equal.study]
    try:
        accuracy, epsilon = other.band("test_accuracy", there), other.band("epsilon_accounted", there)
    except MissingRuns:
        return dict.fromkeys(names)
    return dict(
        zip(names, (float(accuracy.mean[0]), float(accuracy.half_width[0]), float(epsilon.mean[0])), strict=True)
    )
