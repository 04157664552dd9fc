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
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import stdtrit

from wirelessfl.analysis.report.elements import (
    POINT_COLUMNS,
    Cell,
    Drawing,
    SortedTable,
    draw_svg,
    log_scale,
    number_cell,
    whole_numbers,
)
from wirelessfl.errors import InputError, WirelessFLError
from wirelessfl.summary.style import CYCLE
from wirelessfl.trace import debugging, failure_words, refuse_irregular

CONFIDENCE = 0.95
_SAME_COST = 1.01
# More than these nobody reads; evenly spaced ones stand for the others, and the table has all.
_MOST_CURVES, _MOST_PANELS = 10, 6
Item = TypeVar("Item")
_LINES = ("-", "--", ":", "-.")


@dataclass(frozen=True, eq=False)
class StudyData:
    """Content of the files in a study's folder.

    Attributes:
        path: its folder.
        name: how it is called.
        keys: keys of the scenario that vary.
        rows: one row a run and round.
        failures: the errors of runs that failed.
        unfinished: runs that are neither complete nor failed.
    """

    path: Path
    name: str
    keys: tuple[str, ...]
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
        raise InputError(f"{path}: no readable study ({failure_words(error)}); run it again with --resume") from error


@dataclass(frozen=True, eq=False)
class Point:
    """One point of a study: the mean over its seeds.

    Attributes:
        settings: what it sets, in words, one for each key that varies.
        runs: how many seeds.
        rounds: (m,) rounds that all seeds reached.
        accuracy: (m,) mean.
        half_width: (m,) of its 95 % confidence interval; NaN with one seed.
        last: means of the last rounds' values, by name; of the run's total for airtime and energies,
            and of the clients heard in a round.
    """

    settings: tuple[str, ...]
    runs: int
    rounds: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    half_width: NDArray[np.float64]
    last: dict[str, float]

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
    length = min(len(run) for run in by_run)
    accuracy = np.stack([run["test_accuracy"].to_numpy(dtype=np.float64)[:length] for run in by_run])
    last = {name: float(np.mean([run[name].iloc[-1] for run in by_run])) for name in LAST}
    last["participants_mean"] = float(np.mean([run["participants"].mean() for run in by_run]))
    last |= {name: float(np.mean([run[name].sum(skipna=False) for run in by_run])) for name in TOTAL}
    return Point(
        settings=settings,
        runs=len(by_run),
        rounds=by_run[0]["round"].to_numpy()[:length],
        accuracy=accuracy.mean(axis=0),
        half_width=half_width(accuracy),
        last=last,
    )


