"""The numbers of a paper's studies: one row a run, and from them means, intervals and paired differences.

Everything here is read from the CSV files in ``results/papers/``, so that a table, a verdict or a picture can be made
again without a single trace.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from publications.effects import Difference, MissingRuns
from publications.joint_curves import CurveRow, by_point, curves_of_all, key_of
from publications.provenance import UNKNOWN, Provenance
from publications.studies import Point
from wirelessfl.study import Band, Run, StudyDesign, band, value_text

LEARNT = (
    "test_accuracy",
    "late_accuracy",
    "early_accuracy",
    "first_accuracy",
    "validation_accuracy",
    "test_loss",
    "train_loss",
)
"""The numbers of a run that follow from its training, explained below."""

METRICS = (
    *LEARNT,
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

``test_accuracy``, ``test_loss``, ``train_loss``, ``validation_accuracy`` and both ε are those after the last round;
``late_accuracy`` is the mean over the last quarter of the evaluated rounds (less noisy than the last one alone),
``early_accuracy`` that over the first quarter, ``first_accuracy`` the first evaluated one; ``server_gain``,
``effective_noise_std`` and ``jammer_gain`` are means over the rounds, ``jammer_energy`` and ``energy`` sums."""

PROVENANCE = ("commit", "version", "streams", "torch", "device", "processor", "chunk", "seconds")
"""Where a run comes from: `publications.provenance.Provenance`."""

FIXED = ("run", "seed", "rounds", *METRICS, *PROVENANCE)

FOLLOWED = ("test_accuracy", "test_loss", "train_loss")
"""What every study is followed in over the rounds."""


@dataclass(frozen=True)
class RunRow:
    """One finished run: point as text by key, seed, and numbers: `METRICS`, then what its study measures."""

    point: dict[str, str]
    seed: int
    rounds: int
    numbers: dict[str, float]
    run: str = ""
    provenance: Provenance = UNKNOWN


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
class StudyTable:
    """The runs of one study, from its CSV files.

    Attributes:
        name: Of the study.
        keys: What its points differ in.
        runs: Finished runs; `finished_points` leaves those out whose point lacks a seed.
        curves: Mean curves of the points; `finished_points` leaves those out that lack a seed.
        audits: What audits found.
        stored: How many runs are stored, those of unfinished points with them.
        series: Curves of the single runs whose traces are here, by id; no file has them.
    """

    name: str
    keys: tuple[str, ...]
    runs: tuple[RunRow, ...]
    curves: tuple[CurveRow, ...] = ()
    audits: tuple[AuditRow, ...] = ()
    stored: int = 0
    series: Mapping[str, tuple[CurveRow, ...]] = field(default_factory=dict)

    def finished_points(self, seeds: Sequence[int]) -> StudyTable:
        """The study without the points of which a seed has not run: nothing is judged before its last run."""
        there = by_point(self.runs)
        finished = {key: len(found) for key, found in there.items() if set(seeds) <= {run.seed for run in found}}
        runs = tuple(run for run in self.runs if key_of(run.point) in finished)
        curves = tuple(row for row in self.curves if finished.get(key_of(row.point)) == row.seeds)
        return replace(self, runs=runs, curves=curves, stored=len(self.runs))

    def placed(self, points: Mapping[str, dict[str, str]]) -> StudyTable:
        """The study with the points that its runs have in a design, whatever their texts are in it.

        Args:
            points: Of the runs of the design, by id. Other runs, and curves and audits, move with the runs beside them.
        """
        moved = {key_of(run.point): points[run.run] for run in self.runs if run.run in points}
        return replace(
            self,
            runs=tuple(replace(one, point=moved.get(key_of(one.point), one.point)) for one in self.runs),
            curves=tuple(replace(one, point=moved.get(key_of(one.point), one.point)) for one in self.curves),
            audits=tuple(replace(one, point=moved.get(key_of(one.point), one.point)) for one in self.audits),
        )

    def with_stored(self, stored: StudyTable, points: Mapping[str, dict[str, str]]) -> StudyTable:
        """The study with the runs, curves and audits that were stored before and are not here.

        Runs of unknown origin stay only where there are no others: numbers of two versions do not stand in one study.
        Curves and audits have no origin of their own: they stay where none of the runs that were stored with them has
        been made anew, under another commit or version or with other numbers. Mean curves are then joined with those
        of further seeds.

        Args:
            stored: What was stored.
            points: Of the runs of the study as it is now, by id and in their order; other runs are dropped.
        """
        before, here = stored.placed(points), {run.run: run for run in self.runs}
        both = {one.run: one for one in before.runs if one.provenance.kept or not here} | here
        runs = {run: both[run] for run in points if run in both}
        now = by_point(runs.values())
        same = {
            key: found
            for key, found in by_point(before.runs).items()
            if not any(run.run in here and made_anew(run, here[run.run]) for run in found)
        }
        audited = {key_of(row.point) for row in self.audits}
        audits = [row for row in before.audits if key_of(row.point) in (now.keys() & same.keys()) - audited]
        averaged = {
            key: [run.run for run in found] for key, found in same.items() if all(run.run in runs for run in found)
        }
        present = {key: [run.run for run in found] for key, found in now.items()}
        return replace(
            self,
            runs=tuple(runs.values()),
            curves=curves_of_all(present, self.curves, self.series, before.curves, averaged),
            audits=(*self.audits, *audits),
            stored=len(runs),
        )

    def points(self, where: Point | None = None) -> list[dict[str, str]]:
        """The points that agree with ``where``, in the order of the study, values as text."""
        return [
            runs[0].point for runs in by_point(run for run in self.runs if matches(run.point, where or {})).values()
        ]

    def levels(self, key: str) -> list[str]:
        """The values of a key, as text, in the order of the study."""
        return list(dict.fromkeys(run.point[key] for run in self.runs))

    def by_seed(self, metric: str, where: Point) -> dict[int, float]:
        """A number of the runs at one point, by seed.

        Args:
            metric: One of `METRICS`, or what the study measures.
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

    def curve(self, where: Point, metric: str = "test_accuracy") -> list[CurveRow]:
        """A number at one point over the rounds: one of `FOLLOWED`, or of the study's own."""
        return [row for row in self.curves if row.metric == metric and matches(row.point, where)]

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
        if name not in self.studies or not self.studies[name].runs:
            raise MissingRuns(f"the study {name} has not run")
        return self.studies[name]

    def ended(self, name: str) -> StudyTable:
        """A study of which every run is there, for a mean over its points.

        Raises:
            MissingRuns: some are not; the mean over those that are there is another number.
        """
        table = self.study(name)
        missing = self.about["runs"].get(name, 0) - len(table.runs)
        if missing > 0:
            raise MissingRuns(f"the study {name} lacks {missing} of {self.about['runs'][name]} runs")
        return table

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
            MissingRuns: no seed has both.
        """
        one = self.study(first[0]).by_seed(metric, first[1])
        other = self.study(second[0]).by_seed(metric, second[1])
        return Difference({seed: one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())})


def made_anew(stored: RunRow, here: RunRow) -> bool:
    """Whether a run was made under another commit or version than when it was stored, or has other numbers."""
    known = [(value, here.numbers.get(name, math.nan)) for name, value in stored.numbers.items()]
    differ = (not math.isclose(one, other, rel_tol=1e-5) for one, other in known if not math.isnan(one + other))
    return stored.provenance.source != here.provenance.source or any(differ)


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
