"""The long table of a study: everything that stands side by side on the page, a row for each point."""

from __future__ import annotations

from typing import Any

from publications.effects import MissingRuns
from publications.studies import PaperStudy, Point
from publications.tables import StudyTable, Tables, matches


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
