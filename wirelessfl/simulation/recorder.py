"""From a finished round to a record of the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.privacy import Release
from wirelessfl.privacy.releases import AirRelease, BareRelease, ServerNoiseRelease, round_values, settings
from wirelessfl.privacy.releases import client_values as release_columns
from wirelessfl.simulation.round import Round
from wirelessfl.trace import PRIVACY, EventBatch, RoundRecord, SecAggOutcome
from wirelessfl.trace.schema import REASON_LENGTH

_PER_SLOT = {variable.name for variable in PRIVACY.of("round", "slot")}


def route_of(release: Release) -> str:
    """Whose noise protects, in the names of the trace: at most one release of each route is made in a round."""
    if isinstance(release, AirRelease | BareRelease):
        return "air"
    return "server" if isinstance(release, ServerNoiseRelease) else "local"


def round_record(
    this: Round, events: EventBatch | None, weights: NDArray[np.float32] | None, known_settings: dict[str, int]
) -> RoundRecord:
    """The record of a round.

    Args:
        this: the round.
        events: what happened in it, or None when events are not kept.
        weights: (d,) the global model at its end, where it is to be kept.
        known_settings: the settings of releases so far, with their numbers; new ones are added.
    """
    privacy: dict[str, float] = {}
    privacy_slots: dict[str, NDArray[np.float64]] = {}

    def put(name: str, positions: NDArray[np.int64], values: NDArray[np.float64] | float) -> None:
        column = privacy_slots[name] = np.full(len(this.clients), np.nan)
        column[positions] = values

    for release in this.releases:
        route, text = route_of(release), settings(release)
        positions = np.searchsorted(this.clients, release.clients)
        privacy[f"{route}_settings"] = known_settings.setdefault(text, len(known_settings))
        put("released", positions, 1.0)
        for name, number in round_values(release).items():
            if f"{route}_{name}" in _PER_SLOT:
                put(f"{route}_{name}", positions, number)
            else:
                privacy[f"{route}_{name}"] = number
        for name, column in release_columns(release).items():
            put(f"{route}_{name}", positions, column)
    secagg, stages = _secure_aggregation(this)
    return RoundRecord(
        round_index=this.index,
        values={**this.values, **this.blocks},
        slots={"client_id": this.clients, "status": this.status, **this.slots},
        privacy=privacy,
        privacy_slots=privacy_slots,
        secagg=secagg,
        secagg_stages=stages,
        events=events,
        weights=weights,
    )


def _secure_aggregation(this: Round) -> tuple[dict[str, ArrayLike], dict[str, ArrayLike]]:
    """Columns of secure aggregation per round, and per round and stage; empty with other uplinks."""
    record = this.secagg
    if record is None:
        return {}, {}
    reason = record.abort_reason.encode("ascii", "replace")[:REASON_LENGTH]
    per_round: dict[str, ArrayLike] = {
        "outcome": SecAggOutcome.ABORTED if reason else SecAggOutcome.SUMMED,
        "reason": np.bytes_(reason),
        "attempts": record.attempts,
        "threshold": record.threshold,
        "neighbours": record.neighbours,
    }
    return per_round, dict(record.costs)
