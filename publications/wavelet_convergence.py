"""Section 7 of the wavelet paper: whether wavelets need as many rounds as plain noise, or more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from publications.effects import MissingRuns
from publications.joint_curves import CurveRow
from publications.levels import DATASET, DATASETS, Method, common_levels
from publications.tables import Tables
from publications.wavelet_methods import DP_SGD, FEDAVG, FEDAVG_WAV, KEYS, SIGMA, WAV

NEARLY = 0.95
"""Converged: so much of the accuracy after the last round."""


def reached(curve: Sequence[CurveRow], accuracy: float) -> str:
    """The first evaluated round after which a mean accuracy is as large."""
    return next((str(row.round) for row in curve if row.mean >= accuracy), "–")


def convergence_rows(tables: Tables) -> list[dict[str, Any]]:
    """``convergence.csv``: after which round each method has 95 % of its last accuracy, and wavelets that of plain.

    Raises:
        MissingRuns: no level has both.
    """
    rows = []
    for name, plain, wavelet in (("DP-SGD", DP_SGD, WAV), ("DP-FedAvg", FEDAVG, FEDAVG_WAV)):
        with suppress(MissingRuns):
            for level in common_levels(tables, plain, wavelet, KEYS):
                theirs, ours = (_curve(tables, method, level) for method in (plain, wavelet))
                if theirs and ours:
                    rows.append(
                        {
                            "method": name,
                            "data": DATASETS[level[DATASET]],
                            "σ": level[SIGMA],
                            "plain, 95 % of its last accuracy": reached(theirs, NEARLY * theirs[-1].mean),
                            "wavelets, 95 % of their last accuracy": reached(ours, NEARLY * ours[-1].mean),
                            "wavelets, the last accuracy of plain": reached(ours, theirs[-1].mean),
                            "rounds": str(theirs[-1].round),
                        }
                    )
    if not rows:
        raise MissingRuns("no level has curves of both")
    return rows


def _curve(tables: Tables, method: Method, level: dict[str, str]) -> list[CurveRow]:
    study, where = method.at(level)
    return tables.study(study).curve(where)
