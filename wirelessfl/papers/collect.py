"""From a finished study to its table: one row a run, and the mean curve of every point."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wirelessfl.papers.tables import METRICS, CurveRow, RunRow, StudyTable, mean_of, value_of
from wirelessfl.study import RunRecord, Study
from wirelessfl.study.bands import band
from wirelessfl.summary.numbers import last_finite

if TYPE_CHECKING:
    import pandas as pd


def collect(name: str, study: Study, curve: Callable[[Path], NDArray[np.float64]] | None = None) -> StudyTable:
    """The table of a study, from its Parquet file and the summaries of its runs.

    Args:
        name: What it is called.
        study: The finished study.
        curve: What is followed over the rounds, from the trace of a run; None for test accuracy.
    """
    frame = study.to_dataframe()
    by_run = dict(list(frame.groupby("run", sort=False)))
    keys = tuple(key for factor in study.factors if len(factor.levels) > 1 for key in factor.keys)
    runs = tuple(_row(record, _point(study, record.levels, keys), by_run[record.run]) for record in study.complete)
    curves = []
    for levels, records in study.points().items():
        followed = [
            by_run[record.run]["test_accuracy"].to_numpy(dtype=float)
            if curve is None
            else curve(study.folder.trace(record.run))
            for record in records
        ]
        curves += _curve(_point(study, levels, keys), followed)
    return StudyTable(name, keys, runs, tuple(curves))


def _point(study: Study, levels: tuple[int, ...], keys: tuple[str, ...]) -> dict[str, str]:
    values = study.values(levels)
    return {key: value_of(values[key]) for key in keys}


def _row(record: RunRecord, point: dict[str, str], rounds: pd.DataFrame) -> RunRow:
    summary = record.summary or {}
    column = {name: rounds[name].to_numpy(dtype=float) for name in rounds.columns if name in METRICS}
    accuracy = _known(column["test_accuracy"])
    numbers = {name: last_finite(column[name]) for name in ("test_accuracy", "test_loss", "train_loss", "sim_time")}
    numbers |= {name: last_finite(column[name]) for name in ("epsilon_published", "epsilon_accounted")}
    numbers |= {
        "late_accuracy": mean_of(accuracy[-max(1, len(accuracy) // 4) :]),
        "first_accuracy": float(accuracy[0]) if len(accuracy) else math.nan,
        **{name: mean_of(_known(column[name])) for name in ("server_gain", "effective_noise_std", "jammer_gain")},
        **{name: _sum(_known(column[name])) for name in ("jammer_energy", "energy")},
        "d": float(summary.get("d", math.nan)),
        "samples": float(summary.get("samples", math.nan)),
    }
    return RunRow(point, record.seed, len(rounds), {name: numbers[name] for name in METRICS}, record.run)


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]


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
