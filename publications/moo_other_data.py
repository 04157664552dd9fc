"""The settings that won on MNIST, on the other data sets of Table III."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import wirelessfl as wfl
from publications.effects import MissingRuns
from publications.levels import DATASET, DATASETS
from publications.moo_methods import METHODS, TUNED_NAMES
from publications.moo_numbers import DATA, TABLE_III
from publications.moo_table import diverged
from publications.studies import Point
from publications.tables import RunRow, Tables, matches
from publications.tuning_runs import tuned_point

OTHER_DATA: Mapping[str, str] = {"fashion_mnist": "other-data", "cifar10": "other-data-cifar10"}
"""By data set the study of it, at published ε = 3.61."""

_LABELS = {
    tuned: label for label, (published, _) in METHODS.items() for method, tuned in TUNED_NAMES if method == published
}
"""From what the sweep calls a method to what Table III does; private feedback is not in it."""


def other_data_rows(tables: Tables) -> list[dict[str, Any]]:
    """``other-data-beside.csv``: every data set at ε = 3.61 and the settings that won on MNIST, beside Table III.

    A method that has not run on a data set has no row.

    Raises:
        MissingRuns: nothing has run on another data set.
    """
    if not any(study in tables.studies for study in OTHER_DATA.values()):
        raise MissingRuns("no other data set has run")
    return [
        _row(tables, data, name, runs)
        for data in DATA
        for name in dict.fromkeys(tuned for _, tuned in TUNED_NAMES)
        if (runs := _runs(tables, data, name))
    ]


def _row(tables: Tables, data: str, name: str, runs: list[RunRow]) -> dict[str, Any]:
    ours, plain = (_place(tables, data, one) for one in (name, "DP-SGD"))
    lost = sum(map(diverged, runs))
    lead = name != "DP-SGD" and _runs(tables, data, "DP-SGD")
    return {
        "data": DATASETS[data],
        "method": name,
        "paper": f"{TABLE_III[_LABELS[name]][data]['3.61']:.2f} %" if name in _LABELS else "–",
        "here": tables.band(*ours).text(0, percent=True) + (f" ({lost} runs diverged)" if lost else ""),
        "less DP-SGD": tables.difference(ours, plain).text() if lead else "",
        "ε accounted": wfl.epsilon_text(float(tables.band(*ours, "epsilon_accounted").mean[0])),
    }


def _place(tables: Tables, data: str, method: str) -> tuple[str, Point]:
    """Study and point of a method on a data set at the settings that won on MNIST."""
    point = tuned_point("moo-adaptive-clipping", "clipping", tables.about["size"], method)
    return ("tuned-clipping", point) if data == "mnist" else (OTHER_DATA[data], {**point, DATASET: data})


def _runs(tables: Tables, data: str, method: str) -> list[RunRow]:
    study, where = _place(tables, data, method)
    try:
        return [run for run in tables.study(study).runs if matches(run.point, where)]
    except MissingRuns:
        return []
