"""From a finished study to its table: one row a run, and the mean curve of every point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from publications.tables import METRICS, CurveRow, RunRow, StudyTable, mean_of, value_of
from wirelessfl.scenario import Scenario
from wirelessfl.study import Study, StudyDesign, band

if TYPE_CHECKING:
    import pandas as pd


def collect(
    name: str,
    study: Study,
    design: StudyDesign,
    curve: Callable[[Scenario, Path], NDArray[np.float64]] | None = None,
) -> StudyTable:
    """The table of a study, from its Parquet file and the summaries of its runs.

    Args:
        name: What it is called.
        study: The finished study.
        design: What it consisted of.
        curve: What is followed over the rounds, from the scenario of a run and its trace; None for test accuracy.
    """
    frame = study.to_dataframe()
    by_run = dict(list(frame.groupby("run", sort=False)))
    keys = varied_keys(design)
    scenarios = {run.id: run.scenario for run in design.runs}
    runs = tuple(
        run_row(point_at(design, record.levels), record.seed, record.run, by_run[record.run], record.summary or {})
        for record in study.complete
    )
    curves = []
    for levels, records in study.points().items():
        followed = [
            by_run[record.run]["test_accuracy"].to_numpy(dtype=float)
            if curve is None
            else curve(scenarios[record.run], study.folder.trace(record.run))
            for record in records
        ]
        curves += _curve(point_at(design, levels), followed)
    return StudyTable(name, keys, runs, tuple(curves))


def varied_keys(design: StudyDesign) -> tuple[str, ...]:
    """The keys that differ between the points of a study."""
    return tuple(key for factor in design.factors if len(factor.levels) > 1 for key in factor.keys)


def point_at(design: StudyDesign, levels: tuple[int, ...]) -> dict[str, str]:
    """A point by its varied keys, values as text."""
    values = design.values(levels)
    return {key: value_of(values[key]) for key in varied_keys(design)}


def run_row(point: dict[str, str], seed: int, run: str, rounds: pd.DataFrame, summary: Mapping[str, Any]) -> RunRow:
    """The numbers of one run, from its per-round variables and its summary."""
    column = {name: rounds[name].to_numpy(dtype=float) for name in rounds.columns if name in METRICS}
    accuracy = _known(column["test_accuracy"])
    numbers = {name: _last(_known(column[name])) for name in ("test_accuracy", "test_loss", "train_loss", "sim_time")}
    numbers |= {name: _last(_known(column[name])) for name in ("epsilon_published", "epsilon_accounted")}
    numbers |= {
        "late_accuracy": mean_of(accuracy[-max(1, len(accuracy) // 4) :]),
        "first_accuracy": float(accuracy[0]) if len(accuracy) else math.nan,
        **{name: mean_of(_known(column[name])) for name in ("server_gain", "effective_noise_std", "jammer_gain")},
        **{name: _sum(_known(column[name])) for name in ("jammer_energy", "energy")},
        "d": float(summary.get("d", math.nan)),
        "samples": float(summary.get("samples", math.nan)),
    }
    return RunRow(point, seed, len(rounds), {name: numbers[name] for name in METRICS}, run)


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


def _last(values: NDArray[np.float64]) -> float:
    return float(values[-1]) if len(values) else math.nan


def _sum(values: NDArray[np.float64]) -> float:
    return float(values.sum()) if len(values) else math.nan


def _curve(point: dict[str, str], runs: list[NDArray[np.float64]]) -> list[CurveRow]:
    """Rounds that were evaluated only."""
    over = band(runs)
    return [
        CurveRow(point, at + 1, float(mean), float(half), over.seeds)
        for at, (mean, half) in enumerate(zip(over.mean, over.half_width, strict=True))
        if not math.isnan(mean)
    ]
