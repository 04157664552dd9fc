"""From the folder of a study, finished or not, to its table: one row a run, and the mean curves of every point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import wirelessfl as wfl
from publications.joint_curves import CurveRow
from publications.provenance import Notes, Provenance, provenance_of
from publications.studies import PaperStudy
from publications.tables import FOLLOWED, METRICS, RunRow, StudyTable, mean_of, value_of
from wirelessfl.errors import WirelessFLError
from wirelessfl.study import Run, StudyDesign, band

if TYPE_CHECKING:
    import pandas as pd

Curves = dict[str, NDArray[np.float64]]
"""One run over its rounds, by what is followed."""


def collect(study: PaperStudy, design: StudyDesign, folder: Path) -> StudyTable:
    """The table of a study, from the traces and summaries of the runs that have ended.

    Args:
        study: What it is.
        design: What it consists of.
        folder: Where its runs lie.

    Returns:
        All runs that have ended; mean curves over the seeds of a point that have.
    """
    notes = Notes.of(folder, "")
    rows: list[RunRow] = []
    followed: dict[tuple[int, ...], list[Curves]] = {}
    series: dict[str, tuple[CurveRow, ...]] = {}
    for run in design.runs:
        place = folder / "runs" / run.id
        found = _ended(place)
        if found is None:
            continue
        rounds, summary = found.to_dataframe(), found.summary
        seconds = float(summary.get("wall_time") or math.nan)
        provenance = provenance_of(place / "trace.h5", seconds, notes.runs.get(run.id, ""))
        point = point_at(design, run.levels)
        row = run_row(point, run.scenario.seed, run.id, rounds, summary, provenance)
        own = {name: measure(run.scenario, place / "trace.h5") for name, measure in study.measured.items()}
        rows.append(replace(row, numbers=row.numbers | own))
        curves = _curves(study, run, rounds, place)
        followed.setdefault(run.levels, []).append(curves)
        series[run.id] = _mean_curves(point, [curves])
    means = [row for levels, runs in followed.items() for row in _mean_curves(point_at(design, levels), runs)]
    keys = varied_keys(design)
    return StudyTable(study.name, keys, tuple(rows), tuple(means), stored=len(rows), series=series)


def finished_runs(folder: Path) -> set[str]:
    """Ids of the runs of a study's folder that have ended."""
    return {place.name for place in _places(folder) if _ended(place) is not None}


def begun_runs(folder: Path) -> set[str]:
    """Ids of the runs of a study's folder that have a trace, ended or not."""
    return {place.name for place in _places(folder) if (place / "trace.h5").exists()}


def _places(folder: Path) -> list[Path]:
    runs = folder / "runs"
    return [place for place in runs.iterdir() if place.is_dir()] if runs.exists() else []


def _ended(place: Path) -> wfl.Result | None:
    """A run that has ended, None if it goes on, was interrupted or has not begun."""
    if not (place / "trace.h5").exists():
        return None
    try:
        result = wfl.open_run(place)
    except WirelessFLError:  # a trace that is being written is locked
        return None
    return result if result.summary["status"] in ("complete", "diverged") else None


def _curves(study: PaperStudy, run: Run, rounds: pd.DataFrame, place: Path) -> Curves:
    own = {name: follow(run.scenario, place / "trace.h5") for name, follow in study.curves.items()}
    return {name: rounds[name].to_numpy(dtype=float) for name in FOLLOWED} | own


def varied_keys(design: StudyDesign) -> tuple[str, ...]:
    """The keys that differ between the points of a study."""
    return tuple(key for factor in design.factors if len(factor.levels) > 1 for key in factor.keys)


def point_at(design: StudyDesign, levels: tuple[int, ...]) -> dict[str, str]:
    """A point by its varied keys, values as text."""
    values = design.values(levels)
    return {key: value_of(values[key]) for key in varied_keys(design)}


def run_row(
    point: dict[str, str],
    seed: int,
    run: str,
    rounds: pd.DataFrame,
    summary: Mapping[str, Any],
    provenance: Provenance,
) -> RunRow:
    """The numbers of one run, from its per-round variables and its summary."""
    column = {name: rounds[name].to_numpy(dtype=float) for name in rounds.columns if name in METRICS}
    accuracy = _known(column["test_accuracy"])
    quarter = max(1, len(accuracy) // 4)
    numbers = {name: _last(_known(column[name])) for name in ("test_accuracy", "test_loss", "train_loss", "sim_time")}
    numbers |= {name: _last(_known(column[name])) for name in ("epsilon_published", "epsilon_accounted")}
    numbers |= {
        "late_accuracy": mean_of(accuracy[-quarter:]),
        "early_accuracy": mean_of(accuracy[:quarter]),
        "first_accuracy": float(accuracy[0]) if len(accuracy) else math.nan,
        **{name: mean_of(_known(column[name])) for name in ("server_gain", "effective_noise_std", "jammer_gain")},
        **{name: _sum(_known(column[name])) for name in ("jammer_energy", "energy")},
        **{name: _told(summary, name) for name in ("validation_accuracy", "d", "samples")},
    }
    return RunRow(point, seed, len(rounds), {name: numbers[name] for name in METRICS}, run, provenance)


def _told(summary: Mapping[str, Any], name: str) -> float:
    value = summary.get(name)
    return math.nan if value is None else float(value)


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _last(values: NDArray[np.float64]) -> float:
    return float(values[-1]) if len(values) else math.nan


def _sum(values: NDArray[np.float64]) -> float:
    return float(values.sum()) if len(values) else math.nan


def _mean_curves(point: dict[str, str], runs: list[Curves]) -> tuple[CurveRow, ...]:
    """Rounds that were evaluated only."""
    bands = {metric: band([run[metric] for run in runs]) for metric in runs[0]}
    return tuple(
        CurveRow(point, at + 1, float(mean), float(half), over.seeds, metric)
        for metric, over in bands.items()
        for at, (mean, half) in enumerate(zip(over.mean, over.half_width, strict=True))
        if not math.isnan(mean)
    )
