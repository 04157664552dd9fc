"""Runs that diverge: what their trace tells of it, and how that is said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def last_evaluation(trace: xr.Dataset) -> dict[str, float]:
    """Accuracy and loss of the last evaluation, as they are; both NaN where the model has diverged since then."""
    accuracy, loss = trace["test_accuracy"].values, trace["test_loss"].values
    evaluated = np.flatnonzero(~np.isnan(accuracy))
    outdated = trace.attrs["status"] == "diverged" and len(evaluated) > 0 and evaluated[-1] != len(accuracy) - 1
    if not len(evaluated) or outdated:
        return {"test_accuracy": math.nan, "test_loss": math.nan}
    return {"test_accuracy": float(accuracy[evaluated[-1]]), "test_loss": float(loss[evaluated[-1]])}


def divergence(trace: xr.Dataset) -> dict[str, Any]:
    """What a summary says of updates and models that are not finite.

    ``diverged_in`` is the first round, as far as it was evaluated, since which the global model or its test loss is not
    finite, or since which no update that was heard is, null where both are; ``updates_not_finite`` how many updates of
    the run were not, with the first round in which some were and how many of how many heard.
    """
    rounds = trace["round"].values
    said: dict[str, Any] = {"diverged_in": None, "updates_not_finite": 0, "updates_not_finite_first": None}
    if trace.attrs["status"] == "diverged" and len(rounds):
        unlearnt = _unlearnt_since(trace)
        said["diverged_in"] = int(rounds[_first_of_the_end(trace) if unlearnt is None else unlearnt])
    if "updates_not_finite" not in trace:  # of an earlier version
        return said
    counts = np.nan_to_num(trace["updates_not_finite"].values)
    said["updates_not_finite"] = int(counts.sum())
    if counts.any():
        first = int(np.flatnonzero(counts)[0])
        heard = int(trace["participants"].values[first])
        said["updates_not_finite_first"] = {"round": int(rounds[first]), "count": int(counts[first]), "heard": heard}
    return said


def _unlearnt_since(trace: xr.Dataset) -> int | None:
    """Position of the first round after which no update that was heard is finite, None where there is none.

    None as well where the model, as far as it was evaluated, is not finite: then updates are not the reason.
    """
    loss = trace["test_loss"].values[~np.isnan(trace["test_accuracy"].values)]
    if "updates_not_finite" not in trace or (len(loss) and not np.isfinite(loss[-1])):
        return None
    heard = np.flatnonzero(trace["participants"].values > 0)
    lost = (trace["updates_not_finite"].values >= trace["participants"].values)[heard]
    finite = np.flatnonzero(~lost)
    after = heard[(finite[-1] + 1 if len(finite) else 0) :]
    return int(after[0]) if len(after) else None


def _first_of_the_end(trace: xr.Dataset) -> int:
    """Position of the first evaluation after which every one has a loss that is not finite; the last round else."""
    accuracy, loss = trace["test_accuracy"].values, trace["test_loss"].values
    evaluated = np.flatnonzero(~np.isnan(accuracy))
    finite = np.flatnonzero(np.isfinite(loss[evaluated]))
    after = evaluated[(finite[-1] + 1 if len(finite) else 0) :]
    return int(after[0]) if len(after) else len(accuracy) - 1


def divergence_warnings(said: Mapping[str, Any], rounds: int) -> list[str]:
    """What to tell the user of a run of so many rounds, from its ``divergence``; nothing where all is finite."""
    sentences = []
    first = said["updates_not_finite_first"]
    if first is not None:
        sentences.append(
            f"in round {first['round']}, {first['count']} of {first['heard']} updates were not finite, "
            f"{said['updates_not_finite']} in the whole run: clipped, they count as zeros; without a clip they reach "
            "the model"
        )
    if said["diverged_in"] is not None:
        ended = ", with which it ended" if said["diverged_in"] == rounds else ""
        sentences.append(
            f"the run diverged: its global model, the test loss of it or every update is not finite since round "
            f"{said['diverged_in']}{ended}"
        )
    return sentences
