"""The numbers of ``summary.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.summary.clip_fit import clip_fit
from wirelessfl.summary.divergence import divergence, divergence_warnings, last_evaluation

if TYPE_CHECKING:
    import xarray as xr

MILESTONES = (0.5, 0.8, 0.9)
"""Test accuracies at which time and energy are reported, beside the best accuracy."""

NOT_COVERED = (
    "Both ε hold for one run and for what the adversary sees, never for the trace: the seed, update norms, "
    "training losses, actual back-off, transmit energies and counts of updates that are not finite are private data "
    "of the simulated clients. Noise in floating point is accounted as real numbers: what its rounding gives away "
    "(Mironov 2012) is not covered."
)


def last_finite(values: NDArray[np.float64]) -> float:
    """Last value that is not NaN; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else math.nan


def _to_accuracy(accuracy: NDArray[np.float64], spent: NDArray[np.float64]) -> dict[str, float | None]:
    best = np.nanmax(accuracy) if np.any(~np.isnan(accuracy)) else math.nan
    levels = {**{f"{level:.0%}": level for level in MILESTONES}, "best": best}
    reached = {name: np.flatnonzero(accuracy >= level) for name, level in levels.items()}
    return {name: float(spent[first[0]]) if len(first) else None for name, first in reached.items()}


def summarise(trace: xr.Dataset, why_different: list[str]) -> dict[str, Any]:
    """Summary of a run, from its trace.

    Args:
        trace: the opened trace.
        why_different: the ledger's reasons why the two ε differ.

    Returns:
        The keys of CONTRACT.md; values in SI units, NaN and infinity as floats (see ``to_json``).
    """
    attributes: Mapping[str, Any] = trace.attrs
    fit = clip_fit(trace)
    columns = {str(name): trace[name].values for name in trace.data_vars if trace[name].dims == ("round",)}
    accuracy, energy = columns["test_accuracy"], np.cumsum(columns["energy"])
    tested, diverged = last_evaluation(trace), divergence(trace)
    return {
        "name": attributes["name"],
        "seed": int(attributes["seed"]),
        "status": attributes["status"],
        "rounds": len(accuracy),
        "test_accuracy": tested["test_accuracy"],
        "test_loss": tested["test_loss"],
        "epsilon_published": last_finite(columns["epsilon_published"]),
        "epsilon_accounted": last_finite(columns["epsilon_accounted"]),
        "delta": float(attributes["delta"]),
        "why_different": why_different,
        "privacy_scope": NOT_COVERED,
        "warnings": [*divergence_warnings(diverged, len(accuracy)), *filter(None, [fit and fit.warning()])],
        "clip_excess_db": math.nan if fit is None else fit.excess_db,
        "clip_fitting": math.nan if fit is None else fit.fitting,
        **diverged,
        "effective_noise_std": _mean_of_known(columns.get("effective_noise_std")),
        "aggregate_noise_std": _mean_of_known(columns.get("aggregate_noise_std")),
        "sim_time": last_finite(columns["sim_time"]),
        "wall_time": last_finite(columns["wall_time"]),
        "airtime": float(np.sum(columns["airtime"])),
        "energy": float(np.sum(columns["energy"])),
        "participants_mean": float(np.mean(columns["participants"])) if len(accuracy) else math.nan,
        "d": int(attributes["dimension"]),
        "samples": int(attributes["total_samples"]),
        "time_to_accuracy": _to_accuracy(accuracy, columns["sim_time"]),
        "energy_to_accuracy": _to_accuracy(accuracy, energy),
    }


def _mean_of_known(values: NDArray[np.float64] | None) -> float:
    # Mean over the rounds with a value; NaN where none has one, or the trace is older than the variable
    known = values[~np.isnan(values)] if values is not None else np.zeros(0)
    return float(known.mean()) if len(known) else math.nan


def _plain(value: Any) -> Any:
    # Values that JSON has: null for NaN, the strings "inf" and "-inf" for infinities
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def epsilon_text(epsilon: float) -> str:
    """An ε in words for people: three digits, ∞, or – where it is not known."""
    if math.isnan(epsilon):
        return "–"
    return "∞" if math.isinf(epsilon) else f"{epsilon:.3g}"


def to_json(summary: Mapping[str, Any]) -> str:
    """JSON of a summary, with null for NaN and the string "inf" for infinity."""
    return json.dumps(_plain(dict(summary)), indent=2, ensure_ascii=False) + "\n"