def half_width(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the 95 % confidence interval of the mean over axis 0, by Student's t: t(n−1) s/√n; NaN for one row."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.nan)
    quantile = float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return np.asarray(quantile * values.std(axis=0, ddof=1) / np.sqrt(count))


def pareto_front(cost: NDArray[np.float64], gain: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the points that no other beats: none has more gain at no more cost, or less cost at no less gain.

    Points that are not finite are on no front. The result is in order of cost.
    """
    known, front, best = np.flatnonzero(np.isfinite(cost) & np.isfinite(gain)), list[int](), -np.inf
    for position in known[np.lexsort((-gain[known], cost[known]))].tolist():
        if gain[position] > best or (front and cost[position] == cost[front[-1]] and gain[position] == best):
            front.append(position)
            best = gain[position]
    return np.array(front, dtype=np.int64)


def study_figures(prefix: str, points: list[Point]) -> list[Drawing]:
    """Curves with bands, and accuracy against accounted ε and energy, where these differ between points."""
    figures = _curves(prefix, points)
    for name, words, unit in (
        ("epsilon_accounted", "Accuracy against accounted ε", "ε accounted"),
        ("energy", "Accuracy against energy", "energy of a run (J)"),
        ("jammer_energy", "Accuracy against jamming", "energy of the jammer (noise = 1)"),
    ):
        cost = np.array([point.last[name] for point in points])
        known = cost[np.isfinite(cost) & (cost > 0)]
        if len(known) and (len(points) == 1 or known.max() > _SAME_COST * known.min()):
            figures.append(_against(f"{prefix}-{name.replace('_', '-')}", words, unit, cost, points))
    return figures


def _curves(prefix: str, points: list[Point]) -> list[Drawing]:
    # The last key that varies tells the curves of a figure apart; the others have a figure for each combination.
    panels: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        panels.setdefault(point.settings[:-1], []).append(point)
    if all(len(panel) == 1 for panel in panels.values()):  # as with keys that move together
        return [_curve_figure(f"{prefix}-curves", "Curves", points, [point.label for point in points])]
    chosen = _spread(list(panels.items()), _MOST_PANELS)
    left_out = f" {len(chosen)} of {len(panels)} such figures, evenly spaced." if len(chosen) < len(panels) else ""
    return [
        _curve_figure(
            f"{prefix}-curves-{at}",
            ", ".join(["Curves", *common]),
            panel,
            [point.settings[-1] for point in panel],
            left_out,
        )
        for at, (common, panel) in enumerate(chosen)
    ]


def _spread(items: list[Item], most: int) -> list[Item]:
    # All items, or ``most`` of them at even distances with both ends.
    return [items[at] for at in np.linspace(0, len(items) - 1, min(len(items), most)).round().astype(int)]


def _curve_figure(name: str, title: str, points: list[Point], labels: list[str], remark: str = "") -> Drawing:
    shown = _spread(list(zip(points, labels, strict=True)), _MOST_CURVES)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for at, (point, label) in enumerate(shown):
            colour, line = CYCLE[at % len(CYCLE)], _LINES[at % len(_LINES)]
            marker = "o" if len(point.rounds) < 3 else ""
            axes.plot(point.rounds, 100 * point.accuracy, color=colour, linestyle=line, label=label, marker=marker)
            edges = (point.accuracy + sign * point.half_width for sign in (-1, 1))
            low, high = (np.clip(100 * edge, 0.0, 100.0) for edge in edges)
            axes.fill_between(point.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(xlabel="round", ylabel="test accuracy (%)")
        whole_numbers(axes.xaxis)
        figure.legend(loc="outside lower center", ncols=1)

    more = f" {len(shown)} of {len(points)} points, evenly spaced." if len(shown) < len(points) else ""
    caption = f"Mean over the seeds with its 95 % confidence interval.{more}{remark}"
    return Drawing(title, draw_svg(name, f"{title}. {caption}", draw, (5.0, 3.0 + 0.2 * len(shown))), caption)


def _against(name: str, title: str, label: str, cost: NDArray[np.float64], points: list[Point]) -> Drawing:
    accuracy, width = np.array([(point.last["test_accuracy"], point.half_width[-1]) for point in points]).T
    positive = np.where(cost > 0, cost, np.nan)
    # Noise is calibrated to a target up to a tolerance: points that aim at one ε cost the same.
    front = pareto_front(np.array([float(f"{value:.2g}") for value in positive]), accuracy)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.errorbar(
            positive,
            100 * accuracy,
            yerr=100 * np.minimum(np.nan_to_num(width), [accuracy, 1.0 - accuracy]),
            fmt="o",
            color=CYCLE[0],
            markersize=5,
            elinewidth=0.8,
        )
        axes.step(positive[front], 100 * accuracy[front], where="post", color=CYCLE[1], label="Pareto front")
        log_scale(axes.xaxis)
        axes.set(xlabel=label, ylabel="test accuracy (%)")
        axes.legend()

    missing = int(np.count_nonzero(~np.isfinite(positive)))
    left_out = f" {missing} points without a finite positive value are left out." if missing else ""
    caption = f"After the last round, mean over the seeds; no point lies above and left of the front.{left_out}"
    best = "; ".join(f"{points[at].label}: {accuracy[at]:.1%} at {positive[at]:.3g}" for at in front.tolist())
    return Drawing(title, draw_svg(name, caption, draw), f"{caption} On the front: {best}.")


def point_table(points: Sequence[Point]) -> SortedTable:
    """The points of a study after the last round."""
    rows = []
    for point in points:
        accuracy, width = point.last["test_accuracy"], point.half_width[-1]
        words = f"{accuracy:.1%}" + ("" if math.isnan(width) else f" ± {100 * width:.1f}")
        columns = (number_cell(point.last[name]) for name in POINT_COLUMNS)
        rows.append([Cell(point.label, point.label), number_cell(point.runs), Cell(words, accuracy), *columns])
    means = "Points: means over the seeds after the last round, ± 95 % confidence"
    caption = f"{means}. Single runs are in runs/index.csv, in the folder of the study"
    return SortedTable(caption, ("point", "runs", "accuracy", *POINT_COLUMNS.values()), rows)
