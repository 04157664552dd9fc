"""The CSV files of a paper's studies, in ``results/papers/<paper>/``."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from publications.joint_curves import CurveRow
from publications.provenance import Provenance
from publications.studies import PaperStudy
from publications.tables import FIXED, METRICS, PROVENANCE, AuditRow, RunRow, StudyTable


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with equal keys as CSV; nothing is written for no rows."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([{key: cell(value) for key, value in row.items()} for row in rows])


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV, none where there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cell(value: Any) -> str:
    """A value as it stands in a CSV: six digits, nothing for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def exact(value: float) -> str:
    """A number of a run with all its digits, which give back its bits; nothing for NaN."""
    return "" if math.isnan(value) else repr(value)


def number(text: str) -> float:
    """A number of a CSV; an empty cell is NaN."""
    return float(text) if text else math.nan


def read_provenance(row: Mapping[str, str]) -> Provenance:
    """Where the run of a row comes from; nothing of it in a file that was written before it was kept."""
    return Provenance(**{key: row.get(key, "") for key in PROVENANCE[:-1]}, seconds=number(row.get("seconds", "")))


def write_study(folder: Path, table: StudyTable) -> None:
    """Write ``<study>.runs.csv``, ``<study>.rounds.csv`` and ``<study>.audits.csv``, what all else is made of."""
    write_rows(
        folder / f"{table.name}.runs.csv",
        [
            {
                "run": row.run,
                **row.point,
                "seed": row.seed,
                "rounds": row.rounds,
                **{metric: number_cell(row, metric) for metric in row.numbers},
                **asdict(row.provenance),
            }
            for row in table.runs
        ],
    )
    write_rows(
        folder / f"{table.name}.rounds.csv",
        [{**row.point, **{key: getattr(row, key) for key in _CURVE}} for row in table.curves],
    )
    write_rows(
        folder / f"{table.name}.audits.csv",
        [{**row.point, **{key: getattr(row, key) for key in _AUDIT}} for row in table.audits],
    )


_AUDIT = (
    "seed",
    "trials",
    "unit",
    "epsilon_published",
    "epsilon_empirical",
    "epsilon_accounted",
    "delta",
    "canary",
)
_CURVE = ("metric", "round", "mean", "half_width", "seeds")


def number_cell(row: RunRow, metric: str) -> str:
    """A number of a run as it is stored: with all digits, but for runs that were stored with six."""
    value = row.numbers[metric]
    return exact(value) if row.provenance.kept else cell(value)


def read_study(folder: Path, study: PaperStudy) -> StudyTable | None:
    """A study as it was written, None if it was not."""
    rows = read_rows(folder / f"{study.name}.runs.csv")
    if not rows:
        return None
    metrics = (*METRICS, *study.measured)
    keys = tuple(key for key in rows[0] if key not in (*FIXED, *metrics))
    runs = tuple(
        RunRow(
            {key: row[key] for key in keys},
            int(row["seed"]),
            int(row["rounds"]),
            {metric: number(row.get(metric, "")) for metric in metrics},
            row["run"],
            read_provenance(row),
        )
        for row in rows
    )
    curves = tuple(
        CurveRow(
            {key: row[key] for key in row if key not in _CURVE},
            int(row["round"]),
            number(row["mean"]),
            number(row["half_width"]),
            int(row["seeds"]),
            row["metric"],
        )
        for row in read_rows(folder / f"{study.name}.rounds.csv")
    )
    audits = tuple(
        AuditRow(
            point={key: row[key] for key in row if key not in _AUDIT},
            seed=int(row["seed"]),
            trials=int(row["trials"]),
            unit=row["unit"],
            epsilon_published=number(row["epsilon_published"]),
            epsilon_empirical=number(row["epsilon_empirical"]),
            epsilon_accounted=number(row["epsilon_accounted"]),
            delta=number(row["delta"]),
            canary=row["canary"],
        )
        for row in read_rows(folder / f"{study.name}.audits.csv")
    )
    return StudyTable(study.name, keys, runs, curves, audits, len(runs))
