"""A study for its report, from the files in its folder alone: curves with bands, and what cannot be improved upon."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wirelessfl.analysis.report.elements import (
    POINT_COLUMNS,
    Cell,
    Drawing,
    SortedTable,
    number_cell,
)
from wirelessfl.analysis.telling_apart import setting_text, telling_keys
from wirelessfl.errors import InputError, WirelessFLError
from wirelessfl.summary.axes import COLUMNS, Columns, XAxis, x_axis
from wirelessfl.summary.curves import band
from wirelessfl.summary.numbers import last_finite
from wirelessfl.trace import debugging, failure_words, refuse_irregular

_SAME_COST = 1.01
# More than these nobody reads; evenly spaced ones stand for the others, and the table has all.
_MOST_CURVES, _MOST_PANELS = 10, 6
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class StudyData:
    """Content of the files in a study's folder.

    Attributes:
        path: its folder.
        name: how it is called.
        keys: keys of the scenario that vary.
        x: axes of its picture.
        rows: one row a run and round.
        failures: the errors of runs that failed.
        unfinished: runs that are neither complete nor failed.
    """

    path: Path
    name: str
    keys: tuple[str, ...]
    x: tuple[XAxis, ...]
    rows: pd.DataFrame
    failures: tuple[str, ...]
    unfinished: int


def open_study_data(path: Path) -> StudyData:
    """Content of study.parquet and study.json of a folder.

    Raises:
        InputError: one of them is missing or cannot be read.
    """
    with study_errors(path):
        for file in (path / "study.parquet", path / "study.json"):
            refuse_irregular(file)
        rows, record = pd.read_parquet(path / "study.parquet"), json.loads((path / "study.json").read_text("utf-8"))
        columns, runs = list(rows.columns), record["runs"]
        return StudyData(
            path=path,
            name=str(record["name"]),
            keys=tuple(columns[columns.index("run") + 1 : columns.index("seed")]),
            x=tuple(map(x_axis, record.get("x", ["round"]))),  # a record of 0.2 has none
            rows=rows,
            failures=tuple(f"{run['run']}: {run['error']}" for run in runs if run["status"] == "failed"),
            unfinished=sum(run["status"] not in ("complete", "failed") for run in runs),
        )


@contextmanager
def study_errors(path: Path) -> Iterator[None]:
    """Context in which every error of reading the files of a study becomes one of the input.

    Raises:
        InputError: One line that names the folder.
    """
    try:
        yield
    except WirelessFLError:
        raise
    except Exception as error:  # the boundary: what damaged files of a study raise in pandas cannot be listed
        if debugging():
            raise
        if not (path / "study.parquet").exists():
            words = "found no study.parquet, which a study writes at its end"
            raise InputError(f"{path}: {words}; go on with --resume") from error
        raise InputError(f"{path}: no readable study ({failure_words(error)}); run it again with --resume") from error


@dataclass(frozen=True, eq=False)
class Point:
    """One point of a study: the mean over its seeds.

    Attributes:
        settings: what it sets, in words, one for each key that varies.
        keys: keys that vary.
        values: their values here.
        columns: by round, of each seed.
        runs: how many seeds.
        last: means of the last values of the runs, by name; of their totals for airtime and energies, and of the
            clients heard in a round.
        accuracy_half_width: of the 95 % confidence interval of the last accuracy; NaN with one seed.
    """

    settings: tuple[str, ...]
    keys: tuple[str, ...]
    values: tuple[Any, ...]
    columns: tuple[Columns, ...]
    runs: int
    last: dict[str, float]
    accuracy_half_width: float

    @property
    def label(self) -> str:
        """Settings of the point, in one line."""
        return ", ".join(self.settings) or "the base"


LAST = ("test_accuracy", "test_loss", "epsilon_published", "epsilon_accounted", "sim_time")
TOTAL = ("airtime", "energy", "jammer_energy")


def study_points(study: StudyData) -> list[Point]:
    """The points of a study, in the order of its table."""
    grouped = study.rows.groupby(list(study.keys), sort=False, dropna=False) if study.keys else [((), study.rows)]
    return [_point(study.keys, values, rows) for values, rows in grouped]


def _point(keys: tuple[str, ...], values: Any, rows: pd.DataFrame) -> Point:
    settings = tuple(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in zip(keys, values, strict=True)
    )
    by_run = [run.sort_values("round") for _, run in rows.groupby("run", sort=False)]
    ends = {name: band([[last_finite(run[name].to_numpy(dtype=np.float64))] for run in by_run]) for name in LAST}
    last = {name: float(end.mean[0]) for name, end in ends.items()}
    last["participants_mean"] = float(np.mean([run["participants"].mean() for run in by_run]))
    last |= {name: float(np.mean([run[name].sum(skipna=False) for run in by_run])) for name in TOTAL}
    return Point(
        settings=settings,
        keys=keys,
        values=tuple(values),
        columns=tuple(_columns(run) for run in by_run),
        runs=len(by_run),
        last=last,
        accuracy_half_width=float(ends["test_accuracy"].half_width[0]),
    )


def _columns(run: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    # By round; NaN for what the table of an earlier version lacks
    names = ("round", "test_accuracy", "test_loss", "tx_energy", *COLUMNS)
    return {name: run[name].to_numpy(np.float64) if name in run else np.full(len(run), np.nan) for name in names}


def study_figures(prefix: str, points: list[Point]) -> list[Drawing]:
    """Accuracy against accounted ε and energy, where these differ between points."""
    from wirelessfl.analysis.report.pareto import pareto_figure  # with matplotlib, which pages over runs do not need

    figures = []
    accuracy, width = np.array([(point.last["test_accuracy"], point.accuracy_half_width) for point in points]).T
    for name, words, unit in (
        ("epsilon_accounted", "Accuracy against accounted ε", "ε accounted"),
        ("energy", "Accuracy against energy", "energy of a run (J)"),
        ("jammer_energy", "Accuracy against jamming", "energy of the jammer (noise = 1)"),
    ):
        cost = np.array([point.last[name] for point in points])
        known = cost[np.isfinite(cost) & (cost > 0)]
        if len(known) and (len(points) == 1 or known.max() > _SAME_COST * known.min()):
            anchor = f"{prefix}-{name.replace('_', '-')}"
            figures.append(pareto_figure(anchor, words, unit, cost, accuracy, width, short_labels(points)))
    return figures


def short_labels(points: Sequence[Point]) -> list[str]:
    """Names of points by what tells them apart."""
    rows = [dict(zip(point.keys, point.values, strict=True)) for point in points]
    keys = telling_keys(rows)
    return [setting_text(row, keys) or point.label for row, point in zip(rows, points, strict=True)]


@dataclass(frozen=True)
class Panel:
    """Points that share a chart: those that differ in the last key alone, or all of them.

    Attributes:
        title: what they have in common.
        points: in order.
        labels: what tells them apart.
        remark: how many are left out.
    """

    title: str
    points: list[Point]
    labels: list[str]
    remark: str = ""


def panels(points: list[Point]) -> list[Panel]:
    """The last key that varies tells the curves of a chart apart; the others have a chart for each combination."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(point.settings[:-1], []).append(point)
    if all(len(group) == 1 for group in groups.values()):  # as with keys that move together
        return [_panel("", points, short_labels(points))]
    chosen = _spread(list(groups.items()), _MOST_PANELS)
    left_out = f"{len(chosen)} of {len(groups)} such charts, evenly spaced." if len(chosen) < len(groups) else ""
    return [
        _panel(", ".join(common), group, [point.settings[-1] for point in group], left_out) for common, group in chosen
    ]


