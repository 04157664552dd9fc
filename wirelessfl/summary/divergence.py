"""Divergence of a run: what its trace shows, and the warnings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr


def last_evaluation(trace: xr.Dataset) -> dict[str, float]:
    """Test accuracy and loss (nat) of the last evaluation; both NaN where the model has diverged since then."""
    accuracy, loss = trace["test_accuracy"].values, trace["test_loss"].values
    evaluated = np.flatnonzero(~np.isnan(accuracy))
    outdated = trace.attrs["status"] == "diverged" and len(evaluated) > 0 and evaluated[-1] != len(accuracy) - 1
    if not len(evaluated) or outdated:
        return {"test_accuracy": math.nan, "test_loss": math.nan}
    return {"test_accuracy": float(accuracy[evaluated[-1]]), "test_loss": float(loss[evaluated[-1]])}


def divergence(trace: xr.Dataset) -> dict[str, Any]:
    """Entries of the summary on updates and models that are not finite.

    ``diverged_in`` is the first round, as far as it was evaluated, since which the global model or its test loss is not
    finite, or since which no update that was heard is, null where both are; ``updates_not_finite`` how many updates of
    the run were not, with the first round in which some were and how many of how many heard.
    """
    rounds = trace["round"].values
    said: dict[str, Any] = {"diverged_in": None, "updates_not_finite": 0, "updates_not_finite_first": None}
    if trace.attrs["status"] == "diverged" and len(rounds):
        evaluated = np.flatnonzero(~np.isnan(trace["test_accuracy"].values))
        since = _first_of_the_end(evaluated, ~np.isfinite(trace["test_loss"].values[evaluated]))
        found = [at for at in (_unlearnt_since(trace), since, len(rounds) - 1) if at is not None]
        said["diverged_in"] = int(rounds[found[0]])
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
    # Position of the first round after which no update that was heard is finite, None where there is none.
    #
    # None as well where the model, as far as it was evaluated, is not finite: then updates are not the reason.
    loss = trace["test_loss"].values[~np.isnan(trace["test_accuracy"].values)]
    if "updates_not_finite" not in trace or (len(loss) and not np.isfinite(loss[-1])):
        return None
    heard = np.flatnonzero(trace["participants"].values > 0)
    lost = (trace["updates_not_finite"].values >= trace["participants"].values)[heard]
    return _first_of_the_end(heard, lost)


def _first_of_the_end(positions: NDArray[np.int64], bad: NDArray[np.bool_]) -> int | None:
    # The first of ascending positions since which all are bad, None where the last one is not
    good = np.flatnonzero(~bad)
    after = positions[(good[-1] + 1 if len(good) else 0) :]
    return int(after[0]) if len(after) else None


def divergence_warnings(said: Mapping[str, Any], rounds: int) -> list[str]:
    """Warnings on a run of so many rounds, from its ``divergence``; none where all is finite."""
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
