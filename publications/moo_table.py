"""Table III of the paper on multi-objective clipping beside ours, and the runs that diverged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import wirelessfl as wfl
from publications.effects import MissingRuns
from publications.levels import DATASET, DATASETS, Level, Method, level_words, levels_of
from publications.moo_methods import EPSILON, KEYS, METHODS
from publications.moo_numbers import DATA, EPSILONS, OURS, TABLE_III, stated_lead
from publications.tables import RunRow, Tables, matches


def has_run(tables: Tables, method: Method) -> bool:
    """Whether a point of the method's study has ended."""
    return method.study in tables.studies and bool(tables.studies[method.study].runs)


def diverged(run: RunRow) -> bool:
    """Whether a run ended because its loss was no number; its accuracy then counts as 0 %."""
    return math.isnan(run.numbers.get("test_loss", 0.0))


def diverged_runs(tables: Tables, method: Method, level: Level | None = None) -> list[RunRow]:
    """The runs of a method that diverged, at all levels or at one."""
    if not has_run(tables, method):
        return []
    where = {**method.where, **(level or {})}
    return [run for run in tables.studies[method.study].runs if matches(run.point, where) and diverged(run)]


def diverged_text(tables: Tables, methods: Sequence[Method]) -> str:
    """How many runs of some methods diverged, and where; empty if none did."""
    told = []
    for method in methods:
        if lost := diverged_runs(tables, method):
            levels = [{key: run.point[key] for key in KEYS if key in run.point} for run in lost]
            where = ", ".join(dict.fromkeys(level_words(level, "ε") for level in levels))
            told.append(f"{len(lost)} runs of {method.study} diverged and count as 0 % ({where})")
    return "; ".join(told)


def table_iii_rows(tables: Tables) -> list[dict[str, Any]]:
    """``table-iii.csv``: Table III, the paper's numbers beside ours, at equal published and at equal accounted ε.

    A method that has not run has no row.
    """
    rows = []
    ran = {name: methods for name, methods in METHODS.items() if has_run(tables, methods[0])}
    for name, (published, equal) in ran.items():
        for level in levels_of(tables, published, KEYS):
            rows.append(
                {
                    "method": name,
                    "data": DATASETS[level[DATASET]],
                    "ε": level[EPSILON],
                    "paper": f"{TABLE_III[name][level[DATASET]][level[EPSILON]]:.2f} %",
                    "here, at equal published ε": _accuracy_text(tables, published, level),
                    "here, at equal accounted ε": _accuracy_text(tables, equal, level),
                    "ε accounted of what is published": wfl.epsilon_text(
                        float(tables.band(*published.at(level), "epsilon_accounted").mean[0])
                    ),
                }
            )
    return rows


def all_numbers_rows(tables: Tables) -> list[dict[str, Any]]:
    """``table-iii-all.csv``: every number of Table III, and ours at equal published ε or that it has not run.

    Raises:
        MissingRuns: no method has run.
    """
    if not any(has_run(tables, published) for published, _ in METHODS.values()):
        raise MissingRuns("no method of Table III has run")
    rows = []
    for name, (published, _) in METHODS.items():
        for data in DATA:
            row = {"method": name, "data": DATASETS[data]}
            for epsilon in EPSILONS:
                ours = _accuracy_text(tables, published, {DATASET: data, EPSILON: epsilon})
                row[f"paper, ε = {epsilon}"] = f"{TABLE_III[name][data][epsilon]:.2f} %"
                row[f"here, ε = {epsilon}"] = "not run" if ours == "–" else ours
            rows.append(row)
    return rows


def lead_rows(tables: Tables) -> list[dict[str, Any]]:
    """``leads.csv``: MOO's lead over the best other method that has run, at equal published ε and paired by seed.

    Raises:
        MissingRuns: MOO has not run, or no other method has.
    """
    ours, others = METHODS[OURS][0], [published for name, (published, _) in METHODS.items() if name != OURS]
    rows = []
    for data in DATA:
        for epsilon in EPSILONS:
            level = {DATASET: data, EPSILON: epsilon}
            leads = []
            for other in others:
                with suppress(MissingRuns):
                    leads.append((tables.difference(ours.at(level), other.at(level)), other))
            if not leads:
                continue
            least, best = min(leads, key=lambda one: one[0].mean)
            name = next(name for name, methods in METHODS.items() if methods[0] is best)
            lost = len(diverged_runs(tables, ours, level))
            rows.append(
                {
                    "data": DATASETS[data],
                    "ε": epsilon,
                    "as stated, points": f"{stated_lead(data, epsilon):+.2f}",
                    "here": least.text() + (f" ({lost} runs of MOO diverged)" if lost else ""),
                    "over": name,
                }
            )
    if not rows:
        raise MissingRuns("MOO has run beside no other method")
    return rows


def _accuracy_text(tables: Tables, method: Method | None, level: Level) -> str:
    try:
        told = tables.band(*method.at(level)).text(0, percent=True) if method else "–"
    except MissingRuns:
        return "–"
    lost = len(diverged_runs(tables, method, level)) if method else 0
    return f"{told} ({lost} runs diverged)" if lost else told