def _panel(title: str, points: list[Point], labels: list[str], remark: str = "") -> Panel:
    shown = _spread(list(zip(points, labels, strict=True)), _MOST_CURVES)
    more = f"{len(shown)} of {len(points)} points, evenly spaced." if len(shown) < len(points) else ""
    return Panel(title, [point for point, _ in shown], [label for _, label in shown], f"{more} {remark}".strip())


def _spread(items: list[Item], most: int) -> list[Item]:
    # All items, or ``most`` of them at even distances with both ends.
    return [items[at] for at in np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(int)]


def point_table(points: Sequence[Point]) -> SortedTable:
    """The points of a study after the last round."""
    rows = []
    for number, point in enumerate(points, 1):
        accuracy, width = point.last["test_accuracy"], point.accuracy_half_width
        words = f"{accuracy:.1%}" + ("" if math.isnan(width) else f" ± {100 * width:.1f}")
        columns = (number_cell(point.last[name]) for name in POINT_COLUMNS)
        name, runs = Cell(point.label, point.label), number_cell(point.runs)
        rows.append([number_cell(number), name, runs, Cell(words, accuracy), *columns])
    means = "Points: means over the seeds after the last round, ± 95 % confidence"
    caption = f"{means}. Single runs are in runs/index.csv, in the folder of the study"
    return SortedTable(caption, ("no.", "point", "runs", "accuracy", *POINT_COLUMNS.values()), rows)
